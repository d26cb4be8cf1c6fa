"""Overload resolution: by name, then by the exact types of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kardinal.cel.errors import Fault
from kardinal.cel.values import type_name

__all__ = ["Function"]

Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Function:
    """The implementations of one function.

    `typed`: by the types of the arguments. `generic`: for arguments of any types, by their number.
    """

    typed: Mapping[tuple[type, ...], Implementation] = field(default_factory=dict)
    generic: Mapping[int, Implementation] = field(default_factory=dict)

    @property
    def arities(self) -> frozenset[int]:
        return frozenset(map(len, self.typed)) | frozenset(self.generic)

    def __call__(self, name: str, position: int, arguments: list[object]) -> object:
        implementation = self.typed.get(tuple(map(type, arguments))) or self.generic.get(len(arguments))
        if implementation is None:
            raise no_overload(name, position, arguments)
        return implementation(*arguments)


def no_overload(name: str, position: int, arguments: list[object]) -> Fault:
    types = ", ".join(map(type_name, arguments))
    return Fault("type", f"`{name}` does not take ({types}) (at column {position + 1})")
