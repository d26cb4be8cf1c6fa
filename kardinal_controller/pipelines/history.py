"""Keep the history of a Pipeline short: delete finished Bundles beyond `historyLimit`, oldest first.

Their Graphs are deleted with them, as dependents. Four kinds of Bundles are kept beyond the limit: the Bundle that an
environment runs, because gates read it; the Bundles that a rollback would restore, and those that a current rollback
has rolled back or restored; superseded Bundles with unfinished steps, which would be interrupted; and unfinished
Bundles.

A run reads every Bundle of the Pipeline, as plain JSON, and at most every two seconds: otherwise the cost for thousands
of Bundles that end one after the other would be quadratic.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime

from kardinal.clock import Clock
from kardinal.kube import Client, Conflict, NotFound
from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.bundle import ENDED_PHASES
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.translation.rollback import past_of
from kardinal.runtime import KeyMemory, Result, Source, Watch
from kardinal.runtime.predicates import deleted, generation_changed, status_changed
from kardinal.runtime.timers import remaining
from kardinal_controller.caches import Caches, pipeline_label

__all__ = ["HistoryReconciler", "surplus"]

_PAUSE = 2.0
"""The minimum time in seconds between two runs for one Pipeline."""


class HistoryReconciler:
    """Deletes the oldest ended Bundles of a Pipeline beyond its `historyLimit`."""

    def __init__(self, caches: Caches, client: Client, *, clock: Clock) -> None:
        self._caches = caches
        self._client = client
        self._clock = clock
        self.memory = KeyMemory(caches.pipelines)
        self._looked: dict[Key, float] = self.memory.map()

    def sources(self) -> Sequence[Source]:
        return [
            Watch(self._caches.pipelines, when=generation_changed),
            Watch(self._caches.bundles, self._pipeline_of_bundle, when=status_changed("phase") & ~deleted),
            # The Graph has kept its superseded Bundle until its own deletion.
            Watch(self._caches.graphs, self._pipeline_of_graph, when=deleted),
        ]

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.pipelines.get(*key)
        if current is None or "deletionTimestamp" in current["metadata"]:
            return Result()
        now = self._clock.monotonic()
        if left := remaining(self._looked.get(key, -math.inf) + _PAUSE - now):
            return Result(requeue_after=left)
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
                # It is gone, or another Bundle has the same name.
                continue
        return Result()

    def _is_leaving(self, bundle: JsonObject) -> bool:
        """Return whether a Bundle is being deleted, or is superseded and has unfinished steps."""
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
    """Return the finished Bundles beyond the limit, oldest first, without those that run or could be restored."""
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
    """Return the uids of the Bundles that possible or current rollbacks refer to."""
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
    """Return the sort key from the oldest to the newest Bundle, the same as for supersession."""
    return bundle["metadata"]["creationTimestamp"], _status(bundle).get("sequence") or 0


def _status(bundle: JsonObject) -> JsonObject:
    return bundle.get("status") or {}
