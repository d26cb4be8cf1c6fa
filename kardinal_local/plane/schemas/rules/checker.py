"""Check the types in an expression, and infer the type of its result.

This is the check of the real server, with its words: a CRD is refused with exactly the complaint a cluster has, and a
rule that passes here is one that a cluster compiles. Every fault is found in one pass; what follows from an expression
that was refused already is not told again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kardinal import cel
from kardinal.cel import syntax
from kardinal_local.plane.schemas.rules.celtypes import (
    BOOL,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    Type,
    Unifier,
    list_of,
    map_of,
    more_general,
    optional_of,
)
from kardinal_local.plane.schemas.rules.complaints import Complaint
from kardinal_local.plane.schemas.rules.literals import literal_complaints
from kardinal_local.plane.schemas.rules.signatures import SIGNATURES

__all__ = ["Checked", "check"]

_CONSTANTS: Final[dict[type, Type]] = {
    bool: BOOL,
    int: INT,
    float: Type("double"),
    str: STRING,
    bytes: Type("bytes"),
    type(None): NULL,
    cel.Uint: Type("uint"),
}
_TYPE_NAMES: Final = frozenset(
    {"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint", "optional_type"}
)
_OPERATORS: Final = {"!": "!_", "in": "@in"}
_PREDICATES: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter"})


@dataclass(frozen=True, slots=True)
class Checked:
    """The type of an expression, its faults, and the variables it reads."""

    type: Type
    complaints: tuple[Complaint, ...]
    reads: frozenset[str]


def check(node: syntax.Node, variables: Mapping[str, Type]) -> Checked:
    """Check an expression in which these variables are declared."""
    run = _Check(dict(variables))
    found = run.type_of(node)
    if not run.complaints:
        run.complaints += literal_complaints(node)
    complaints = tuple(sorted(dict.fromkeys(run.complaints), key=lambda complaint: complaint.position))
    return Checked(run.unifier.resolved(found, final=True), complaints, frozenset(run.reads))


@dataclass(slots=True)
class _Check:
    scope: dict[str, Type]
    unifier: Unifier = field(default_factory=Unifier)
    complaints: list[Complaint] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    mixed: bool = False
    """Whether a literal may mix types: the list that a text is formatted with."""

    def type_of(self, node: syntax.Node) -> Type:
        return _RULES[type(node)](self, node)

    def _refuse(self, position: int, message: str) -> Type:
        self.complaints.append(Complaint(position, message))
        return ERROR

    def _constant(self, node: syntax.Constant) -> Type:
        return _CONSTANTS[type(node.value)]

    def _name(self, node: syntax.Name | syntax.TypeName) -> Type:
        found = self.scope.get(node.name)
        if found is not None:
            if isinstance(node, syntax.Name) and not node.bound:
                self.reads.add(node.name)
            return found
        if node.name in _TYPE_NAMES:
            return Type("type", (Type(node.name),))
        return self._undeclared(node.position, node.name)

    def _undeclared(self, position: int, name: str) -> Type:
        return self._refuse(position, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: syntax.Select) -> Type:
        found = self._field(node.operand, node.field, node.anchor)
        return optional_of(found) if node.optional and found.name != "optional_type" else found

    def _has(self, node: syntax.Has) -> Type:
        self._field(node.operand, node.field, node.anchor)
        return BOOL

    def _field(self, operand: syntax.Node, name: str, position: int) -> Type:
        found = self.unifier.resolved(self.type_of(operand))
        if found.name == "optional_type":
            return optional_of(self._member(found.parameters[0], name, position))
        return self._member(found, name, position)

    def _member(self, found: Type, name: str, position: int) -> Type:
        if found.name == "map":
            return self.unifier.resolved(found.parameters[1])
        if found.fields is not None:
            known = found.fields.get(name) or found.fields.get(f"__{name}__")
            return known or self._refuse(position, f"undefined field '{name}'")
        if found.is_variable:
            self.unifier.assign([DYN], [found])
            return DYN
        if "." in found.name:
            self._refuse(position, f"unexpected failed resolution of '{found}'")
        elif not found.is_open:
            self._refuse(position, f"type '{found}' does not support field selection")
        return DYN

    def _index(self, node: syntax.Index) -> Type:
        arguments = [self.type_of(node.operand), self.type_of(node.key)]
        return self._overload("_[?_]" if node.optional else "_[_]", arguments, node.anchor, member=False)

    def _call(self, node: syntax.Call) -> Type:
        name = node.function
        if not name[0].isalpha() or name == "in":
            name = _OPERATORS.get(name) or (f"_{name}_" if len(node.arguments) > 1 else f"{name}_")
        if node.member and name not in SIGNATURES and not isinstance(node.arguments[0], syntax.Name):
            self.type_of(node.arguments[0])
        before, self.mixed = self.mixed, name == "format"
        arguments = [self.type_of(argument) for argument in node.arguments]
        self.mixed = before
        if name not in SIGNATURES:
            return self._undeclared(node.anchor, name)
        return self._overload(name, arguments, node.anchor, member=node.member)

    def _overload(self, name: str, arguments: Sequence[Type], position: int, *, member: bool) -> Type:
        result: Type | None = None
        for signature in SIGNATURES[name]:
            if signature.member is not member:
                continue
            wanted = self.unifier.instance([signature.result, *signature.parameters])
            if self.unifier.assign(arguments, wanted[1:]):
                found = self.unifier.resolved(wanted[0])
                if result is None:
                    result = found
                elif result.name != "dyn" and found != result:
                    result = DYN
        if result is not None:
            return result
        shown = [str(self.unifier.resolved(argument, final=True)) for argument in arguments]
        given = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
        return self._refuse(position, f"found no matching overload for '{name}' applied to '{given}'")

    def _logical(self, node: syntax.Logical) -> Type:
        good = True
        for term in node.terms:
            found = self.type_of(term)
            if not self.unifier.assign([found], [BOOL]):
                self._mismatch(_anchor(term), BOOL, found)
                good = False
        return BOOL if good else ERROR

    def _mismatch(self, position: int, wanted: Type, found: Type) -> Type:
        shown = self.unifier.resolved(found)
        return self._refuse(position, f"expected type '{wanted}' but found '{shown}'")

    def _conditional(self, node: syntax.Conditional) -> Type:
        arguments = [self.type_of(part) for part in (node.condition, node.then, node.otherwise)]
        return self._overload("_?_:_", arguments, node.anchor, member=False)

    def _list(self, node: syntax.ListLiteral) -> Type:
        return list_of(self._joined(node.items, node.optionals))

    def _map(self, node: syntax.MapLiteral) -> Type:
        keys = self._joined([key for key, _ in node.entries])
        return map_of(keys, self._joined([value for _, value in node.entries], node.optionals))

    def _joined(self, nodes: Sequence[syntax.Node], optionals: frozenset[int] = frozenset()) -> Type:
        joined: Type | None = None
        for index, node in enumerate(nodes):
            found = self.type_of(node)
            if index in optionals:
                held = self.unifier.variable()
                if self.unifier.assign([found], [optional_of(held)]):
                    found = self.unifier.resolved(held)
                else:
                    found = self._mismatch(_anchor(node), optional_of(DYN), found)
            if joined is None:
                joined = found
            elif self.unifier.assign([joined], [found]):
                joined = more_general(joined, found)
            elif self.mixed:
                joined = DYN
            else:
                joined = self._mismatch(_anchor(node), self.unifier.resolved(joined), found)
        return self.unifier.variable() if joined is None else joined

    def _comprehension(self, node: syntax.Comprehension) -> Type:
        if node.macro in ("optMap", "optFlatMap"):
            return self._optional_macro(node)
        variables = self._range(node)
        outer = dict(self.scope)
        self.scope.update(variables)
        body = self.type_of(node.body)
        result = self.type_of(node.transform) if node.transform is not None else body
        self.scope = outer
        outcome = self._outcome(node, variables, result)
        if node.macro in _PREDICATES or node.transform is not None:
            self._predicate(node, body, outcome)
        return outcome

    def _range(self, node: syntax.Comprehension) -> dict[str, Type]:
        """The types of the variables that a comprehension binds."""
        found = self.unifier.resolved(self.type_of(node.operand))
        if found.name == "list":
            pair = (INT, found.parameters[0]) if node.second else (found.parameters[0], DYN)
        elif found.name == "map":
            pair = (found.parameters[0], found.parameters[1])
        elif found.is_open or found.is_variable:
            self.unifier.assign([DYN], [found])
            pair = (DYN, DYN)
        else:
            words = f"expression of type '{found}' cannot be range of a comprehension (must be list, map, or dynamic)"
            self._refuse(_anchor(node.operand), words)
            pair = (ERROR, ERROR)
        return {node.variable: pair[0]} | ({node.second: pair[1]} if node.second else {})

    def _predicate(self, node: syntax.Comprehension, found: Type, outcome: Type) -> None:
        if self.unifier.assign([found], [BOOL]):
            return
        if node.macro in ("all", "exists"):
            self._mismatch(_anchor(node.body), BOOL, found)
        else:
            counted = INT if outcome == BOOL else outcome
            self._overload("_?_:_", [found, counted, counted], node.anchor, member=False)

    def _outcome(self, node: syntax.Comprehension, variables: Mapping[str, Type], result: Type) -> Type:
        match node.macro:
            case "filter" | "sortBy":
                return list_of(variables[node.variable])
            case "map" | "transformList":
                return list_of(result)
            case "transformMap":
                return map_of(variables[node.variable], result)
            case "transformMapEntry":
                return result
        return BOOL

    def _optional_macro(self, node: syntax.Comprehension) -> Type:
        held = self.unifier.variable()
        operand = self.type_of(node.operand)
        if not self.unifier.assign([operand], [optional_of(held)]):
            self._overload("hasValue", [operand], node.anchor, member=True)
        outer = dict(self.scope)
        self.scope[node.variable] = self.unifier.resolved(held)
        result = self.type_of(node.body)
        self.scope = outer
        if node.macro == "optMap":
            return optional_of(result)
        found = self.unifier.variable()
        if not self.unifier.assign([result], [optional_of(found)]):
            self._overload("_?_:_", [BOOL, result, optional_of(found)], node.anchor, member=False)
        return result


def _anchor(node: syntax.Node) -> int:
    return getattr(node, "anchor", node.position)


_RULES: Final[dict[type, Callable[[_Check, Any], Type]]] = {
    syntax.Constant: _Check._constant,
    syntax.Name: _Check._name,
    syntax.TypeName: _Check._name,
    syntax.Select: _Check._select,
    syntax.Has: _Check._has,
    syntax.Index: _Check._index,
    syntax.Call: _Check._call,
    syntax.Logical: _Check._logical,
    syntax.Conditional: _Check._conditional,
    syntax.ListLiteral: _Check._list,
    syntax.MapLiteral: _Check._map,
    syntax.Comprehension: _Check._comprehension,
}
