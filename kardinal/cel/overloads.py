"""Overload resolution: by name, then by the exact types of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kardinal.cel.errors import Fault
from kardinal.cel.values import type_name

__all__ = ["Function", "merged"]

Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Function:
    """The implementations of one function.

    `typed`: by the types of the arguments. `generic`: for arguments of any types, by their number. `variadic`: for any
    number of arguments of any types, but for none.
    """

    typed: Mapping[tuple[type, ...], Implementation] = field(default_factory=dict)
    generic: Mapping[int, Implementation] = field(default_factory=dict)
    variadic: Implementation | None = None

    def takes(self, count: int) -> bool:
        """Return whether a call may have that many arguments."""
        if self.variadic is not None and count > 0:
            return True
        return count in self.generic or any(len(types) == count for types in self.typed)

    def merged(self, other: Function) -> Function:
        """Return a function with the overloads of both; those of `other` win."""
        return Function(
            {**self.typed, **other.typed}, {**self.generic, **other.generic}, other.variadic or self.variadic
        )

    def __call__(self, name: str, position: int, arguments: list[object]) -> object:
        implementation = (
            self.typed.get(tuple(map(type, arguments))) or self.generic.get(len(arguments)) or self.variadic
        )
        if implementation is None:
            raise no_overload(name, position, arguments)
        try:
            return implementation(*arguments)
        except Fault as error:
            if error.position is None:
                error.position = position
            raise


def merged(*tables: Mapping[str, Function]) -> dict[str, Function]:
    """Return one table in which a function has the overloads of all of them."""
    result: dict[str, Function] = {}
    for table in tables:
        for name, function in table.items():
            result[name] = result[name].merged(function) if name in result else function
    return result


def no_overload(name: str, position: int, arguments: list[object]) -> Fault:
    types = ", ".join(map(type_name, arguments))
    return Fault("type", f"`{name}` does not take ({types})", position)
