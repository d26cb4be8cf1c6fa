"""Keep the history of a Pipeline short: delete finished Bundles beyond `historyLimit`, oldest first.

Their Graphs go with them by ownership. Four kinds of Bundles stay beyond the limit: what an environment runs, because
gates ask for it; what it would go back to, and what a rollback that stands has taken back or restored; what is
superseded but has steps that have not finished, which would be cut off half way; and what has not finished at all.

A run looks at every Bundle of the Pipeline, as plain JSON, and at most every two seconds: thousands that end one after
the other would otherwise cost the square of their number.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from kardinal.api import BUNDLE, Pipeline
from kardinal.api.bundle import ENDED_PHASES
from kardinal.kube import Client, Conflict, NotFound
from kardinal.objects import JsonObject, Key, key_of
from kardinal.runtime import Clock, Result, Source, Watch
from kardinal.runtime.predicates import deleted, generation_changed, status_changed
from kardinal.translation.rollback import past_of
from kardinal_controller.caches import Caches, pipeline_label

__all__ = ["HistoryReconciler", "surplus"]

_PAUSE = 2.0
"""Seconds between two looks at the Bundles of one Pipeline."""
_INSTANT = 0.001
"""Seconds below which a timer has fired: sums of floats do not meet exactly."""


class HistoryReconciler:
    """Deletes the Bundles of Pipelines that are too many."""

    def __init__(self, caches: Caches, client: Client, *, clock: Clock) -> None:
        self._caches = caches
        self._client = client
        self._clock = clock
        self._looked: dict[Key, float] = {}

    def sources(self) -> Sequence[Source]:
        return [
            Watch(self._caches.pipelines, when=generation_changed & ~deleted),
            Watch(self._caches.bundles, self._pipeline_of_bundle, when=status_changed("phase") & ~deleted),
            # Until then the Graph has kept its superseded Bundle.
            Watch(self._caches.graphs, self._pipeline_of_graph, when=deleted),
        ]

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.pipelines.get(*key)
        if current is None or "deletionTimestamp" in current["metadata"]:
            self._looked.pop(key, None)
            return Result()
        now = self._clock.monotonic()
        if (left := self._looked.get(key, -math.inf) + _PAUSE - now) > _INSTANT:
            return Result(requeue_after=timedelta(seconds=left))
        self._looked[key] = now
        limit = Pipeline.model_validate(current).spec.history_limit
        stored = self._caches.bundles_of(key.namespace, key.name)
        if len(stored) <= limit:
            return Result()
        for bundle in surplus([each for each in stored if not self._is_leaving(each)], limit=limit):
            metadata = bundle["metadata"]
            try:
                await self._client.delete(BUNDLE, metadata["name"], key.namespace, uid=metadata["uid"])
            except (NotFound, Conflict):
                # Gone, or another Bundle of the same name.
                continue
        return Result()

    def _is_leaving(self, bundle: JsonObject) -> bool:
        """Return whether a Bundle is being deleted, or superseded with steps that have not finished yet."""
        superseded = bundle.get("status", {}).get("phase") == "Superseded"
        return "deletionTimestamp" in bundle["metadata"] or (
            superseded and self._caches.graphs.get(*key_of(bundle)) is not None
        )

    def _pipeline_of_bundle(self, bundle: JsonObject) -> Iterable[Key]:
        pipeline = self._caches.pipeline(bundle["metadata"]["namespace"], pipeline_label(bundle))
        return [] if pipeline is None else [key_of(pipeline)]

    def _pipeline_of_graph(self, graph: JsonObject) -> Iterable[Key]:
        bundle = self._caches.bundles.get(*key_of(graph))
        return [] if bundle is None else self._pipeline_of_bundle(bundle)


def surplus(bundles: Sequence[JsonObject], *, limit: int) -> list[JsonObject]:
    """Return the finished Bundles beyond the limit, oldest first; never one that runs or would be restored."""
    finished = sorted((bundle for bundle in bundles if _status(bundle).get("phase") in ENDED_PHASES), key=_age)
    beyond = finished[: max(len(finished) - limit, 0)]
    if not beyond:
        return []
    kept = _running(bundles) | _restorable(bundles)
    return [bundle for bundle in beyond if bundle["metadata"]["uid"] not in kept]


def _running(bundles: Iterable[JsonObject]) -> set[str]:
    """Return the uids of the Bundles that were Verified last in some environment."""
    latest: dict[str, tuple[datetime, str]] = {}
    for bundle in bundles:
        for environment, entry in (_status(bundle).get("environments") or {}).items():
            if entry.get("state") == "Verified" and entry.get("verifiedAt"):
                candidate = (datetime.fromisoformat(entry["verifiedAt"]), bundle["metadata"]["uid"])
                latest[environment] = max(latest.get(environment, candidate), candidate)
    return {uid for _, uid in latest.values()}


def _restorable(bundles: Sequence[JsonObject]) -> set[str]:
    """Return the uids of the Bundles that rollbacks are about: those that may come, and those that stand."""
    environments = {name for bundle in bundles for name in _status(bundle).get("environments") or ()}
    pasts = [past_of(bundles, name) for name in environments]
    found = {each.uid for past in pasts for each in (past.runs, past.previous) if each is not None}
    for bundle in bundles:
        rollback = (bundle["spec"].get("intent") or {}).get("rollback")
        stands = bundle["metadata"]["uid"] in found or _status(bundle).get("phase") not in ENDED_PHASES
        if rollback and stands:
            found |= {rollback["of"]["uid"], rollback["restores"]["uid"]}
    return found


def _age(bundle: JsonObject) -> tuple[str, int]:
    """Return what sorts Bundles from the oldest to the newest, as supersession does."""
    return bundle["metadata"]["creationTimestamp"], _status(bundle).get("sequence") or 0


def _status(bundle: JsonObject) -> JsonObject:
    return bundle.get("status") or {}
