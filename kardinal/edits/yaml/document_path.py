"""Paths into a document: `image.tag`, `spec.template.spec.containers[name=app].image`, `items[0]`, `labels."a.b/c"`.

Keys are separated by dots. A key that contains a dot, a bracket or a quote is written in double quotes. An item of a
list is named by its index, or by a key and the value of that key. A path means the same in YAML and in JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kardinal.objects.errors import KardinalError

__all__ = ["DocumentPath", "Item", "ListIndex", "MappingKey", "PathSyntaxError", "parse_path"]

_MAX_SEGMENTS = 64

_QUOTED = r'"(?:[^"\\]|\\["\\])*"'
_SEGMENT = re.compile(
    rf"""
    (?P<dot>\.)?
    (?:
        (?P<quoted>{_QUOTED})
      | \[ (?P<index>[0-9]{{1,6}}) \]
      | \[ (?P<key>[^\]\[="]+|{_QUOTED}) = (?P<value>[^\]\["]*|{_QUOTED}) \]
      | (?P<plain>[^."\[\]]+)
    )
    """,
    re.VERBOSE,
)
_EXAMPLE = 'such as image.tag, containers[name=app].image, items[0] or labels."example.com/x"'


class PathSyntaxError(KardinalError, ValueError):
    """The text is not a path; the message names the character of the mistake."""


@dataclass(frozen=True, slots=True)
class MappingKey:
    """The value of a key of a mapping."""

    name: str

    def __str__(self) -> str:
        return self.name if re.fullmatch(r'[^."\[\]]+', self.name) else _quoted(self.name)


@dataclass(frozen=True, slots=True)
class ListIndex:
    """The item of a list at a position, from 0."""

    position: int

    def __str__(self) -> str:
        return f"[{self.position}]"


@dataclass(frozen=True, slots=True)
class Item:
    """The only item of a list that is a mapping with `value` under `key`."""

    key: str
    value: str

    def __str__(self) -> str:
        key = self.key if re.fullmatch(r'[^\]\[="]+', self.key) else _quoted(self.key)
        value = self.value if re.fullmatch(r'[^\]\["]*', self.value) else _quoted(self.value)
        return f"[{key}={value}]"


@dataclass(frozen=True, slots=True)
class DocumentPath:
    """One or more segments, from the root of a document."""

    segments: tuple[MappingKey | ListIndex | Item, ...]

    def __str__(self) -> str:
        text = ""
        for segment in self.segments:
            text += f".{segment}" if isinstance(segment, MappingKey) and text else str(segment)
        return text

    @property
    def parent(self) -> DocumentPath:
        return DocumentPath(self.segments[:-1])

    def child(self, key: str) -> DocumentPath:
        """Return the path of a key below this path."""
        return DocumentPath((*self.segments, MappingKey(key)))

    def sibling(self, key: str) -> DocumentPath:
        """Return the path of another key beside the last segment."""
        return DocumentPath((*self.segments[:-1], MappingKey(key)))


def parse_path(text: str) -> DocumentPath:
    """Parse a path. Raises `PathSyntaxError`."""
    segments: list[MappingKey | ListIndex | Item] = []
    at = 0
    while at < len(text):
        match = _SEGMENT.match(text, at)
        # A dot stands before every key but the first, and before nothing else.
        if match is None or bool(match["dot"]) != (bool(segments) and _names_key(match)):
            raise PathSyntaxError(f"{text!r} is not a path at character {at + 1}; write it {_EXAMPLE}")
        segments.append(_segment(match))
        at = match.end()
    if not segments:
        raise PathSyntaxError(f"an empty path names no value; write one {_EXAMPLE}")
    if len(segments) > _MAX_SEGMENTS:
        raise PathSyntaxError(f"a path of more than {_MAX_SEGMENTS} segments; a document is not that deep")
    return DocumentPath(tuple(segments))


def _names_key(match: re.Match[str]) -> bool:
    return match["quoted"] is not None or match["plain"] is not None


def _segment(match: re.Match[str]) -> MappingKey | ListIndex | Item:
    if match["index"] is not None:
        return ListIndex(int(match["index"]))
    if match["key"] is not None:
        return Item(_unquoted(match["key"]), _unquoted(match["value"]))
    return MappingKey(_unquoted(match["quoted"] or match["plain"]))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
