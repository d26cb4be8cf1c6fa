"""Keep what the page shows up to date, from the informers of the program: once for a change, for all who look.

A change of an object marks the Pipelines, or the Graph, that it concerns. A task computes their rows and those of their
documents that a viewer looks at, a few milliseconds at a time, and publishes the patches. Changes within `COALESCED`
seconds are computed together. Some sentences change with time alone, such as the end of a soak: one timer fires at the
earliest of these times.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypeVar

from kardinal.clock import Clock, Timer
from kardinal.objects import GRAPH, JsonObject, Key, controller_of, labels_of
from kardinal.promotion.api.names import LABEL_PIPELINE, LABEL_TYPE, TYPE_FREEZE, label_value
from kardinal.promotion.policy.matching import is_instance
from kardinal.promotion.views.missing import NotThere
from kardinal.promotion.views.reading import PipelineObjects, read_objects
from kardinal.runtime.informer import Event
from kardinal.runtime.logging import describe, get_logger
from kardinal_controller.caches import Caches, bundle_key, pipeline_label
from kardinal_controller.reader import InformerReader
from kardinal_controller.ui.decoded import DecodedBundles
from kardinal_controller.ui.documents import NoGate, notices, pipeline_row
from kardinal_controller.ui.live import LiveDocument, LiveOverview, Numbers
from kardinal_controller.ui.model import PipelineRow, View

__all__ = ["Feed", "FeedSubject"]

COALESCED = 0.1
"""The time in seconds between two computations: later changes wait so long, so that bursts are computed once."""
TURN = 0.01
"""The time in seconds that is computed before the event loop gets its turn."""
PUBLISHED = 0.05
"""The time in seconds of a long computation after which its first rows are published."""
LARGE = 100
"""The number of Bundles beyond which a document is computed on a thread."""
_TIMES = frozenset({"until", "opensAt", "nextLook", "nextTry"})
"""The fields with a time at which a document changes by itself."""

_log = get_logger(__name__)

Json = dict[str, Any]
V = TypeVar("V", bound=View)


class FeedSubject(NamedTuple):
    """An object whose documents are computed again after a change of it, or of an object that belongs to it."""

    kind: Literal["Pipeline", "Graph"]
    key: Key


Compute = Callable[[], Awaitable[View]]


@dataclass(slots=True)
class _Shared:
    """A document that at least one viewer looks at."""

    compute: Compute
    live: LiveDocument
    viewers: int = 0
    computing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it is computed, so that an older state never follows a newer one."""


class _NoEvents:
    """The Events of the reader of informers: no document contains any."""

    async def events(self, namespace: str) -> Sequence[JsonObject]:
        return ()


class Feed:
    """The live overview and live documents of one program. A runnable of its manager."""

    def __init__(self, caches: Caches, *, clock: Clock) -> None:
        self._caches = caches
        self._clock = clock
        self._numbers = Numbers(secrets.token_hex(4))
        self._reader = InformerReader(caches, _NoEvents())
        self._bundles = DecodedBundles()
        self._unserved: dict[str, PipelineRow] = {}
        self.overview = LiveOverview(self._numbers, self._notices)
        self._shared: dict[FeedSubject, dict[str, _Shared]] = {}
        self._dirty: dict[FeedSubject, None] = {}
        self._due: dict[tuple[FeedSubject, str], datetime] = {}
        self._timer: Timer | None = None
        self._changed = asyncio.Event()
        self._complete = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def numbers(self) -> Numbers:
        return self._numbers

    async def start(self) -> None:
        """Take the objects that exist, and follow their changes."""
        caches = self._caches
        caches.pipelines.on_event(self._handler(lambda obj: [_pipeline(Key(*_names(obj)))]))
        caches.bundles.on_event(self._handler(self._of_bundle))
        caches.steps.on_event(self._handler(self._of_step))
        caches.gates.on_event(self._handler(self._of_gate))
        caches.graphs.on_event(self._handler(self._of_graph))
        self._changed.set()
        self._task = asyncio.create_task(self._run(), name="feed of the page")

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.overview.stop()

    async def complete(self) -> None:
        """Suspend until the rows of all Pipelines that existed at the start have been computed."""
        await self._complete.wait()

    async def objects(self, namespace: str, pipeline: str, bundle: str | None = None) -> PipelineObjects:
        """Return the objects of a Pipeline. Raises `NotThere`."""
        return await read_objects(self._reader, namespace, pipeline, bundle, decode=self._bundles.decode)

    async def computed(self, work: Callable[[], V], objects: PipelineObjects) -> V:
        """Return the result of `work`, on a thread if a Pipeline has many Bundles."""
        return await asyncio.to_thread(work) if len(objects.bundles) > LARGE else work()

    @asynccontextmanager
    async def watched(self, subject: FeedSubject, name: str, compute: Compute) -> AsyncIterator[LiveDocument]:
        """Return a live document while a viewer looks at it.

        `name` distinguishes the documents of one subject. Raises `NotThere`, and what else `compute` raises.
        """
        documents = self._shared.setdefault(subject, {})
        shared = documents.get(name)
        if shared is None:
            shared = documents[name] = _Shared(compute, LiveDocument(self._numbers))
        shared.viewers += 1
        try:
            async with shared.computing:
                if not shared.live.number:
                    await self._put(subject, name, shared)
            yield shared.live
        finally:
            shared.viewers -= 1
            if not shared.viewers:
                documents.pop(name, None)
                self._due.pop((subject, name), None)
            if not documents and self._shared.get(subject) is documents:
                del self._shared[subject]

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._flush()
            self._complete.set()
            self._schedule()
            await self._clock.sleep(COALESCED)

    async def _flush(self) -> None:
        """Compute everything that is marked."""
        loop = asyncio.get_running_loop()
        published = turn = loop.time()
        while self._dirty:
            subject = next(iter(self._dirty))
            del self._dirty[subject]
            try:
                await self._compute(subject)
            except Exception as error:
                _log.error("a document of the page failed by a bug", subject=str(subject.key), **describe(error))
            now = loop.time()
            if now - published >= PUBLISHED and self._complete.is_set():
                self.overview.publish()
                published = now
            if now - turn >= TURN:
                await asyncio.sleep(0)
                turn = loop.time()
        self.overview.publish()

    async def _compute(self, subject: FeedSubject) -> None:
        if subject.kind == "Pipeline":
            await self._compute_row(subject)
        for name, shared in list(self._shared.get(subject, {}).items()):
            try:
                async with shared.computing:
                    await self._put(subject, name, shared)
            except (NotThere, NoGate) as gone:
                shared.live.end(str(gone))

    async def _put(self, subject: FeedSubject, name: str, shared: _Shared) -> None:
        content = _json(await shared.compute())
        if self._shared.get(subject, {}).get(name) is shared:
            self._note_time(subject, name, content)
        shared.live.put(content)

    async def _compute_row(self, subject: FeedSubject) -> None:
        namespace, name = subject.key
        key = str(subject.key)
        try:
            objects = await self.objects(namespace, name)
            row = await self.computed(lambda: pipeline_row(objects, now=self._clock.now()), objects)
        except NotThere:
            self._due.pop((subject, ""), None)
            self._unserved.pop(key, None)
            self.overview.put(namespace, key, None)
            return
        content = _json(row)
        if any(card.no_agent_since is not None for card in row.environments.values()):
            self._unserved[key] = row
        else:
            self._unserved.pop(key, None)
        self._note_time(subject, "", content)
        self.overview.put(namespace, key, content)

    def _notices(self, namespaces: frozenset[str]) -> Json:
        rows = [row for row in self._unserved.values() if row.namespace in namespaces]
        return {key: _json(notice) for key, notice in notices(rows).items()}

    # What changes with time.

    def _note_time(self, subject: FeedSubject, name: str, content: Json) -> None:
        now = self._clock.now()
        later = [moment for moment in map(datetime.fromisoformat, _times(content)) if moment > now]
        if later:
            self._due[subject, name] = min(later)
        else:
            self._due.pop((subject, name), None)
        self._schedule()

    def _schedule(self) -> None:
        """Set the timer to the earliest time at which a document changes by itself."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            wait = (min(self._due.values()) - self._clock.now()).total_seconds()
            self._timer = self._clock.call_later(max(wait, 0.0), self._fire)

    def _fire(self) -> None:
        now = self._clock.now()
        for due in [due for due, moment in self._due.items() if moment <= now]:
            del self._due[due]
            self._mark((due[0],))
        self._schedule()

    # What changes with objects.

    def _mark(self, subjects: Iterable[FeedSubject]) -> None:
        for subject in subjects:
            self._dirty[subject] = None
            self._changed.set()

    def _handler(self, subjects: Callable[[JsonObject], Iterable[FeedSubject]]) -> Callable[[Event], None]:
        def changed(event: Event) -> None:
            for obj in (event.old, event.new):
                if obj is not None:
                    self._mark(subjects(obj))

        return changed

    def _labelled(self, namespace: str, label: str) -> Iterator[FeedSubject]:
        """Return the Pipeline for the value of a label."""
        found = self._caches.pipeline(namespace, label)
        if found is not None:
            yield _pipeline(Key(namespace, found["metadata"]["name"]))

    def _of_bundle(self, bundle: JsonObject) -> Iterable[FeedSubject]:
        return self._labelled(bundle["metadata"]["namespace"], pipeline_label(bundle))

    def _of_graph(self, graph: JsonObject) -> Iterator[FeedSubject]:
        namespace, name = _names(graph)
        yield FeedSubject("Graph", Key(namespace, name))
        # The Graph of a Bundle has its name.
        bundle = self._caches.bundles.get(namespace, name)
        if bundle is not None:
            yield from self._of_bundle(bundle)

    def _of_step(self, step: JsonObject) -> Iterator[FeedSubject]:
        yield from self._of_owner(step)
        bundle = self._caches.bundles.get(*bundle_key(step))
        if bundle is not None:
            yield from self._of_bundle(bundle)

    def _of_gate(self, gate: JsonObject) -> Iterator[FeedSubject]:
        namespace, name = _names(gate)
        labels = labels_of(gate)
        yield from self._of_owner(gate)
        if LABEL_PIPELINE in labels:
            yield from self._labelled(namespace, labels[LABEL_PIPELINE])
        if is_instance(labels):
            origin = gate["spec"].get("origin")
            if origin:
                yield from self._labelled(namespace, label_value(origin["pipeline"]))
        elif labels.get(LABEL_TYPE) == TYPE_FREEZE:
            # A freeze pauses the Pipeline that its name is made of, whatever its labels say.
            yield from (_pipeline(Key(*_names(each))) for each in self._caches.pipelines.list(namespace))
        else:
            for instance in self._caches.instances(Key(namespace, name)):
                yield from self._of_gate(instance)

    @staticmethod
    def _of_owner(child: JsonObject) -> Iterator[FeedSubject]:
        owner = controller_of(child, GRAPH)
        if owner is not None:
            yield FeedSubject("Graph", Key(child["metadata"]["namespace"], owner.name))


def _pipeline(key: Key) -> FeedSubject:
    return FeedSubject("Pipeline", key)


def _names(obj: JsonObject) -> tuple[str, str]:
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


def _json(view: View) -> Json:
    """Return a document as JSON, in which no field is null."""
    return view.model_dump(mode="json", exclude_none=True)


def _times(content: Json | Sequence[Any]) -> Iterator[str]:
    """Return the times at which a document changes by itself."""
    for key, value in content.items() if isinstance(content, dict) else enumerate(content):
        if isinstance(value, (dict, list)):
            yield from _times(value)
        elif key in _TIMES and isinstance(value, str):
            yield value
