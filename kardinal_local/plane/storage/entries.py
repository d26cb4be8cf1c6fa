"""The stored form of objects, and of the changes to them.

An entry holds the bytes a client reads and the few facts that are asked for without decoding them; the document itself
is never kept. Entries are immutable, so a list, a watcher and the history can share one without a copy.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

import orjson

from kardinal_local.plane.documents import JsonObject

__all__ = ["Change", "ChangeType", "Entry", "Key", "make_entry"]

Key = tuple[str, str, str]
"""Resource, namespace and name."""

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

_OVERHEAD = 1024
"""Bytes that a change takes besides those of its two bodies."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One state of one object.

    `lossy`: it was written with nulls or empty metadata that read as something else, so to write what it reads as is a
    change. Forgotten at a restart.
    """

    resource: str
    namespace: str
    name: str
    uid: str
    revision: int
    labels: dict[str, str]
    owners: tuple[str, ...]
    raw: bytes
    lossy: bool = False

    @property
    def key(self) -> Key:
        return self.resource, self.namespace, self.name

    def decode(self) -> JsonObject:
        """A fresh document that the caller may change."""
        document: JsonObject = orjson.loads(self.raw)
        return document


@dataclass(frozen=True, slots=True)
class Change:
    """One write; `previous` is the state before it, `entry` the state after it (for DELETED: the last one)."""

    type: ChangeType
    entry: Entry
    previous: Entry | None

    @property
    def weight(self) -> int:
        """The memory it keeps alive, at most: its bodies may be shared with other changes."""
        return _OVERHEAD + len(self.entry.raw) + (0 if self.previous is None else len(self.previous.raw))


def make_entry(resource: str, document: JsonObject, raw: bytes | None = None, *, lossy: bool = False) -> Entry:
    """The entry of a document, committed or not (a dry run is answered with one that is not)."""
    metadata = document["metadata"]
    return Entry(
        # Shared by thousands of objects, and yet a new string in each document that was read.
        resource=sys.intern(resource),
        namespace=sys.intern(metadata.get("namespace", "")),
        name=metadata["name"],
        uid=metadata["uid"],
        revision=int(metadata.get("resourceVersion") or 0),
        labels=metadata.get("labels") or {},
        owners=tuple(reference["uid"] for reference in metadata.get("ownerReferences") or ()),
        raw=_encoded(document) if raw is None else raw,
        lossy=lossy,
    )


def _encoded(document: JsonObject) -> bytes:
    # A copy: orjson hands out the buffer it wrote to, of which an object of 2 KB fills a quarter.
    return bytes(memoryview(orjson.dumps(document)))
