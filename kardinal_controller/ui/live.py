"""Live documents: the present state, and the last patches that led to it, shared by all who look.

A reader has a position, the number of the last state that it was sent. It asks for the patches after that; if they are
no longer kept, it gets a snapshot. So a slow reader has no queue of its own, and one that comes back is a slow reader.

    position = live.number
    frames = live.after(position)   # None: take a snapshot

The overview is one document for each set of namespaces, of which viewers have few. Its rows and patches are encoded
once; for a set of namespaces they are only joined.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import orjson

from kardinal_controller.ui.frames import StreamEvent, event
from kardinal_controller.ui.patches import difference

__all__ = ["KEPT", "LiveDocument", "LiveOverview", "Numbers", "Snapshot"]

KEPT = 256
"""The number of patches that are kept: a reader that is further behind gets a snapshot."""
PART = 200
"""The most rows in one event of a snapshot."""
_SETS = 256
"""The most sets of namespaces whose patches are made; viewers beyond them get snapshots."""

Json = dict[str, Any]
Namespaces = frozenset[str]


class Numbers:
    """The numbers of states, unique in one process. `replica` distinguishes the process from all others."""

    def __init__(self, replica: str) -> None:
        self.replica = replica
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last

    def identifier(self, number: int) -> str:
        """Return the id of an event, for example `7f3c-42`."""
        return f"{self.replica}-{number}"

    def parse(self, identifier: str) -> int | None:
        """Return the number in an id; None if it is of another process, or no id."""
        replica, _, number = identifier.rpartition("-")
        return int(number) if replica == self.replica and number.isascii() and number.isdecimal() else None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A whole document as events, and the number of its state."""

    number: int
    frames: Sequence[StreamEvent]


class _Numbered(Protocol):
    @property
    def number(self) -> int: ...


P = TypeVar("P", bound=_Numbered)


class _Patches(Generic[P]):
    """The last patches, oldest first, and the number of the state before the first of them."""

    def __init__(self, base: int) -> None:
        self._base = base
        self._kept: deque[P] = deque()

    def add(self, patch: P) -> None:
        self._kept.append(patch)
        if len(self._kept) > KEPT:
            self._base = self._kept.popleft().number

    def after(self, number: int) -> list[P] | None:
        """Return the patches after a state; None if not all of them are kept."""
        later: list[P] = []
        for patch in reversed(self._kept):
            if patch.number == number:
                return later[::-1]
            later.append(patch)
        return later[::-1] if number == self._base else None


@dataclass(slots=True)
class _Watched:
    """The functions to call after a change."""

    watchers: set[Callable[[], None]] = field(default_factory=set)

    def tell(self) -> None:
        for changed in list(self.watchers):
            changed()


@dataclass(frozen=True, slots=True)
class _Patch:
    number: int
    frame: StreamEvent


class LiveDocument:
    """One document, such as a `PipelineDocument`; `ended` is the reason why there is none any more."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._patches = _Patches[_Patch](0)
        self._watched = _Watched()
        self._snapshot: Snapshot | None = None
        self.number = 0
        self.content: Json = {}
        self.ended = ""

    @property
    def watchers(self) -> set[Callable[[], None]]:
        return self._watched.watchers

    def put(self, content: Json) -> None:
        """Take the new state; nothing happens if it is the same."""
        self.ended = ""
        first = not self.number
        patch = {} if first else difference(self.content, content)
        if not first and not patch:
            return
        self.number = self._numbers.next()
        self.content = content
        self._snapshot = None
        if first:
            self._patches = _Patches(self.number)
        else:
            frame = event("patch", patch, identifier=self._numbers.identifier(self.number))
            self._patches.add(_Patch(self.number, frame))
        self._watched.tell()

    def end(self, reason: str) -> None:
        """Note that the object is gone."""
        self.ended = reason
        self._watched.tell()

    def after(self, number: int) -> list[StreamEvent] | None:
        """Return the patches after a state; None if not all of them are kept."""
        if number == self.number:
            return []
        later = self._patches.after(number)
        return None if later is None else [patch.frame for patch in later]

    def snapshot(self) -> Snapshot:
        if self._snapshot is None:
            identifier = self._numbers.identifier(self.number)
            whole = event("snapshot", self.content, identifier=identifier)
            self._snapshot = Snapshot(self.number, (whole, event("complete", b"{}", identifier=identifier)))
        return self._snapshot


@dataclass(frozen=True, slots=True)
class _Entry:
    """A row; `encoded` is `"shop/search":{…}`."""

    content: Json
    encoded: bytes


@dataclass(slots=True)
class _OverviewPatch:
    """The changes of one moment: of rows by namespace, encoded, and of notices by set of namespaces."""

    number: int
    rows: Mapping[str, Sequence[bytes]]
    notices: Mapping[Namespaces, Json]
    frames: dict[Namespaces, StreamEvent | None] = field(default_factory=dict)

    def frame(self, namespaces: Namespaces, identifier: str) -> StreamEvent | None:
        """Return the event for viewers of these namespaces; None if nothing of theirs has changed."""
        if namespaces not in self.frames:
            rows = [piece for namespace, pieces in self.rows.items() if namespace in namespaces for piece in pieces]
            notices = self.notices[namespaces]
            parts = {**({"rows": rows} if rows else {}), **({"notices": _pieces(notices)} if notices else {})}
            self.frames[namespaces] = event("patch", _document(parts), identifier=identifier) if parts else None
        return self.frames[namespaces]


class LiveOverview:
    """The rows of all Pipelines by namespace. `notices` returns those above the rows of a set of namespaces."""

    def __init__(self, numbers: Numbers, notices: Callable[[Namespaces], Json]) -> None:
        self._numbers = numbers
        self._notices = notices
        self.number = numbers.next()
        self._patches = _Patches[_OverviewPatch](self.number)
        self._watched = _Watched()
        self._rows: dict[str, dict[str, _Entry]] = {}
        self._before: dict[tuple[str, str], _Entry | None] = {}
        # By each set of namespaces that a viewer has, the notices that were sent last.
        self._sets: OrderedDict[Namespaces, Json] = OrderedDict()
        self._snapshots: dict[Namespaces, asyncio.Task[Snapshot]] = {}
        self._packing: set[asyncio.Task[Snapshot]] = set()

    @property
    def watchers(self) -> set[Callable[[], None]]:
        return self._watched.watchers

    @property
    def namespaces(self) -> Namespaces:
        """The namespaces that have a row."""
        return frozenset(self._rows)

    def rows(self, namespaces: Iterable[str]) -> list[tuple[str, Json]]:
        """Return the keys and rows of namespaces, sorted by namespace and name."""
        return [
            (key, entry.content)
            for namespace in sorted(namespaces)
            for key, entry in sorted(self._rows.get(namespace, {}).items())
        ]

    def put(self, namespace: str, key: str, content: Json | None) -> None:
        """Take a row, or remove it with None; `publish` sends all changes as one patch."""
        entries = self._rows.setdefault(namespace, {})
        before = entries.get(key)
        if content is None:
            entries.pop(key, None)
        elif before is None or before.content != content:
            entries[key] = _Entry(content, _name(key) + orjson.dumps(content))
        if entries.get(key) is not before:
            self._before.setdefault((namespace, key), before)
        if not entries:
            del self._rows[namespace]

    def publish(self) -> None:
        """Make one patch of the changes since the last one."""
        rows: dict[str, list[bytes]] = {}
        for (namespace, key), before in self._before.items():
            change = _change(before, self._rows.get(namespace, {}).get(key))
            if change is not None:
                rows.setdefault(namespace, []).append(_name(key) + change)
        self._before.clear()
        if not rows:
            return
        notices = {}
        for namespaces, sent in self._sets.items():
            now = self._notices(namespaces)
            notices[namespaces] = difference(sent, now)
            self._sets[namespaces] = now
        self.number = self._numbers.next()
        self._snapshots.clear()
        self._patches.add(_OverviewPatch(self.number, rows, notices))
        self._watched.tell()

    def after(self, number: int, namespaces: Namespaces) -> list[StreamEvent] | None:
        """Return the patches of these namespaces after a state; None if not all of them are kept."""
        if number == self.number:
            return []
        later = self._patches.after(number)
        if later is None or any(namespaces not in each.notices for each in later):
            return None
        frames = [each.frame(namespaces, self._numbers.identifier(each.number)) for each in later]
        return [frame for frame in frames if frame is not None]

    async def snapshot(self, namespaces: Namespaces) -> Snapshot:
        """Return the snapshot for viewers of these namespaces, whose events are compressed on a thread."""
        if namespaces not in self._sets:
            self._sets[namespaces] = self._notices(namespaces)
        self._sets.move_to_end(namespaces)
        if len(self._sets) > _SETS:
            self._sets.popitem(last=False)
        task = self._snapshots.get(namespaces)
        if task is None:
            task = asyncio.create_task(self._packed(self._whole(namespaces)))
            self._snapshots[namespaces] = task
            self._packing.add(task)
            task.add_done_callback(self._packing.discard)
        return await asyncio.shield(task)

    async def stop(self) -> None:
        """Wait for the threads that compress."""
        await asyncio.gather(*self._packing, return_exceptions=True)

    @staticmethod
    async def _packed(snapshot: Snapshot) -> Snapshot:
        await asyncio.to_thread(lambda: [frame.packed for frame in snapshot.frames])
        return snapshot

    def _whole(self, namespaces: Namespaces) -> Snapshot:
        rows = [
            entry.encoded
            for namespace in sorted(namespaces)
            for _, entry in sorted(self._rows.get(namespace, {}).items())
        ]
        pieces = [rows[start : start + PART] for start in range(0, len(rows), PART)] or [[]]
        notices = _pieces(self._sets[namespaces])
        parts = [{"rows": piece, "notices": notices if not number else []} for number, piece in enumerate(pieces)]
        identifier = self._numbers.identifier(self.number)
        # Only the end has the id: who is cut off before it has not got this state.
        frames = [event("snapshot", _document(part)) for part in parts]
        return Snapshot(self.number, (*frames, event("complete", b"{}", identifier=identifier)))


def _change(before: _Entry | None, now: _Entry | None) -> bytes | None:
    """Return the patch of one row, `null` if it is gone, and None if nothing has changed."""
    if now is None:
        return None if before is None else b"null"
    if before is None:
        return orjson.dumps(now.content)
    patch = difference(before.content, now.content)
    return orjson.dumps(patch) if patch else None


def _pieces(content: Json) -> list[bytes]:
    return [_name(key) + orjson.dumps(value) for key, value in content.items()]


def _name(key: str) -> bytes:
    return orjson.dumps(key) + b":"


def _document(parts: Mapping[str, Iterable[bytes]]) -> bytes:
    return b"{" + b",".join(_name(part) + b"{" + b",".join(pieces) + b"}" for part, pieces in parts.items()) + b"}"
