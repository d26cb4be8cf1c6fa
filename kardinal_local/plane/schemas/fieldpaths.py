"""Parse paths of the form `.spec.replicas` or `.labels['app']`, and follow them through a schema.

A rule's `fieldPath` and a `selectableFields` entry are such paths: plain steps by name, no filters, no indices.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.schemas.causes import MapKey, Path

__all__ = ["FieldPathError", "find_field"]

_TOKEN: Final = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]']+|'")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPathError(ValueError):
    """A path that leads nowhere; the message is the server's."""


def find_field(text: str, schema: JsonObject, *, brackets: bool = True) -> tuple[Path, JsonObject]:
    """The steps of a path and the schema it leads to."""
    tokens = _TOKEN.findall(text)
    path: Path = None
    place: Any = schema
    position = 0
    while position < len(tokens):
        step = tokens[position]
        if step == ".":
            name = _at(tokens, position + 1)
            position += 2
        elif step == "[":
            if not brackets:
                raise FieldPathError("array notation is not allowed")
            name = _unquoted(_at(tokens, position + 1))
            if _at(tokens, position + 2) != "]":
                raise FieldPathError(f"expected ] but got {tokens[position + 2]}")
            position += 3
        else:
            raise FieldPathError(f"expected [ or . but got: {step}")
        path, place = _child(path, place, name)
    return path, place


def _at(tokens: list[str], position: int) -> str:
    if position >= len(tokens):
        raise FieldPathError("unexpected end of JSON path")
    return tokens[position]


def _unquoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")

    def unescaped(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise FieldPathError(f"invalid string literal: invalid escape char {match[0]}")
        return _ESCAPES[match[1]]

    return _ESCAPE.sub(unescaped, token[1:-1])


def _child(path: Path, schema: JsonObject, name: str) -> tuple[Path, JsonObject]:
    fields, extra = schema.get("properties"), schema.get("additionalProperties")
    if fields:
        child = fields.get(name)
        step = name
    else:
        child = extra
        step = MapKey(name)
    if not isinstance(child, dict):
        raise FieldPathError("does not refer to a valid field")
    return (path, step), child
