"""Limits on the answers of API servers: of the program's own, which is trusted, and of clusters that tenants name.

With `health.cluster`, the agent connects to a server that the author of a kubeconfig has chosen. The answers of such a
server are measured before they are decoded, and all objects that a namespace keeps from its clusters must fit into one
`Room`. The answers of the own server may be as large as its objects, but they are limited, too.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, NamedTuple

import aiohttp
import orjson

from kardinal.bounded import ForeignBytes, JsonLimits, OverLimit, measure, mebibytes
from kardinal.bounded.nesting import shallow
from kardinal.kube.errors import ConnectionFailed, Expired
from kardinal.objects import JsonObject

__all__ = ["HUB", "TENANT", "Allowance", "Bounds", "Room", "checked_object", "decode_body", "read_body"]

_LARGE = 256 << 10
"""A document of at least this size in bytes is decoded on a thread."""
_LEVELS = 128
"""The levels of nesting that are kept of a document of the own API server that is too deep."""
_ENCODED = 254
"""The levels that orjson encodes; it decodes 1,024."""
_DEEPEST = _ENCODED - 32
"""The levels of an object that is kept whole: it can be written again, also as a part of another one."""
_LEAST_OF_PAGE = 64 << 10
"""The minimum size in bytes for which a page counts, because a server could send empty pages without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits on the answers of one server.

    `answer`: for one page of a list, or one object. `event`: for one line of a watch. `page`: the number of objects
    that are requested at once. `trusted`: nesting, number and shape of values are not checked.
    """

    answer: JsonLimits
    event: JsonLimits
    page: int
    trusted: bool


HUB = Bounds(answer=JsonLimits(size=256 << 20), event=JsonLimits(size=16 << 20), page=500, trusted=True)
TENANT = Bounds(
    answer=JsonLimits(size=8 << 20, containers=50_000, pieces=400_000),
    event=JsonLimits(size=3 << 20, containers=20_000, pieces=100_000),
    page=50,
    trusted=False,
)


class Room:
    """The memory, in bytes, that the objects from all clusters of one namespace may take."""

    def __init__(self, size: int = 64 << 20) -> None:
        self.left = size


class Allowance:
    """The part of a room that one collection has taken. Without a room there is no limit."""

    def __init__(self, room: Room | None) -> None:
        self._room = room
        self._taken = 0

    def take(self, memory: int) -> None:
        """Count `memory` bytes. Raises `Expired` if the room is used up; the caller then reads the state again."""
        if self._room is None:
            return
        if memory > self._room.left:
            raise Expired(410, "Expired", "the objects of this cluster take more memory than they may")
        self._room.left -= memory
        self._taken += memory

    def take_page(self, memory: int) -> None:
        """Count the memory of one page of a list."""
        self.take(max(memory, _LEAST_OF_PAGE))

    def reset(self) -> None:
        """Give back all memory, because the state is read again or the collection is no longer followed."""
        if self._room is not None:
            self._room.left += self._taken
        self._taken = 0


class Decoded(NamedTuple):
    """A decoded document and the most bytes of memory that it takes; 0 if they are not counted."""

    value: Any
    memory: int


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """Return the body of an answer as it was sent; None if it has more than `limit` bytes.

    No request asks for compression, so a compressed answer raises `ConnectionFailed`: a megabyte could become
    gigabytes.
    """
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ConnectionFailed(
            f"{response.method} {response.url.path}: the answer is compressed, which nothing asks for"
        )
    if (response.content_length or 0) > limit:
        return None
    pieces = list[bytes]()
    size = 0
    while piece := await response.content.readany():
        size += len(piece)
        if size > limit:
            return None
        pieces.append(piece)
    return b"".join(pieces)


async def decode_body(content: bytes, limits: JsonLimits, *, trusted: bool) -> Decoded:
    """Decode a body or a line. Raises `OverLimit` before decoding, and `ValueError` if it is not JSON."""
    if len(content) > limits.size:
        raise OverLimit(f"it has more than {limits.size:,} bytes")
    if len(content) >= _LARGE:
        return await asyncio.to_thread(_decode, content, limits, trusted)
    return _decode(content, limits, trusted)


def _decode(content: bytes, limits: JsonLimits, trusted: bool) -> Decoded:
    memory = 0 if trusted else measure(content, limits)
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:
        if not trusted:
            raise
        value = None
    # Otherwise, one deep object would make the list of all objects unreadable for as long as it exists.
    if trusted and (value is None or not _is_writable(value, content)):
        value = orjson.loads(shallow(content, _LEVELS))
    return Decoded(value, memory)


def _is_writable(value: Any, content: bytes) -> bool:
    """Return whether no object in a decoded document is deeper than `_DEEPEST` levels."""
    if content.count(b"{") + content.count(b"[") <= _DEEPEST:
        return True
    items = value.get("items") if isinstance(value, dict) else None
    try:
        for each in items if isinstance(items, list) else [value]:
            deeper = each
            for _ in range(_ENCODED - _DEEPEST):
                deeper = [deeper]
            orjson.dumps(deeper)
    except TypeError:
        return False
    return True


def checked_object(value: Any, *, named: bool = True) -> JsonObject:
    """Return `value` if it is an object whose metadata has the right types. Raises `ValueError`."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(metadata, dict):
        raise ValueError("an object has no metadata")
    texts = ("name", "uid") if named else ()
    if not all(isinstance(metadata.get(field), str) for field in (*texts, "resourceVersion")):
        raise ValueError("an object has no name, uid or resourceVersion")
    if not isinstance(metadata.get("namespace", ""), str):
        raise ValueError("the namespace of an object is no text")
    for field in ("annotations", "labels"):
        entries = metadata.get(field) or {}
        if not isinstance(entries, dict) or not all(isinstance(each, str) for each in entries.values()):
            raise ValueError(f"the {field} of an object are no texts")
    found: JsonObject = value
    return found


FOREIGN = ForeignBytes(
    "answers of the cluster of `health.cluster`",
    of="tenant",
    size=f"{mebibytes(TENANT.answer.size)} a page of {TENANT.page} objects, {mebibytes(TENANT.event.size)} a line of a "
    "watch, 1 MiB an error",
    unpacked="not asked for, and refused",
    structure=f"a page {TENANT.answer.structure}; a line {TENANT.event.structure}",
    time="30 s a request; 75 s of silence, and as long as was asked for and a minute, of a watch",
    held=f"{mebibytes(Room().left)} of memory for all clusters of a namespace, and one page",
    decoded=f"event loop; thread from {mebibytes(_LARGE)}",
    tests=(
        "attacks/test_remote_clusters.py::test_a_compressed_answer_is_not_unpacked",
        "attacks/test_remote_clusters.py::test_an_answer_or_a_line_without_an_end_is_cut_off",
        "attacks/test_remote_clusters.py::test_objects_without_an_end_are_given_up",
        "attacks/test_remote_clusters.py::test_nothing_that_a_cluster_answers_stops_the_agent",
    ),
)

FOREIGN_HUB = ForeignBytes(
    "answers of the API server of the programs themselves",
    of="trusted; tenants write its objects",
    size=f"{mebibytes(HUB.answer.size)} a page of {HUB.page} objects, {mebibytes(HUB.event.size)} a line of a watch",
    unpacked="not asked for, and refused",
    structure=f"as the API server admits them; of what is deeper than {_DEEPEST} levels the first {_LEVELS}",
    time="30 s a request; 75 s of silence of a watch",
    held="what the informers of the program keep",
    decoded=f"event loop; thread from {mebibytes(_LARGE)}",
    tests=("kube/test_bounds.py::test_a_page_that_is_too_large_is_refused", "attacks/test_nesting.py"),
)
