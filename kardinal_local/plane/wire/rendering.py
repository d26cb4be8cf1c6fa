"""Render objects as the bytes of a response.

An object is stored as the JSON a client reads, so the common cases (get, list and watch of plain objects) copy bytes
and decode nothing. Rows of tables are rendered in portions, between which other tasks run: a table of ten thousand
objects would otherwise hold the event loop for a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.objects import viewed
from kardinal_local.plane.storage import Entry
from kardinal_local.plane.tables import table
from kardinal_local.plane.wire.negotiation import Form, Representation

__all__ = ["Renderer"]

# Objects are copied; what has to be taken apart comes in smaller portions.
PORTIONS = {Form.OBJECT: 250, Form.METADATA_LIST: 100, Form.TABLE: 20}


class Renderer:
    """One kind in one representation, as one request asked for it."""

    def __init__(self, kind: Kind, representation: Representation, *, include_object: str, now: datetime) -> None:
        self._kind = kind
        self._representation = representation
        self._include_object = include_object or "Metadata"
        self._now = now
        self._type_prefix = orjson.dumps({"apiVersion": kind.api_version, "kind": kind.kind})[:-1] + b","

    def object(self, entry: Entry, *, headers: bool = True) -> bytes:
        """One object; a table without `headers` continues an earlier one."""
        match self._representation.form:
            case Form.TABLE:
                metadata = {"resourceVersion": str(entry.revision)}
                return orjson.dumps(self._table([entry], metadata=metadata, headers=headers))
            case Form.METADATA:
                return orjson.dumps(self._partial(entry))
            case Form.METADATA_LIST:
                if self._kind.custom:
                    raise StatusError(500, "", "content is not a list")
                raise self._not_acceptable(f"is not a list (*{self._go_package}.{self._kind.kind})")
        return self._plain(entry)

    def bookmark(self, revision: int, *, initial_events_end: bool, headers: bool = True) -> bytes:
        """The object of a BOOKMARK event: a position without content."""
        metadata: JsonObject = {"resourceVersion": str(revision)}
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        document: JsonObject = {"apiVersion": self._kind.api_version, "kind": self._kind.kind, "metadata": metadata}
        match self._representation.form:
            case Form.TABLE:
                document = self._rendered([document], metadata={"resourceVersion": str(revision)}, headers=headers)
            case Form.METADATA | Form.METADATA_LIST:
                document |= self._partial_type("PartialObjectMetadata")
        return orjson.dumps(document)

    async def list(self, entries: Sequence[Entry], *, metadata: JsonObject) -> AsyncIterator[bytes]:
        """A list in portions."""
        form = self._representation.form
        if form is Form.METADATA:
            name = "UnstructuredList" if self._kind.custom else self._kind.list_kind
            raise self._not_acceptable(f"is a list (*{self._go_package}.{name})")
        yield self._head(metadata)
        portion = PORTIONS[form]
        for start in range(0, len(entries), portion):
            chosen = entries[start : start + portion]
            items = self._rows(chosen) if form is Form.TABLE else b",".join(map(self._item, chosen))
            yield items if start == 0 else b"," + items
            await asyncio.sleep(0)
        yield b"]}"

    def _head(self, metadata: JsonObject) -> bytes:
        """A list up to its first item."""
        match self._representation.form:
            case Form.TABLE:
                whole = self._empty_table(metadata)
                del whole["rows"]
                return orjson.dumps(whole)[:-1] + b',"rows":['
            case Form.METADATA_LIST:
                head = self._partial_type("PartialObjectMetadataList")
            case _:
                head = {"apiVersion": self._kind.api_version, "kind": self._kind.list_kind}
                # A real server that lists objects without their type always writes an empty `continue`.
                metadata = {"continue": "", **metadata} if self._kind.custom else metadata
        return orjson.dumps(head | {"metadata": metadata})[:-1] + b',"items":['

    def _rows(self, entries: Sequence[Entry]) -> bytes:
        return orjson.dumps(self._table(entries, metadata={}, headers=False)["rows"])[1:-1]

    @property
    def _go_package(self) -> str:
        """Where the real server has the type, which it names in its refusals."""
        if self._kind.custom:
            return "unstructured"
        group = self._kind.group.partition(".")[0]
        return "core" if group in {"", "events"} else group

    def _not_acceptable(self, found: str) -> StatusError:
        wanted = self._representation.form.value
        return StatusError(406, "NotAcceptable", f"you requested {wanted}, but the requested object {found}")

    def _item(self, entry: Entry) -> bytes:
        if self._representation.form is Form.METADATA_LIST:
            return orjson.dumps(self._partial(entry))
        raw = self._plain(entry)
        # Items of built-in lists carry neither apiVersion nor kind on a real server, those of custom kinds do.
        if not self._kind.custom and raw.startswith(self._type_prefix):
            return b"{" + raw[len(self._type_prefix) :]
        return raw

    def _plain(self, entry: Entry) -> bytes:
        return entry.raw if self._kind.view is None else orjson.dumps(viewed(self._kind, entry.decode()))

    def _partial(self, entry: Entry) -> JsonObject:
        return self._partial_type("PartialObjectMetadata") | {"metadata": entry.decode()["metadata"]}

    def _partial_type(self, kind: str) -> JsonObject:
        return {"kind": kind, "apiVersion": f"meta.k8s.io/{self._representation.version}"}

    def _empty_table(self, metadata: JsonObject) -> JsonObject:
        return self._table([], metadata=metadata, headers=True)

    def _table(self, entries: Sequence[Entry], *, metadata: JsonObject, headers: bool) -> JsonObject:
        documents = [viewed(self._kind, entry.decode()) for entry in entries]
        return self._rendered(documents, metadata=metadata, headers=headers)

    def _rendered(self, documents: Sequence[JsonObject], *, metadata: JsonObject, headers: bool) -> JsonObject:
        return table(
            documents,
            self._kind.columns,
            metadata=metadata,
            include_object=self._include_object,
            headers=headers,
            version=self._representation.version,
            now=self._now,
        )
