"""The Bundle reconciler: from a new Bundle to its Graph, and from what the Graph brought about back to the Bundle.

It is the only writer of Bundle status and the only one who makes or deletes Graphs. Every run starts from what is
there: a Graph that exists is never made again, whatever the status says, and what is written follows from the Graph
and the steps alone. So a crash between any two lines costs a run and nothing else.

Three kinds of trouble are kept apart. What an author must fix is a phase and a condition, left as soon as it is fixed.
What the API server or the network does wrong is raised, retried, and never becomes a phase. What another Bundle causes
is supersession: the phase is written first, the Graph goes only when every step that has landed has finished, because
deleting it would take those steps away half way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from kardinal.api import BUNDLE, Bundle, Pipeline, PromotionStep
from kardinal.api.bundle import BundleStatus
from kardinal.api.names import ANNOTATION_SOURCE
from kardinal.objects import JsonObject, Key, key_of
from kardinal.runtime import Clock, EventRecorder, Result, Source, StatusWriter
from kardinal.translation.errors import InvalidSpec, PromotionError
from kardinal_controller.bundles.graphs import GraphKeeper
from kardinal_controller.bundles.observation import (
    Scene,
    asks_for_more,
    entries_of,
    followed,
    has_come_to_rest,
    intent_moved,
    label_warning,
    pipeline_missing,
    refused,
    superseded,
    unchanged,
    was_refused,
    without_label,
)
from kardinal_controller.bundles.progress import is_over
from kardinal_controller.bundles.status import Finding, bundle_status, is_urgent
from kardinal_controller.bundles.supersession import Numbering, awaited, successor
from kardinal_controller.bundles.watches import bundle_sources
from kardinal_controller.caches import Caches, pipeline_label
from kardinal_controller.metrics import ControlPlaneMetrics

__all__ = ["BundleReconciler"]

PATIENCE = 1.0
"""Seconds that progress inside a phase may wait, so that quick steps are written together."""

_INSTANT = 0.001
"""Seconds below which a timer has fired: sums of floats do not meet exactly."""

_EXPECTED = frozenset(["Promoting", "Verified", "Waiting"])
"""Reasons of `Ready` that ask nobody to do anything."""


class BundleReconciler:
    """Starts Bundles and follows them."""

    def __init__(
        self,
        caches: Caches,
        graphs: GraphKeeper,
        *,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        metrics: ControlPlaneMetrics,
    ) -> None:
        self._caches = caches
        self._graphs = graphs
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._numbering = Numbering()
        self._write_by: dict[Key, float] = {}

    def sources(self) -> Sequence[Source]:
        return bundle_sources(self._caches)

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.bundles.get(*key)
        if current is None or "deletionTimestamp" in current["metadata"]:
            self._write_by.pop(key, None)
            return Result()
        scene = self._look(key, current)
        if not scene.label:
            finding = without_label(scene)
        elif scene.bundle.status.graph_ref is None:
            finding = await self._start(scene)
        else:
            finding = await self._follow(scene)
        return await self._record(key, scene, finding)

    def _look(self, key: Key, current: JsonObject) -> Scene:
        label = pipeline_label(current)
        stored = self._caches.pipeline(key.namespace, label) if label else None
        bundle = Bundle.model_validate(current)
        siblings = self._numbering.numbered(self._rivals(key, label, bundle)) if label else []
        bundle = next((sibling for sibling in siblings if sibling.metadata.name == key.name), bundle)
        steps = [PromotionStep.model_validate(step) for step in self._caches.steps_of(key)]
        return Scene(
            current,
            bundle,
            label,
            Pipeline.model_validate(stored) if stored is not None else None,
            siblings,
            self._graphs.find(bundle),
            {step.spec.environment: step for step in steps},
        )

    def _rivals(self, key: Key, label: str, bundle: Bundle) -> list[Bundle]:
        """The Bundle and its siblings; of an admitted one only those that may be newer, which are few."""
        siblings = self._caches.bundles_of(key.namespace, label)
        if bundle.status.sequence is not None:
            created = next(each["metadata"]["creationTimestamp"] for each in siblings if key_of(each) == key)
            siblings = [each for each in siblings if each["metadata"]["creationTimestamp"] >= created]
        return [Bundle.model_validate(sibling) for sibling in siblings]

    async def _start(self, scene: Scene) -> Finding:
        """A Bundle that has no Graph yet gets one, unless something speaks against it."""
        bundle = scene.bundle
        if bundle.status.phase == "Superseded":
            return unchanged(scene)
        if newer := successor(bundle, scene.siblings):
            return superseded(scene, newer)
        if scene.graph is not None:
            return followed(scene)
        if newer := awaited(bundle, scene.siblings):
            return Finding("Available", "Waiting", f"Bundle {newer.metadata.name} is newer and about to start")
        if scene.pipeline is None:
            missing = pipeline_missing(scene)
            return Finding("Available", missing.reason, f"{missing.message}: {missing.remedy}")
        try:
            graph = await self._graphs.create(scene.pipeline, bundle)
        except PromotionError as error:
            return refused(scene, error)
        return followed(replace(scene, graph=graph))

    async def _follow(self, scene: Scene) -> Finding:
        """A Bundle that has, or had, a Graph becomes what its steps say."""
        status, topology = scene.bundle.status, scene.topology
        if status.phase == "Superseded":
            return unchanged(scene)
        moving = status.phase == "Promoting" if topology is None else not is_over(entries_of(scene), topology)
        if moving and (newer := successor(scene.bundle, scene.siblings)):
            return superseded(scene, newer)
        if scene.graph is None:
            return await self._without_graph(scene)
        if not intent_moved(scene.bundle):
            return followed(scene)
        if scene.pipeline is None:
            return refused(scene, InvalidSpec([pipeline_missing(scene)]))
        try:
            graph = await self._graphs.extend(scene.graph, scene.pipeline, scene.bundle)
        except PromotionError as error:
            return refused(scene, error)
        return followed(replace(scene, graph=graph))

    async def _without_graph(self, scene: Scene) -> Finding:
        """A Graph that somebody deleted is made again once, and only for a Bundle that is on its way."""
        status = scene.bundle.status
        on_its_way = status.phase == "Promoting" or was_refused(status)
        if not on_its_way and not asks_for_more(scene):
            return unchanged(scene)
        if not on_its_way or status.graph_recreated or scene.pipeline is None:
            lost = "its Graph was deleted: create a new Bundle to promote these artifacts"
            return replace(unchanged(scene), phase="Failed", reason="GraphDeleted", message=lost)
        try:
            graph = await self._graphs.create(scene.pipeline, scene.bundle)
        except PromotionError as error:
            return refused(scene, error)
        return replace(followed(replace(scene, graph=graph)), graph_recreated=True)

    async def _record(self, key: Key, scene: Scene, finding: Finding) -> Result:
        """Write what is new, at once where it matters; then let go of a Graph that has nothing left to do."""
        before = BundleStatus.model_validate(scene.current.get("status", {}))
        after = bundle_status(
            scene.bundle,
            replace(finding, warning=label_warning(scene)),
            pipeline=(scene.pipeline.metadata.name if scene.pipeline else scene.label) or None,
            sequence=scene.bundle.status.sequence,
            now=self._clock.now(),
        )
        # Not in the run that writes the phase: by the next one every step has had the chance to appear.
        closing = scene.graph is not None and before.phase == "Superseded" and has_come_to_rest(scene)
        if after != before:
            wait = self._wait(key) if not closing and not is_urgent(before, after) else 0.0
            if wait > 0:
                return Result(requeue_after=timedelta(seconds=wait))
            await self._status.write(BUNDLE, scene.current, after.to_json())
            self._announce(scene, before, after)
        self._write_by.pop(key, None)
        if closing and scene.graph is not None:
            await self._graphs.delete(scene.graph)
        return Result()

    def _wait(self, key: Key) -> float:
        """Seconds until progress that nobody waits for is written; never more than a moment after it was made."""
        now = self._clock.monotonic()
        left = self._write_by.setdefault(key, now + PATIENCE) - now
        return left if left > _INSTANT else 0.0

    def _announce(self, scene: Scene, before: BundleStatus, after: BundleStatus) -> None:
        if before.sequence is None and after.sequence is not None:
            source = scene.bundle.metadata.annotations.get(ANNOTATION_SOURCE, "kubectl")
            self._metrics.bundles_created.labels(after.pipeline or "", source).inc()
        for name in ("Ready", "Warning"):
            old, new = before.condition(name), after.condition(name)
            if new is None or new.reason == "Waiting" or (old and (old.status, old.reason) == (new.status, new.reason)):
                continue
            expected = new.reason in _EXPECTED
            self._recorder.event(
                scene.current, type="Normal" if expected else "Warning", reason=new.reason, note=new.message
            )
