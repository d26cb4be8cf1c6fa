"""List objects, whole or in pieces, at the current revision or at an earlier one.

The state at an earlier revision is the state of now with the changes since then undone; the history has them, with what
was there before. So nothing is kept between two pieces of one list, however many clients read lists in pieces, and a
list is consistent for as long as the history reaches back. After that a client hears 410: as with a real server that
has compacted its history.

Trap: matching may take the fields of every object apart, so it pauses for others now and then; the entries and their
revision are taken in one stretch before.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from dataclasses import dataclass

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.objects.continuing import LATEST, Position, expired
from kardinal_local.plane.objects.freshness import Freshness
from kardinal_local.plane.objects.list_options import EXACT, ListOptions
from kardinal_local.plane.objects.revisions import parse_list_revision
from kardinal_local.plane.objects.selectors import Selector
from kardinal_local.plane.statuses import bad_request
from kardinal_local.plane.storage import Committed, Entry

__all__ = ["Chunk", "Lists"]

PORTION = 250


@dataclass(frozen=True, slots=True)
class Chunk:
    """The items of one answer, and its ListMeta."""

    entries: list[Entry]
    metadata: JsonObject


class Lists:
    """Reads collections of what is committed."""

    def __init__(self, store: Committed) -> None:
        self._store = store
        self.freshness = Freshness(store)

    async def read(self, kind: Kind, selector: Selector, options: ListOptions) -> Chunk:
        # What is asked for as it happens to be is given whole: the real server has it at hand.
        limit = 0 if options.revision == "0" else max(options.limit, 0)
        start = ""
        if options.token:
            position = Position.parse(options.token)
            if options.revision not in {"", "0"}:
                raise bad_request("specifying resource version is not allowed when using continue")
            candidates, revision = await self._rest(kind, selector, position)
            start = position.key
        else:
            candidates, revision = await self._beginning(kind, selector, options)
        first = bisect_left(candidates, start, key=lambda entry: _key(entry, selector)) if start else 0
        chosen, next_one = await _matching(candidates, selector, first=first, limit=limit)
        metadata: JsonObject = {"resourceVersion": str(revision)}
        if next_one < len(candidates):
            metadata["continue"] = Position(revision, f"{_key(chosen[-1], selector)}\0").token()
            if selector.everything:
                metadata["remainingItemCount"] = len(candidates) - next_one
        return Chunk(chosen, metadata)

    def select(self, kind: Kind, selector: Selector) -> list[Entry]:
        """The objects that match now, in the order of their keys."""
        candidates = self.candidates(kind, selector)
        return candidates if selector.everything else [entry for entry in candidates if selector.matches(entry)]

    def candidates(self, kind: Kind, selector: Selector) -> list[Entry]:
        """Those that have to be looked at: one where a name is given."""
        name = selector.fields.wanted("metadata.name")
        namespace = selector.namespace or selector.fields.wanted("metadata.namespace") or ""
        if name is not None and (namespace or not kind.namespaced):
            entry = self._store.get(kind.storage, namespace=namespace, name=name)
            return [] if entry is None else [entry]
        return self._store.entries(kind.storage, namespace=namespace)

    async def _beginning(self, kind: Kind, selector: Selector, options: ListOptions) -> tuple[list[Entry], int]:
        revision = parse_list_revision(options.revision)
        if revision is None:
            return self.candidates(kind, selector), self._store.revision
        await self.freshness.reach(revision)
        # Without a word on how it is meant, a revision is a lower bound, but exact for the first of several pieces.
        if options.match != EXACT and (options.match or options.limit <= 0):
            return self.candidates(kind, selector), self._store.revision
        try:
            return self._past(kind, selector, revision=revision), revision
        except StatusError:
            raise StatusError(410, "Expired", "The resourceVersion for the provided list is too old.") from None

    async def _rest(self, kind: Kind, selector: Selector, position: Position) -> tuple[list[Entry], int]:
        if position.revision <= LATEST:
            return self.candidates(kind, selector), self._store.revision
        await self.freshness.reach(position.revision)
        try:
            return self._past(kind, selector, revision=position.revision), position.revision
        except StatusError:
            raise expired(position) from None

    def _past(self, kind: Kind, selector: Selector, *, revision: int) -> list[Entry]:
        """The objects of `kind` as they were; 410 when the history does not reach back so far."""
        changes = self._store.history.since(kind.storage, revision=revision)
        if not changes:
            return self.candidates(kind, selector)
        entries = self._store.entries(kind.storage, namespace=selector.namespace)
        found = {(entry.namespace, entry.name): entry for entry in entries}
        for change in reversed(changes):
            key = (change.entry.namespace, change.entry.name)
            if selector.namespace not in {"", change.entry.namespace}:
                continue
            if change.previous is None:
                found.pop(key, None)
            else:
                found[key] = change.previous
        return sorted(found.values(), key=lambda entry: f"{entry.namespace}/{entry.name}")


async def _matching(candidates: list[Entry], selector: Selector, *, first: int, limit: int) -> tuple[list[Entry], int]:
    """At most `limit` entries that match, and where the next piece has to look."""
    if selector.everything:
        end = first + limit if limit else len(candidates)
        return candidates[first:end], min(end, len(candidates))
    chosen: list[Entry] = []
    for index in range(first, len(candidates)):
        if selector.matches(candidates[index]):
            chosen.append(candidates[index])
            if len(chosen) == limit:
                return chosen, index + 1
        if index % PORTION == 0:
            await asyncio.sleep(0)
    return chosen, len(candidates)


def _key(entry: Entry, selector: Selector) -> str:
    """The key of an entry within what is listed."""
    return entry.name if selector.namespace or not entry.namespace else f"{entry.namespace}/{entry.name}"
