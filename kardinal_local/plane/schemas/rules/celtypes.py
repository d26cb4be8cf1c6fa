"""The types of CEL, and when a value of one may be used where another is wanted.

A type is a name with parameters. Upper-case names are variables: a signature such as `(list(A), A)` is instantiated
with fresh ones, and `Unifier` finds what they stand for. `dyn` fits everywhere, and so does the type of an expression
that has been refused already, so that one mistake is told once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

__all__ = ["BOOL", "DYN", "ERROR", "INT", "NULL", "STRING", "Type", "Unifier", "list_of", "map_of", "optional_of"]

_NULLABLE: Final = frozenset({"timestamp", "duration"})
_PLAIN: Final = frozenset({"bool", "bytes", "double", "int", "string", "uint", "type", "dyn", "list", "map", "!error!"})


@dataclass(frozen=True)
class Type:
    """`fields` are those of an object; two objects are the same type only when they are the same schema's."""

    name: str
    parameters: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def is_variable(self) -> bool:
        return self.name[0] == "_" or (len(self.name) == 1 and self.name.isupper())

    @cached_property
    def is_open(self) -> bool:
        return self.name in ("dyn", "!error!")

    @cached_property
    def is_nullable(self) -> bool:
        return self.name in _NULLABLE or (self.name not in _PLAIN and not self.is_variable)

    def __str__(self) -> str:
        if self.name == "null_type":
            return "null"
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"


BOOL: Final = Type("bool")
DYN: Final = Type("dyn")
ERROR: Final = Type("!error!")
INT: Final = Type("int")
NULL: Final = Type("null_type")
STRING: Final = Type("string")


def list_of(item: Type) -> Type:
    return Type("list", (item,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


class Unifier:
    """What type variables stand for, as far as one expression tells."""

    def __init__(self) -> None:
        self._bindings: dict[Type, Type] = {}
        self._fresh = 0

    def variable(self) -> Type:
        self._fresh += 1
        return Type(f"_var{self._fresh - 1}")

    def instance(self, types: Sequence[Type]) -> list[Type]:
        """A signature with variables of its own."""
        renamed: dict[Type, Type] = {}
        return [self._renamed(one, renamed) for one in types]

    def _renamed(self, one: Type, renamed: dict[Type, Type]) -> Type:
        if one.is_variable:
            if one not in renamed:
                renamed[one] = self.variable()
            return renamed[one]
        if not one.parameters:
            return one
        return replace(one, parameters=tuple(self._renamed(inner, renamed) for inner in one.parameters))

    def resolved(self, one: Type, *, final: bool = False) -> Type:
        """The type with everything known put in; what stays unknown is `dyn` when `final`."""
        if one in self._bindings:
            return self.resolved(self._bindings[one], final=final)
        if one.is_variable:
            return DYN if final else one
        if not one.parameters:
            return one
        return replace(one, parameters=tuple(self.resolved(inner, final=final) for inner in one.parameters))

    def assign(self, ours: Sequence[Type], theirs: Sequence[Type]) -> bool:
        """Whether each of our types fits theirs; what that says about variables is kept only if all do."""
        before = dict(self._bindings)
        if len(ours) == len(theirs) and all(map(self._fits, ours, theirs)):
            return True
        self._bindings = before
        return False

    def _fits(self, one: Type, other: Type) -> bool:
        if other.is_variable:
            valid, bound = self._substitutes(one, other)
            if valid or bound:
                return valid
        if one.is_variable:
            return self._substitutes(other, one)[0]
        if one.is_open or other.is_open:
            return True
        if NULL in (one, other):
            rest = other if one == NULL else one
            return rest == NULL or rest.is_nullable
        if one.name == "type":
            return other.name == "type"
        if one.parameters:
            same = one.name == other.name and len(one.parameters) == len(other.parameters)
            return same and all(map(self._fits, one.parameters, other.parameters))
        return one == other

    def _substitutes(self, one: Type, variable: Type) -> tuple[bool, bool]:
        """Whether a type may stand for a variable, and whether the variable had a meaning already."""
        if one == variable:
            return True, True
        bound = self._bindings.get(variable)
        if bound is None:
            if self._occurs(variable, one):
                return False, False
            self._bindings[variable] = one
            return True, False
        if bound == one:
            return True, True
        if not self._fits(one, bound):
            return False, True
        wider = more_general(one, bound)
        if not self._occurs(variable, wider):
            self._bindings[variable] = wider
        return True, True

    def _occurs(self, variable: Type, within: Type) -> bool:
        if variable == within:
            return True
        if within.is_variable:
            return within in self._bindings and self._occurs(variable, self._bindings[within])
        return any(self._occurs(variable, inner) for inner in within.parameters)


def more_general(one: Type, other: Type) -> Type:
    """Of two types that fit, the one that says less."""
    return one if _says_less(one, other) else other


def _says_less(one: Type, other: Type) -> bool:
    if one.name == "dyn" or one.is_variable:
        return True
    if other.name == "dyn" or other.is_variable or one.name != other.name:
        return False
    if one.name == "type":
        return True
    return len(one.parameters) == len(other.parameters) and all(map(_says_less, one.parameters, other.parameters))
