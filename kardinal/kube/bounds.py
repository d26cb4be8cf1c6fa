"""Bounds of what API servers answer: the hub's own, which is trusted, and those of clusters that tenants name.

`health.cluster` has the agent ask a server that the author of a kubeconfig has chosen. Its answers are counted before
they are decoded, and what a namespace keeps of all its clusters has to fit into one `Room`. The hub's answers are as
large as its objects, and still end somewhere.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, NamedTuple

import aiohttp
import orjson

from kardinal.bounded import ForeignBytes, JsonLimits, OverLimit, measure, mebibytes
from kardinal.kube.errors import ConnectionFailed, Expired
from kardinal.objects import JsonObject

__all__ = ["HUB", "TENANT", "Allowance", "Bounds", "Room", "checked_object", "decode_body", "read_body"]

_LARGE = 256 << 10
"""Bytes from which a document is decoded on a thread."""
_LEAST_OF_PAGE = 64 << 10
"""Bytes that a page counts for at least: one without items could be followed by others for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The most that is taken of one server.

    `answer`: of one page of a list, or one object. `event`: of one line of a watch. `page`: objects that are asked for
    at once. `trusted`: whether nesting and number go uncounted, and shapes unchecked.
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
    """The memory that objects of the clusters of one namespace may take."""

    def __init__(self, size: int = 64 << 20) -> None:
        self.left = size


class Allowance:
    """The part of a room that one collection has taken; without a room there is no bound."""

    def __init__(self, room: Room | None) -> None:
        self._room = room
        self._taken = 0

    def take(self, memory: int) -> None:
        """Count what was read. Raises `Expired`, after which the state is read again, where there is no room."""
        if self._room is None:
            return
        if memory > self._room.left:
            raise Expired(410, "Expired", "the objects of this cluster take more memory than they may")
        self._room.left -= memory
        self._taken += memory

    def take_page(self, memory: int) -> None:
        """Count a page of a list."""
        self.take(max(memory, _LEAST_OF_PAGE))

    def reset(self) -> None:
        """Give back what was taken: the state is read again, or the collection is not followed any more."""
        if self._room is not None:
            self._room.left += self._taken
        self._taken = 0


class Decoded(NamedTuple):
    """A document, and the bytes of memory that it takes at most; 0 where that is not counted."""

    value: Any
    memory: int


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """Return the body of an answer as it was sent; None where it has more than `limit` bytes.

    Nothing asks for compression. What is compressed all the same is not unpacked: a megabyte may become gigabytes.
    """
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise ConnectionFailed(
            f"{response.method} {response.url.path}: the answer is compressed, which nothing asks for"
        )
    if (response.content_length or 0) > limit:
        return None
    pieces, size = list[bytes](), 0
    while piece := await response.content.readany():
        size += len(piece)
        if size > limit:
            return None
        pieces.append(piece)
    return b"".join(pieces)


async def decode_body(content: bytes, limits: JsonLimits, *, trusted: bool) -> Decoded:
    """Return what a body or a line holds. Raises `OverLimit` before it is decoded, and `ValueError`."""
    if len(content) > limits.size:
        raise OverLimit(f"it has more than {limits.size:,} bytes")
    if len(content) >= _LARGE:
        return await asyncio.to_thread(_decode, content, limits, trusted)
    return _decode(content, limits, trusted)


def _decode(content: bytes, limits: JsonLimits, trusted: bool) -> Decoded:
    memory = 0 if trusted else measure(content, limits)
    return Decoded(orjson.loads(content), memory)


def checked_object(value: Any, *, named: bool = True) -> JsonObject:
    """Return an object of a server that is not trusted if its metadata has the right shape. Raises `ValueError`."""
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
    structure="as the API server admits them",
    time="30 s a request; 75 s of silence of a watch",
    held="what the informers of the program keep",
    decoded=f"event loop; thread from {mebibytes(_LARGE)}",
    tests=("kube/test_bounds.py::test_a_page_that_is_too_large_is_refused",),
)
