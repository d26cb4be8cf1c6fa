"""Turn the parse tree into `syntax`: precedence levels are removed, macros and names are resolved.

Every error of an expression that does not depend on data is found here, with its position: an unknown function, a wrong
number of arguments, a macro without its variable, a reserved word, nesting beyond the bound. The bound on nesting keeps
every later recursion, here and in evaluation, far from the recursion limit of Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from lark import Token, Tree

from kardinal.cel.errors import CompileError
from kardinal.cel.functions import TYPE_NAMES
from kardinal.cel.grammar import Parsed, parse
from kardinal.cel.library import STANDARD, Library
from kardinal.cel.literals import literal_value
from kardinal.cel.syntax import (
    DEPENDENCIES,
    LIFECYCLE,
    Call,
    Comprehension,
    Conditional,
    Constant,
    Has,
    Index,
    ListLiteral,
    Logical,
    MapLiteral,
    Name,
    Node,
    Select,
    TypeName,
)

__all__ = ["DEPTH_LIMIT", "lower"]

DEPTH_LIMIT = 64
"""Levels of nesting in one expression."""

_RESERVED = frozenset(
    [
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "in", "let", "loop"),
        *("namespace", "package", "return", "var", "void", "while"),
    ]
)
_WRAPPERS = frozenset(
    ["expr", "conditionalor", "conditionaland", "relation", "addition", "multiplication", "unary", "member", "primary"]
)
_OPERATORS = {
    "relation_lt": "<",
    "relation_le": "<=",
    "relation_gt": ">",
    "relation_ge": ">=",
    "relation_eq": "==",
    "relation_ne": "!=",
    "relation_in": "in",
    "addition_add": "+",
    "addition_sub": "-",
    "multiplication_mul": "*",
    "multiplication_div": "/",
    "multiplication_mod": "%",
    "unary_not": "!",
    "unary_neg": "-",
}

_WELL_KNOWN = {"Timestamp": "timestamp", "Duration": "duration"}
"""The names of types in `google.protobuf`."""

_Parsed = Tree[Token]


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """The variables that are bound around a parse tree, and its depth."""

    bound: frozenset[str] = frozenset()
    depth: int = 0


def lower(source: str, library: Library = STANDARD) -> Node:
    """Return the syntax of `source`; raises CompileError."""
    try:
        parsed = parse(source)
        lowering = _Lowering(source, library, parsed)
        node = lowering.node(parsed.tree, _Surroundings())
        lowering.check_optionals()
    except CompileError as error:
        raise CompileError(error.position, error.message, source) from None
    return node


class _Lowering:
    """The methods of the grammar rules, named after them; rules that only wrap another one have none."""

    def __init__(self, source: str, library: Library, parsed: Parsed) -> None:
        self._source = source
        self._library = library
        self._quoted = parsed.quoted
        self._optionals = dict(parsed.optionals)
        self._rules: dict[str, Callable[[_Parsed, int, _Surroundings], Node]] = {
            "expr": self._conditional,
            "conditionalor": self._logical,
            "conditionaland": self._logical,
            "relation": self._binary,
            "addition": self._binary,
            "multiplication": self._binary,
            "unary": self._unary,
            "paren_expr": lambda tree, _, around: self.node(_tree(tree.children[0]), around),
            "literal": lambda tree, position, _: Constant(position, literal_value(_token(tree.children[0]))),
            "list_lit": self._list,
            "map_lit": self._map,
            "ident": self._name,
            "dot_ident": self._name,
            "ident_arg": self._function,
            "dot_ident_arg": self._function,
            "member_dot_arg": self._method,
            "member_dot": self._select,
            "member_index": self._index,
        }

    def node(self, tree: _Parsed, around: _Surroundings) -> Node:
        while tree.data in _WRAPPERS and len(tree.children) == 1:
            tree = _tree(tree.children[0])
        position = 0 if tree.meta.empty else tree.meta.start_pos
        if around.depth > DEPTH_LIMIT:
            raise CompileError(position, f"the expression is nested deeper than {DEPTH_LIMIT} levels")
        rule = self._rules.get(tree.data)
        if rule is None:
            raise CompileError(position, "message construction is not supported")
        return rule(tree, position, replace(around, depth=around.depth + 1))

    def _text(self, tree: _Parsed) -> str:
        return re.sub(r"\s+", " ", self._source[tree.meta.start_pos : tree.meta.end_pos])

    def _members(self, parts: list[Token | _Parsed], around: _Surroundings) -> tuple[Node, ...]:
        """Return the members of the `exprlist` or `mapinits` in `parts`; empty when `parts` is."""
        return tuple(self.node(_tree(child), around) for part in parts for child in _tree(part).children)

    def _conditional(self, tree: _Parsed, position: int, around: _Surroundings) -> Conditional:
        condition, then, otherwise = (self.node(_tree(child), around) for child in tree.children)
        anchor = self._source.index("?", _tree(tree.children[0]).meta.end_pos)
        return Conditional(position, anchor, condition, then, otherwise)

    def _logical(self, tree: _Parsed, position: int, around: _Surroundings) -> Logical:
        operator = tree.data
        terms = list[_Parsed]()
        while tree.data == operator and len(tree.children) == 2:
            terms.append(_tree(tree.children[1]))
            tree = _tree(tree.children[0])
        terms.append(tree)
        nodes = tuple(self.node(term, around) for term in reversed(terms))
        return Logical(position, operator == "conditionaland", nodes)

    def _binary(self, tree: _Parsed, position: int, around: _Surroundings) -> Call:
        operation, right = map(_tree, tree.children)
        left = self.node(_tree(operation.children[0]), around)
        operator = _OPERATORS[operation.data]
        anchor = operation.meta.end_pos - len(operator)
        return Call(position, anchor, operator, (left, self.node(right, around)))

    def _unary(self, tree: _Parsed, position: int, around: _Surroundings) -> Call:
        operation, operand = map(_tree, tree.children)
        return Call(position, position, _OPERATORS[operation.data], (self.node(operand, around),))

    def _list(self, tree: _Parsed, position: int, around: _Surroundings) -> ListLiteral:
        starts = self._starts(tree)
        optionals = frozenset(index for index, start in enumerate(starts) if self._is_optional(start))
        return ListLiteral(position, self._members(tree.children, around), optionals)

    def _map(self, tree: _Parsed, position: int, around: _Surroundings) -> MapLiteral:
        parts = self._members(tree.children, around)
        starts = self._starts(tree)[::2]
        optionals = frozenset(index for index, start in enumerate(starts) if self._is_optional(start))
        return MapLiteral(position, tuple(zip(parts[::2], parts[1::2], strict=True)), optionals)

    def _starts(self, tree: _Parsed) -> list[int]:
        return [_tree(child).meta.start_pos for part in tree.children for child in _tree(part).children]

    def _is_optional(self, start: int) -> bool:
        """Return whether a question mark stands before what starts there."""
        return self._optionals.pop(start, None) is not None

    def check_optionals(self) -> None:
        """Raise CompileError for a question mark that nothing has asked for."""
        if self._optionals:
            raise CompileError(min(self._optionals.values()), "unexpected `?`")

    def _field(self, token: Token) -> str:
        return self._quoted.get(token.start_pos or 0, str(token.value))

    def _name(self, tree: _Parsed, position: int, around: _Surroundings) -> Node:
        name = _token(tree.children[0]).value
        if name in _RESERVED:
            raise CompileError(position, f"`{name}` is a reserved word")
        # A dot before a name looks past the variables of macros.
        bound = name in around.bound and tree.data == "ident"
        if name in TYPE_NAMES and not bound:
            return TypeName(position, name)
        return Name(position, name, bound)

    def _operand(self, tree: _Parsed, around: _Surroundings) -> Node:
        """Return the operand of a field selection, where the name of a type (`string.x`) is an ordinary name."""
        node = self.node(tree, around)
        return Name(node.position, node.name, bound=False) if isinstance(node, TypeName) else node

    def _select(self, tree: _Parsed, position: int, around: _Surroundings) -> Node:
        operand = self._operand(_tree(tree.children[0]), around)
        token = _token(tree.children[1])
        anchor = self._source.rindex(".", 0, token.start_pos)
        optional = self._is_optional(token.start_pos or 0)
        match operand:
            case Select(operand=Name(name="google", bound=False), field="protobuf") if token.value in _WELL_KNOWN:
                return TypeName(position, _WELL_KNOWN[token.value])
        return Select(position, anchor, operand, self._field(token), optional, self._text(tree))

    def _index(self, tree: _Parsed, position: int, around: _Surroundings) -> Index:
        operand = self._operand(_tree(tree.children[0]), around)
        optional = self._is_optional(_tree(tree.children[1]).meta.start_pos)
        key = self.node(_tree(tree.children[1]), around)
        anchor = self._source.index("[", _tree(tree.children[0]).meta.end_pos)
        return Index(position, anchor, operand, key, optional, self._text(tree))

    def _function(self, tree: _Parsed, position: int, around: _Surroundings) -> Node:
        token = _token(tree.children[0])
        name = token.value
        arguments = self._members(tree.children[1:], around)
        anchor = self._source.index("(", token.end_pos)
        if f"{name}()" == DEPENDENCIES and not arguments and not self._library.checked:
            return Name(position, DEPENDENCIES, bound=False)
        if name != "has":
            return self._call(name, arguments, position, anchor)
        match arguments:
            case (Select(operand=operand, field=field, text=text, optional=False),) if field not in LIFECYCLE:
                return Has(position, anchor, operand, field, text)
            case _:
                wrong = getattr(arguments[0], "anchor", arguments[0].position) if arguments else position
                raise CompileError(wrong, "has() takes one field selection, as in `has(a.b)`")

    def _method(self, tree: _Parsed, position: int, around: _Surroundings) -> Node:
        token = _token(tree.children[1])
        name = self._field(token)
        if name == "bind" and "cel.bind" in self._library.macros and _is_cel(_tree(tree.children[0])):
            return self._bind(tree, position, around)
        if name in self._library.macros and not (self._library.checked and self._is_plain(name, tree)):
            return self._comprehension(name, tree, position, around)
        operand = self._operand(_tree(tree.children[0]), around)
        arguments = self._members(tree.children[2:], around)
        anchor = self._source.index("(", token.end_pos)
        match operand:
            case Name(bound=False) if f"{name}()" in LIFECYCLE and not arguments and not self._library.checked:
                dot = self._source.rindex(".", 0, token.start_pos)
                return Select(position, dot, operand, f"{name}()", optional=False, text=self._text(tree))
            case Select(operand=Name(bound=False), field=field) if name == "orValue" and field in LIFECYCLE:
                operand = replace(operand, optional=True)
        if isinstance(operand, Name) and not operand.bound and f"{operand.name}.{name}" in self._library.functions:
            return self._call(f"{operand.name}.{name}", arguments, position, anchor)
        return self._call(name, (operand, *arguments), token.start_pos or position, anchor, member=True)

    def _bind(self, tree: _Parsed, position: int, around: _Surroundings) -> Comprehension:
        arguments = [_tree(child) for part in tree.children[2:] for child in _tree(part).children]
        if len(arguments) not in self._library.macros["cel.bind"]:
            raise CompileError(position, "cel.bind() takes a variable, its value and an expression")
        variable = self._variable(arguments[0], "cel.bind", around, "first")
        value = self.node(arguments[1], around)
        body = self.node(arguments[2], replace(around, bound=around.bound | {variable}))
        anchor = self._source.index("(", _token(tree.children[1]).end_pos)
        return Comprehension(position, anchor, "cel.bind", value, variable, None, body, None)

    def _comprehension(self, macro: str, tree: _Parsed, position: int, around: _Surroundings) -> Comprehension:
        arguments = [_tree(child) for part in tree.children[2:] for child in _tree(part).children]
        if len(arguments) not in self._library.macros[macro]:
            raise CompileError(position, f"{macro}() takes a variable and an expression, as in `list.{macro}(x, x.ok)`")
        variables = [self._variable(arguments[0], macro, around, "first")]
        if len(arguments) > 2 and macro != "map":
            variables.append(self._variable(arguments[1], macro, around, "second"))
        operand = self._operand(_tree(tree.children[0]), around)
        inner = replace(around, bound=around.bound | frozenset(variables))
        body, *rest = (self.node(argument, inner) for argument in arguments[len(variables) :])
        anchor = self._source.index("(", _token(tree.children[1]).end_pos)
        second = variables[1] if len(variables) > 1 else None
        transform = rest[0] if rest else None
        return Comprehension(position, anchor, macro, operand, variables[0], second, body, transform)

    def _is_plain(self, macro: str, tree: _Parsed) -> bool:
        """Return whether a call has the name of a macro only."""
        return sum(len(_tree(part).children) for part in tree.children[2:]) not in self._library.macros[macro]

    def _variable(self, argument: _Parsed, macro: str, around: _Surroundings, which: str) -> str:
        variable = self.node(argument, replace(around, bound=frozenset()))
        if not isinstance(variable, Name):
            wrong = getattr(variable, "anchor", variable.position)
            raise CompileError(wrong, f"the {which} argument of {macro}() must be a plain name")
        return variable.name

    def _call(
        self, name: str, arguments: tuple[Node, ...], position: int, anchor: int, *, member: bool = False
    ) -> Call:
        function = self._library.functions.get(name)
        if self._library.checked:
            return Call(position, anchor, name, arguments, member)
        if function is None:
            near = get_close_matches(name, [*self._library.functions, *self._library.macros, "has"], n=1)
            hint = f" (did you mean `{near[0]}`?)" if near else ""
            raise CompileError(position, f"unknown function `{name}`{hint}")
        if not function.takes(len(arguments)):
            raise CompileError(position, f"wrong number of arguments for `{name}`")
        return Call(position, anchor, name, arguments, member)


def _is_cel(tree: _Parsed) -> bool:
    """Return whether an operand is the plain name `cel`."""
    while tree.data in _WRAPPERS and len(tree.children) == 1:
        tree = _tree(tree.children[0])
    return tree.data == "ident" and _token(tree.children[0]).value == "cel"


def _tree(part: Token | _Parsed) -> _Parsed:
    assert isinstance(part, Tree)  # noqa: S101 - what the grammar puts there
    return part


def _token(part: Token | _Parsed) -> Token:
    assert isinstance(part, Token)  # noqa: S101 - what the grammar puts there
    return part
