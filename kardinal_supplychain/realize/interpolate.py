"""Replace `$(path)$` in the strings of a template by values of its context.

A string that is one tag takes the type of the value: `$(params.replicas)$` becomes the number 3. In any other string a
text is inserted as it is, and another value as compact JSON; null is an error there, because it would become the word.
What was inserted is not read again, a `$(` without its end stays, and keys are never changed.

Two bounds keep a template of a stranger cheap: the result has at most 1 MiB, and all of its paths together take at most
200,000 steps, of which each character of a path is one. Each path is evaluated once, however many tags have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from kardinal.objects import JsonObject
from kardinal.objects.errors import KardinalError
from kardinal_supplychain.jsonpath import PathError, Steps, parse_path

__all__ = [
    "DEPTH_LIMIT",
    "OBJECT_LIMIT",
    "InterpolationError",
    "Tag",
    "encoded_json",
    "interpolate",
    "is_deeper",
    "tags_of",
    "tags_within",
]

OBJECT_LIMIT = 1 << 20
"""The most bytes of a stamped object as JSON."""
DEPTH_LIMIT = 64
"""The most lists and objects inside each other, in a template and in a stamped object."""
TEMPLATE_STEPS = 200_000
"""The most steps of all paths of one template."""

_BEGIN = "$("
_END = ")$"


class InterpolationError(KardinalError):
    """A template that cannot be interpolated; `place` is the path of the string in the template."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"failed to interpolate template at path [{place}]: {message}")
        self.place = place


@dataclass(frozen=True, slots=True)
class Tag:
    """The path of one tag."""

    path: str


def tags_of(text: str) -> Iterator[str | Tag]:
    """Yield the parts of a string: its texts, and its tags."""
    position = 0
    while (begin := text.find(_BEGIN, position)) >= 0 and (end := text.find(_END, begin)) >= 0:
        if begin > position:
            yield text[position:begin]
        yield Tag(text[begin + len(_BEGIN) : end])
        position = end + len(_END)
    if position < len(text):
        yield text[position:]


def tags_within(template: object, place: str = "") -> Iterator[tuple[str, Tag, bool]]:
    """Yield each tag of a template with the path of its string, and whether it is all of that string.

    Raises `InterpolationError` if the template is nested deeper than `DEPTH_LIMIT`.
    """
    for path, text in _strings(template, place, 0):
        parts = tuple(tags_of(text))
        yield from ((path, part, len(parts) == 1) for part in parts if isinstance(part, Tag))


def interpolate(template: object, context: JsonObject) -> Any:
    """Return a template with its tags replaced. Raises `InterpolationError`."""
    return _Interpolation(context).value(template, "", 0)


def _strings(value: object, place: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    for name, inner in _inside(value, place, depth):
        yield from _strings(inner, name, depth + 1)


def _inside(value: object, place: str, depth: int) -> Iterator[tuple[str, object]]:
    """Yield the values in a list or an object with their paths."""
    if isinstance(value, dict | list) and depth >= DEPTH_LIMIT:
        raise InterpolationError(place, f"it is nested deeper than {DEPTH_LIMIT} levels")
    if isinstance(value, dict):
        yield from ((f"{place}.{key}".removeprefix("."), inner) for key, inner in value.items())
    elif isinstance(value, list):
        yield from ((f"{place}[{index}]", inner) for index, inner in enumerate(value))


class _Interpolation:
    def __init__(self, context: JsonObject) -> None:
        self._context = context
        self._steps = Steps(TEMPLATE_STEPS)
        self._known: dict[str, tuple[Any, bytes]] = {}
        self._size = 0

    def value(self, template: object, place: str, depth: int) -> Any:
        match template:
            case str():
                return self._string(template, place)
            case dict():
                inside = _inside(template, place, depth)
                names = zip(template, inside, strict=True)
                return {key: self.value(inner, name, depth + 1) for key, (name, inner) in names}
            case list():
                return [self.value(inner, name, depth + 1) for name, inner in _inside(template, place, depth)]
            case _:
                return template

    def _string(self, text: str, place: str) -> Any:
        if _BEGIN not in text:
            return text
        parts = tuple(tags_of(text))
        if len(parts) == 1 and isinstance(parts[0], Tag):
            return self._evaluated(parts[0], place)[0]
        return "".join(part if isinstance(part, str) else self._spliced(part, place) for part in parts)

    def _spliced(self, tag: Tag, place: str) -> str:
        value, encoded = self._evaluated(tag, place)
        if value is None:
            raise InterpolationError(place, f"{tag.path} is null, which cannot stand in a text")
        return value if isinstance(value, str) else encoded.decode()

    def _evaluated(self, tag: Tag, place: str) -> tuple[Any, bytes]:
        """Return the value of a tag, and its JSON."""
        if tag.path not in self._known:
            try:
                path = parse_path(tag.path)
                self._steps.spend(len(tag.path))
                value = path.one(self._context, self._steps)
                encoded = encoded_json(value)
                self._known[tag.path] = _plain(value) if len(encoded) <= OBJECT_LIMIT else None, encoded
            except (PathError, ValueError) as error:
                raise InterpolationError(place, str(error)) from None
        value, encoded = self._known[tag.path]
        self._size += len(encoded)
        if self._size > OBJECT_LIMIT:
            raise InterpolationError(place, f"the values of all tags have more than {OBJECT_LIMIT:,} bytes")
        return value, encoded


def _plain(value: Any) -> Any:
    """Return a value made of plain dictionaries: an owner has some that read as if they had more fields."""
    match value:
        case dict():
            return {key: _plain(inner) for key, inner in value.items()}
        case list():
            return list(map(_plain, value))
        case _:
            return value


def encoded_json(value: object) -> bytes:
    """Return a value as compact JSON with its keys sorted.

    Raises ValueError for what an API server would not store: an integer of more than 64 bits, a text that is not
    Unicode, a key that is not a text, or a value that is nested hundreds of levels deep.
    """
    if isinstance(value, float) and value.is_integer():
        # Go writes such a number without its fraction.
        value = int(value)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise ValueError(str(error)) from None


def is_deeper(value: object, limit: int) -> bool:
    """Return whether more than `limit` lists and objects are inside each other in a JSON value."""
    waiting = [(value, 0)]
    while waiting:
        inner, depth = waiting.pop()
        if isinstance(inner, dict | list):
            if depth >= limit:
                return True
            waiting += ((each, depth + 1) for each in (inner.values() if isinstance(inner, dict) else inner))
    return False
