"""Find expressions that are never true without the value of an attribute, whatever everything else is.

CEL passes over a missing value on the other side of `||` and in a branch that is not taken; everywhere else it ends the
evaluation. What is not sure is taken for not needed.
"""

from __future__ import annotations

from kardinal import cel
from kardinal.cel.references import chain
from kardinal.cel.syntax import Call, Conditional, Has, Index, ListLiteral, Logical, Name, Node, Select, children

__all__ = ["needs"]


def needs(source: str, path: str) -> bool:
    """Return whether a valid expression can only be true if the attribute at `path` has a value."""
    return _to_be_true(cel.syntax_of(source), path)


def _to_be_true(node: Node, path: str) -> bool:
    match node:
        case Logical(conjunction=conjunction, terms=terms):
            return (any if conjunction else all)(_to_be_true(term, path) for term in terms)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return _to_be_known(condition, path) or (_to_be_true(then, path) and _to_be_true(otherwise, path))
        case Has():
            return _reads(node, path)
    return _to_be_known(node, path)


def _to_be_known(node: Node, path: str) -> bool:
    """Return whether a part of an expression has no value where the attribute has none."""
    match node:
        case Logical(terms=terms):
            # Any term may decide it.
            return all(_to_be_known(term, path) for term in terms)
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            return _to_be_known(condition, path) or (_to_be_known(then, path) and _to_be_known(otherwise, path))
        case Select() | Index():
            return _reads(node, path)
        case Call() | ListLiteral():
            return any(_to_be_known(child, path) for child in children(node))
    return False


def _reads(node: Node, path: str) -> bool:
    fields, base, optional = chain(node)
    return isinstance(base, Name) and not base.bound and not optional and ".".join((base.name, *fields)) == path
