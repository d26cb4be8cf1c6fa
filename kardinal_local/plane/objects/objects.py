"""Create, update, patch and apply objects.

A write is one stretch of code without `await`: read the live object, compute the new one, check it, commit. Two
requests therefore never interleave, and optimistic locking needs no lock. The order of the steps is the real server's,
because clients see it: which of two mistakes is reported, and who owns the defaults.

A write that changes nothing is answered with the live object and moves no revision; without this, two
controllers that each write what they see would wake each other for ever.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kardinal_local.plane import statuses
from kardinal_local.plane.apply import Writer, apply, track_update
from kardinal_local.plane.builtin import NAMESPACE
from kardinal_local.plane.clock import Clock
from kardinal_local.plane.documents import JsonObject, timestamp
from kardinal_local.plane.errors import Cause, Incomplete, StatusError
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.objects import metadata as rules
from kardinal_local.plane.objects.admission import admit, notes
from kardinal_local.plane.objects.composition import (
    check_preconditions,
    check_type,
    check_uid,
    claimed,
    content,
    identify,
    ignored_fields,
    is_lossy,
    refuse_identity,
    refuse_new_finalizers,
    require_type,
    restricted,
    same,
    stored_form,
    stored_size,
    unchanged,
    viewed,
    without_status,
)
from kardinal_local.plane.objects.deletion import is_held_by_content, is_terminating
from kardinal_local.plane.objects.names import generated_name
from kardinal_local.plane.objects.revisions import parse_precondition
from kardinal_local.plane.objects.typing import Source, unknown_fields
from kardinal_local.plane.storage import Entry, Store, make_entry

__all__ = ["Guard", "Objects", "WriteOptions", "Written"]

OBJECT_LIMIT = 1536 * 1024
NAME_ATTEMPTS = 8

Modify = Callable[[JsonObject], JsonObject]
Guard = Callable[[JsonObject, JsonObject | None], None]


def _unguarded(document: JsonObject, old: JsonObject | None) -> None:
    """The server's own writes."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How to write; `guard` sees what would be stored, and what is there now, and may refuse it.

    `faults` are what the decoder of the body found, such as repeated fields.
    """

    manager: str = "unknown"
    dry_run: bool = False
    validation: str = "Warn"
    guard: Guard = _unguarded
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """The object as the client shall see it, and what it should be warned of."""

    entry: Entry
    warnings: tuple[str, ...] = ()
    created: bool = False


class Objects:
    """Writes to the objects of one plane."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def create(self, kind: Kind, document: JsonObject, *, namespace: str, options: WriteOptions) -> Written:
        require_type(kind, document)
        document, source = Source(kind, options.validation, options.faults).read(document)
        return self._create(kind, document, namespace=namespace, options=options, source=source, posted=True)

    def _create(
        self,
        kind: Kind,
        document: JsonObject,
        *,
        namespace: str,
        subresource: str = "",
        options: WriteOptions,
        source: Source,
        posted: bool = False,
    ) -> Written:
        metadata = identify(kind, document, namespace=namespace)
        seen = str(metadata.get("resourceVersion") or "")
        if not posted:
            parse_precondition(seen)
        name = metadata.get("name") or ""
        if not name and metadata.get("generateName"):
            name = metadata["name"] = self._free_name(kind, namespace, str(metadata["generateName"]))
        self._require_open_namespace(kind, namespace, name=name)
        # A kind that has no generation of its own keeps what a client says.
        chosen = {} if kind.generation or "generation" not in metadata else {"generation": metadata["generation"]}
        rules.keep_server_fields(metadata, live=chosen)
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = timestamp(self._clock.now())
        if kind.generation:
            metadata["generation"] = 1
        sent = document
        document, warnings = self._shaped(kind, without_status(kind, document), old=None, source=source)
        with statuses.warning(*warnings):
            # Who creates through /status is told to have written one, though a new object has none.
            said = None if source.applied else sent if subresource else document
            self._track(kind, document, live=None, subresource=subresource, options=options, said=said)
            self._admit(kind, document, old=None, subresource=subresource, options=options, source=source)
            warnings += notes(kind, document, old=None)
            # It is the store that looks at this, so whatever else is wrong is told first, and a dry run sees it again.
            if seen.isdecimal() and options.dry_run:
                document["metadata"]["resourceVersion"] = seen
            elif posted and seen.isdecimal() and int(seen):
                raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
            if self._store.get(kind.storage, namespace=namespace, name=name) is not None:
                raise statuses.already_exists(kind, name)
            return Written(self._commit(kind, document, options=options, source=source), warnings, created=True)

    def replace(
        self,
        kind: Kind,
        document: JsonObject,
        *,
        namespace: str,
        name: str,
        subresource: str,
        options: WriteOptions,
    ) -> Written:
        """PUT: the document in the place of the live object, which some kinds must say they have seen."""
        require_type(kind, document)
        document, source = Source(kind, options.validation, options.faults).read(document)
        metadata = identify(kind, document, namespace=namespace, name=name)
        entry = self._store.get(kind.storage, namespace=namespace, name=name)
        if entry is None and not kind.created_by_update:
            raise statuses.not_found(kind, name)
        if entry is None:
            check_uid(kind, metadata, live=metadata | {"uid": ""})
            return self._create(
                kind, document, namespace=namespace, subresource=subresource, options=options, source=source
            )
        return self._update(kind, entry, document, subresource=subresource, options=options, source=source)

    def patch(
        self,
        kind: Kind,
        modify: Modify,
        *,
        shown: str | None = None,
        namespace: str,
        name: str,
        subresource: str,
        options: WriteOptions,
    ) -> Written:
        """PATCH: what `modify` makes of the live object. When that is none, `shown` is the patch to complain of."""
        entry = self._live(kind, namespace=namespace, name=name)
        patched = modify(viewed(kind, entry.decode()))
        source = Source(kind, options.validation, options.faults, shown=patched if shown is None else shown, name=name)
        document, source = source.read(patched)
        return self._update(kind, entry, document, subresource=subresource, options=options, source=source)

    def _live(self, kind: Kind, *, namespace: str, name: str) -> Entry:
        entry = self._store.get(kind.storage, namespace=namespace, name=name)
        if entry is None:
            raise statuses.not_found(kind, name)
        return entry

    def _update(
        self,
        kind: Kind,
        entry: Entry,
        document: JsonObject,
        *,
        subresource: str,
        options: WriteOptions,
        source: Source,
    ) -> Written:
        live = viewed(kind, entry.decode())
        metadata = identify(kind, document, namespace=entry.namespace, name=entry.name)
        check_preconditions(kind, metadata, live=live["metadata"], replaced=source.shown is None)
        said = document
        document = restricted(kind, document, live=live, subresource=subresource)
        return self._change(
            kind, entry, document, live=live, subresource=subresource, options=options, source=source, said=said
        )

    def apply(
        self,
        kind: Kind,
        configuration: JsonObject,
        *,
        namespace: str,
        name: str,
        subresource: str,
        force: bool,
        options: WriteOptions,
    ) -> Written:
        """Server-side apply; creates what does not exist."""
        check_type(kind, configuration)
        entry = self._store.get(kind.storage, namespace=namespace, name=name)
        if entry is None and subresource and not kind.created_by_update:
            raise statuses.not_found(kind, name)
        live = None if entry is None else viewed(kind, entry.decode())
        writer = self._writer(kind, subresource=subresource, options=options)
        document = apply(live, configuration, by=writer, force=force, schema=kind.schema)
        document = document | {"metadata": dict(document["metadata"])}
        hollow = kind.custom and not subresource and bool(rules.hollow(document["metadata"]))
        document, source = Source(kind, options.validation, options.faults, applied=True, hollow=hollow).read(document)
        if live is None:
            refuse_identity(kind, document["metadata"], name=name)
        metadata = identify(kind, document, namespace=namespace, name=name)
        if entry is None or live is None:
            return self._create(
                kind, document, namespace=namespace, subresource=subresource, options=options, source=source
            )
        check_preconditions(kind, metadata, live=live["metadata"], replaced=False)
        document = restricted(kind, document, live=live, subresource=subresource)
        return self._change(
            kind, entry, document, live=live, subresource=subresource, options=options, source=source, said=None
        )

    def _change(
        self,
        kind: Kind,
        entry: Entry,
        document: JsonObject,
        *,
        live: JsonObject,
        subresource: str,
        options: WriteOptions,
        source: Source,
        said: JsonObject | None,
    ) -> Written:
        """Store what a write makes of the live object; `said`: what its client sent, None for an apply."""
        metadata = document["metadata"]
        rules.keep_server_fields(metadata, live=live["metadata"])
        metadata["resourceVersion"] = live["metadata"]["resourceVersion"]
        document, warnings = self._shaped(kind, document, old=live, source=source, subresource=subresource)
        # What the real server puts back on every other write is what this one is about.
        before = live | {"spec": document["spec"]} if subresource == "finalize" else live
        spoken = said and claimed(kind, document, live=live, said=said, subresource=subresource)
        with statuses.warning(*warnings):
            self._track(kind, document, live=live, subresource=subresource, options=options, said=spoken)
            self._admit(kind, document, old=before, subresource=subresource, options=options, source=source)
        if not subresource:
            warnings += notes(kind, document, old=live)
        if unchanged(document, live):
            if not entry.lossy and not source.hollow:
                return Written(entry, warnings)
            document = live
        metadata = document["metadata"]
        if kind.generation and subresource != "status" and not same(content(kind, document), content(kind, live)):
            metadata["generation"] = live["metadata"].get("generation", 0) + 1
        if "deletionTimestamp" in metadata:
            refuse_new_finalizers(kind, document, live=live)
            if not metadata.get("finalizers") and not is_held_by_content(kind, document):
                return Written(self._finish(kind, document, entry, options=options), warnings)
        return Written(self._commit(kind, document, options=options, source=source), warnings)

    def _track(
        self,
        kind: Kind,
        document: JsonObject,
        *,
        live: JsonObject | None,
        subresource: str,
        options: WriteOptions,
        said: JsonObject | None,
    ) -> None:
        """Record who owns what, which an apply has done; where no field has an owner, nothing is recorded."""
        metadata = document["metadata"]
        # A scale brings the record of its own owners.
        if said is not None and subresource != "scale":
            writer = self._writer(kind, subresource=subresource, options=options)
            metadata["managedFields"] = track_update(live, said, by=writer, schema=kind.schema)
        if not metadata.get("managedFields"):
            metadata.pop("managedFields", None)

    def _writer(self, kind: Kind, *, subresource: str, options: WriteOptions) -> Writer:
        ignored = ignored_fields(kind, subresource=subresource)
        versions = frozenset() if kind.custom or kind.view is not None else frozenset({kind.api_version})
        blank = {} if kind.typed is None else kind.typed.blank
        return Writer(options.manager, self._clock.now(), subresource, ignored, versions, kind.readable, blank)

    def _shaped(
        self, kind: Kind, document: JsonObject, *, old: JsonObject | None, source: Source, subresource: str = ""
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """The document in the shape of its kind; raises for what its schema says is wrong with it."""
        if kind.typed is not None:
            return document, source.judge()
        unknown = rules.prune(document["metadata"])
        causes: Sequence[Cause] = rules.validate(kind, document["metadata"], old=old)
        noted: tuple[str, ...] = ()
        if kind.validator is not None:
            outcome = kind.validator.process(
                document, old=old, subresource=subresource, applied=source.applied, found=causes
            )
            document, causes, noted = outcome.object, outcome.causes, outcome.warnings
            unknown += outcome.unknown_fields
        # An apply has been held to its type, which knows no field too many; what goes after that goes silently.
        warnings = source.judge(*(() if source.applied else unknown_fields(unknown))) + noted
        if causes:
            with statuses.warning(*warnings):
                raise statuses.invalid(kind, document["metadata"].get("name", ""), causes)
        return document, (*warnings, *rules.warnings(kind, document["metadata"]))

    def _admit(
        self,
        kind: Kind,
        document: JsonObject,
        *,
        old: JsonObject | None,
        subresource: str,
        options: WriteOptions,
        source: Source,
    ) -> None:
        """Set the fields that the server sets, which have no owner, then validate the whole."""
        metadata, causes = document["metadata"], []
        # What is kept in the form of another kind is judged as one.
        judged = kind if kind.custom or kind.view is None else replace(kind, group="")
        if kind.typed is not None:
            try:
                # What a kind is given, its main endpoint gives.
                if subresource != "status":
                    kind.typed.prepare(document, old=old)
            except Incomplete as error:
                raise statuses.invalid(judged, metadata.get("name", ""), error.causes) from None
            rules.prune(metadata)
        # Who may not write this is not told what else is wrong with it.
        options.guard(document, old)
        if kind.typed is not None:
            # An empty map is something where there was none.
            found = kind.typed.problems(source.emptied | document, old=old)
            causes = rules.validate(kind, metadata, old=old) + found
        causes += admit(kind, document, old=old)
        if causes:
            raise statuses.invalid(judged, metadata.get("name", ""), causes)

    def _commit(self, kind: Kind, document: JsonObject, *, options: WriteOptions, source: Source) -> Entry:
        stored = stored_form(kind, document, applied=source.applied)
        if stored_size(stored) > OBJECT_LIMIT and not options.dry_run:
            # The real server has this from its store, and passes it on without a reason.
            raise StatusError(500, "", "etcdserver: request is too large")
        if options.dry_run:
            return make_entry(kind.storage, stored)
        return self._store.put(kind.storage, stored, lossy=is_lossy(kind, document, source))

    def _finish(self, kind: Kind, document: JsonObject, entry: Entry, *, options: WriteOptions) -> Entry:
        """The last finalizer is gone: remove the object, answering with what it would have become.

        It never was stored like that: watchers see it go as it was.
        """
        answer = make_entry(kind.storage, stored_form(kind, document))
        if not options.dry_run:
            self._store.delete(kind.storage, entry.decode())
        return answer

    def _free_name(self, kind: Kind, namespace: str, prefix: str) -> str:
        for _ in range(NAME_ATTEMPTS):
            name = generated_name(prefix)
            if self._store.get(kind.storage, namespace=namespace, name=name) is None:
                break
        return name

    def _require_open_namespace(self, kind: Kind, namespace: str, *, name: str) -> None:
        if kind.terminating:
            words = "create not allowed while custom resource definition is terminating"
            raise statuses.forbidden(kind, name, words)
        if not kind.namespaced:
            return
        entry = self._store.get(NAMESPACE.storage, namespace="", name=namespace)
        if entry is None:
            raise statuses.not_found(NAMESPACE, namespace)
        if is_terminating(entry):
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = Cause("NamespaceTerminating", "metadata.namespace", f"namespace {namespace} is being terminated")
            raise statuses.forbidden(kind, name, message, causes=[cause])
