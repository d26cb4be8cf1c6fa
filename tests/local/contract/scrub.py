"""Renaming what differs from run to run, so that two runs can be compared.

Nothing is dropped and nothing is loosened: equal things get equal names, different things different ones. UIDs, tokens
and generated names become id-1, id-2, ... in the order in which they are first seen; a moment becomes T (or T.micro,
which is another type), unless the test itself sent it.

A resourceVersion becomes its rank among those of the objects in the same recording, so equality and order still count.
What belongs to no object (a list's, a bookmark's, one in a query) becomes the rank of the newest object that it
includes: on a real server, others write between two requests of a test.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

__all__ = ["scrub", "timestamps"]

_UID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
_JWT = r"\beyJ[\w-]+\.[\w-]+\.[\w-]+"
_MOMENT = r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
_SPOKEN_REVISION = re.compile(r"(resource ?version\D{0,30}|current: )(\d+)", re.IGNORECASE)
_AGE = re.compile(r"(?:\d+[ydhms]){1,2}")
_CONTINUE = re.compile(r"(?<=[?&]continue=)[^&]+")


def timestamps(text: str) -> set[str]:
    """The moments named in `text`."""
    return set(re.findall(_MOMENT, text))


def scrub(documents: Sequence[Any], *, names: Mapping[str, str], constants: Set[str] = frozenset()) -> list[Any]:
    """The documents renamed; `names` has known names, `constants` are moments to keep."""
    scrubber = _Scrubber(documents, names=names, constants=constants)
    return [scrubber.clean(document) for document in documents]


class _Scrubber:
    def __init__(self, documents: Sequence[Any], *, names: Mapping[str, str], constants: Set[str]) -> None:
        self._names = names
        self._constants = constants
        self._ids: dict[str, str] = {}
        self._revisions = sorted({revision for document in documents for revision in _object_revisions(document)})
        made = {name for document in documents for name in _made_names(document)}
        known = sorted({*names, *made}, key=len, reverse=True)
        self._pattern = re.compile("|".join([*map(re.escape, known), _UID, _JWT, _MOMENT]))

    def clean(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            # Sorted: the order of keys is no part of a document, but decides which UID is seen first.
            return {self._text(name): self.clean(value[name], name) for name in sorted(value)}
        if isinstance(value, list):
            return [self.clean(item, key) for item in value]
        if not isinstance(value, str):
            return value
        if key == "resourceVersion" and value.isdigit():
            return self._rank(value)
        if key == "cells" and _AGE.fullmatch(value):
            return "T"
        if key == "continue" and value:
            return "C"
        if key == "token" and value:
            return self._id(value)
        if key == "request":
            value = _CONTINUE.sub("C", value)
        if key in {"message", "request"}:
            value = _SPOKEN_REVISION.sub(lambda match: match[1] + self._rank(match[2]), value)
        return self._text(value)

    def _text(self, text: str) -> str:
        return self._pattern.sub(self._renamed, text)

    def _renamed(self, match: re.Match[str]) -> str:
        found = match[0]
        if found in self._names:
            return self._names[found]
        if not re.fullmatch(_MOMENT, found):
            return self._id(found)
        if found in self._constants:
            return found
        return "T.micro" if "." in found else "T"

    def _id(self, found: str) -> str:
        return self._ids.setdefault(found, f"id-{len(self._ids) + 1}")

    def _rank(self, revision: str) -> str:
        return f"rv-{bisect.bisect_right(self._revisions, int(revision))}" if int(revision) else revision


def _object_revisions(value: Any) -> Iterator[int]:
    """The resourceVersions of objects, not those of lists, tables and bookmarks."""
    if isinstance(value, list):
        for item in value:
            yield from _object_revisions(item)
    if not isinstance(value, dict):
        return
    of_many = str(value.get("kind", "")).endswith(("List", "Table"))
    for key, member in value.items():
        if key == "metadata" and isinstance(member, dict) and not of_many:
            revision = member.get("resourceVersion")
            if isinstance(revision, str) and revision.isdigit() and int(revision):
                yield int(revision)
        elif not (key == "object" and value.get("type") == "BOOKMARK"):
            yield from _object_revisions(member)


def _made_names(value: Any) -> Iterator[str]:
    """The names that the server made."""
    if isinstance(value, list):
        for item in value:
            yield from _made_names(item)
    if isinstance(value, dict):
        name, prefix = value.get("name"), value.get("generateName")
        if isinstance(name, str) and isinstance(prefix, str) and prefix and name.startswith(prefix) and name != prefix:
            yield name
        for member in value.values():
            yield from _made_names(member)
