"""Find expressions that cannot be true without the value of a certain attribute.

CEL ignores a missing value on the other side of `||` and in a branch of `?:` that is not taken; anywhere else a missing
value ends the evaluation. If it is uncertain whether an attribute is needed, it counts as not needed.
"""

from __future__ import annotations

from kardinal import cel
from kardinal.cel.references import chain
from kardinal.cel.syntax import Call, Conditional, Has, Index, ListLiteral, Logical, Name, Node, Select, children

__all__ = ["needs"]


def needs(source: str, path: str) -> bool:
    """Return whether a valid expression can be true only if the attribute at `path` has a value."""
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
    """Return whether this part of an expression has no value if the attribute at `path` has none."""
    match node:
        case Logical(terms=terms):
            # The value of any single term may decide the result.
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
