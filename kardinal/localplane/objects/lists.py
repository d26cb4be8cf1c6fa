"""Lists, whole or in pieces, at a revision.

Entries are immutable, so the rest of a list that a client reads in pieces is kept as it was when the first piece was
cut: every piece comes from the same revision. Kept lists are few and forgotten oldest first; whose rest is gone hears
410 and begins again, as with a real server that has compacted its history.
"""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause, StatusError
from kardinal.localplane.kinds import Kind
from kardinal.localplane.objects.revisions import parse_list_revision, revision_too_large
from kardinal.localplane.objects.selectors import Selector
from kardinal.localplane.statuses import bad_request, invalid
from kardinal.localplane.storage import Committed, Entry

__all__ = ["Chunk", "Lists"]

KEPT_LISTS = 64


@dataclass(frozen=True, slots=True)
class Chunk:
    """The items of one answer, and its ListMeta."""

    entries: list[Entry]
    metadata: JsonObject


class Lists:
    """Reads collections of what is committed."""

    def __init__(self, store: Committed) -> None:
        self._store = store
        self._kept: OrderedDict[tuple[str, Selector, int], list[Entry]] = OrderedDict()

    def read(self, kind: Kind, selector: Selector, query: Mapping[str, str]) -> Chunk:
        token = query.get("continue", "")
        match = query.get("resourceVersionMatch", "")
        revision = parse_list_revision(query.get("resourceVersion", ""))
        _check_parameters(kind, query, match=match, token=token, revision=revision)
        limit = _limit(query)
        start, revision_read = "", self._store.revision
        if token:
            revision_read, start = _parse_token(token)
            entries = self._kept_list(kind, selector, revision=revision_read)
        else:
            self._require_revision(revision, match=match)
            entries = self.select(kind, selector)
        remaining = [entry for entry in entries if _key(entry) > start] if start else entries
        metadata: JsonObject = {"resourceVersion": str(revision_read)}
        if 0 < limit < len(remaining):
            chosen, left = remaining[:limit], len(remaining) - limit
            metadata["continue"] = _token(revision_read, _key(chosen[-1]))
            if selector.everything:
                metadata["remainingItemCount"] = left
            self._keep(kind, selector, revision=revision_read, entries=entries)
            return Chunk(chosen, metadata)
        return Chunk(remaining, metadata)

    def select(self, kind: Kind, selector: Selector) -> list[Entry]:
        """The objects that match now, in the order of their keys."""
        name = selector.fields.wanted("metadata.name")
        namespace = selector.namespace or selector.fields.wanted("metadata.namespace") or ""
        if name is not None and (namespace or not kind.namespaced):
            entry = self._store.get(kind.storage, namespace=namespace, name=name)
            candidates = [] if entry is None else [entry]
        else:
            candidates = self._store.entries(kind.storage, namespace=namespace)
        return candidates if selector.everything else [entry for entry in candidates if selector.matches(entry)]

    def _require_revision(self, revision: int | None, *, match: str) -> None:
        if revision is None:
            return
        if revision > self._store.revision:
            raise revision_too_large(revision, current=self._store.revision)
        if match == "Exact" and revision != self._store.revision:
            raise StatusError(410, "Expired", "The resourceVersion for the provided list is too old.")

    def _keep(self, kind: Kind, selector: Selector, *, revision: int, entries: list[Entry]) -> None:
        key = (kind.storage, selector, revision)
        self._kept[key] = entries
        self._kept.move_to_end(key)
        if len(self._kept) > KEPT_LISTS:
            self._kept.popitem(last=False)

    def _kept_list(self, kind: Kind, selector: Selector, *, revision: int) -> list[Entry]:
        entries = self._kept.get((kind.storage, selector, revision))
        if entries is None:
            raise StatusError(
                410,
                "Expired",
                "The provided continue parameter is too old to display a consistent list result. You must start a new "
                "list without the continue parameter.",
            )
        return entries


def _check_parameters(kind: Kind, query: Mapping[str, str], *, match: str, token: str, revision: int | None) -> None:
    problem = ""
    if query.get("sendInitialEvents"):
        problem = "sendInitialEvents is forbidden for list"
    elif match and match not in {"Exact", "NotOlderThan"}:
        problem = f'resourceVersionMatch: Unsupported value: "{match}": supported values: "Exact", "NotOlderThan"'
    elif match and not query.get("resourceVersion"):
        problem = "resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match and token:
        problem = "resourceVersionMatch is forbidden when continue is provided"
    elif match == "Exact" and revision is None:
        problem = 'resourceVersionMatch is forbidden: "Exact" for resourceVersion "0"'
    if problem:
        raise invalid(kind, "", [Cause("FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {problem}")])
    if token and revision is not None:
        raise bad_request("specifying resource version is not allowed when using continue")


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", "") or "0"
    if not text.isascii() or not text.isdigit():
        raise bad_request(f"limit: {text!r} is not a number")
    return int(text)


def _key(entry: Entry) -> str:
    return f"{entry.namespace}/{entry.name}"


def _token(revision: int, start: str) -> str:
    document = {"v": "meta.k8s.io/v1", "rv": revision, "start": start}
    return base64.urlsafe_b64encode(orjson.dumps(document)).decode().rstrip("=")


def _parse_token(token: str) -> tuple[int, str]:
    try:
        document = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(document["rv"]), str(document["start"])
    except (binascii.Error, ValueError, KeyError, TypeError):
        raise bad_request(f"invalid continue token: {token!r}") from None
