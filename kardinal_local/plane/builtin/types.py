"""The Go types of the built-in kinds: the protobuf numbers of their fields, and which empty fields JSON omits.

`types.txt` is generated from the sources of Kubernetes' API modules (`make builtins`): one type per line, its name and
then its fields, separated by semicolons, as

    NUMBER NAME FORM TYPE [GO]      17 restartPolicy -? string v1.RestartPolicy

    NUMBER  of the field in protobuf, which never changes; 0 for what protobuf does not carry
    FORM    two signs. How many: `-` one, `[` a list, `{` a map from strings. How an empty one looks in JSON:
            `?` it is left out, `0` also when it is a struct, `!` it is written, `*` pointer: left out when not set,
            `^` pointer: null when not set, `~` its fields stand in the place of the field itself
    TYPE    a scalar, or a type of this file; `.Name` is one of the same package
    GO      the type as the decoder of a real server calls it, where that does not follow from TYPE

The file is read when the server starts; a type is parsed when a kind that needs it is used first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Final

__all__ = ["Field", "Struct", "struct"]

_GO_SCALARS: Final = {"double": "float64", "bytes": "[]uint8"}
_GO_CONTAINERS: Final = {"-": "", "[": "[]", "{": "map[string]"}


def _read() -> dict[str, str]:
    """The file by name, each line unparsed."""
    lines = Path(__file__).with_name("types.txt").read_text().splitlines()
    return {name: fields for name, _, fields in (line.partition(" ") for line in lines)}


_LINES: Final = _read()


@dataclass(frozen=True)
class Field:
    """One field; `many` and `empty` are the two signs of its form, `within` the struct it was inlined from."""

    number: int
    name: str
    many: str
    empty: str
    type: str
    go: str
    within: str = ""

    @property
    def is_scalar(self) -> bool:
        return "." not in self.type

    @property
    def is_pointer(self) -> bool:
        return self.empty in "*^"

    @cached_property
    def go_element(self) -> str:
        """The Go type of one element."""
        named = self.go.partition("]")[2] if "]" in self.go else self.go if self.many == "-" else ""
        return named or _go_name(self.type)

    @cached_property
    def go_type(self) -> str:
        """The Go type of the whole."""
        return self.go or _GO_CONTAINERS[self.many] + _go_name(self.type)


@dataclass(frozen=True)
class Struct:
    """One type; `name` is what OpenAPI calls it."""

    name: str
    numbered: tuple[Field, ...]

    @cached_property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields as they stand in JSON."""
        found: list[Field] = []
        for field in self.numbered:
            if field.empty != "~":
                found.append(field)
                continue
            inner = struct(field.type)
            found.extend(replace(one, within=inner.short_name) for one in inner.fields)
        return tuple(found)

    @cached_property
    def bytes_by_key(self) -> tuple[str, ...]:
        """The names of the fields that hold bytes under keys."""
        return tuple(one.name for one in self.fields if one.many == "{" and one.type == "bytes")

    @cached_property
    def by_number(self) -> dict[int, Field]:
        return {field.number: field for field in self.numbered if field.number}


@cache
def struct(name: str) -> Struct:
    """The type of a name; KeyError when it is none of the built-in kinds'."""
    package = name.rpartition(".")[0]
    rows = _LINES[name].split("; ")
    return Struct(name, tuple(_field(row, package) for row in rows if row))


def _field(row: str, package: str) -> Field:
    number, name, form, type_, *go = row.split(" ")
    return Field(int(number), name, form[0], form[1], package + type_ if type_[0] == "." else type_, "".join(go))


def _go_name(type_: str) -> str:
    return ".".join(type_.rsplit(".", 2)[1:]) if "." in type_ else _GO_SCALARS.get(type_, type_)
