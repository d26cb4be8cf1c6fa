"""Keep the history of a Pipeline short: delete finished Bundles beyond `historyLimit`, oldest first.

Their Graphs go with them by ownership. Three kinds of Bundles stay beyond the limit: what an environment runs, because
rollback and gates ask for it; what is superseded but has steps that have not finished, which would be cut off half way;
and what has not finished at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime

from kardinal.api import BUNDLE, Bundle, Pipeline
from kardinal.kube import Client, Conflict, NotFound
from kardinal.objects import JsonObject, Key, key_of
from kardinal.runtime import Result, Source, Watch
from kardinal.runtime.predicates import deleted, generation_changed, status_changed
from kardinal_controller.bundles.supersession import age
from kardinal_controller.caches import Caches, pipeline_label

__all__ = ["HistoryReconciler", "surplus"]

_PORTION = 100


class HistoryReconciler:
    """Deletes the Bundles of Pipelines that are too many."""

    def __init__(self, caches: Caches, client: Client) -> None:
        self._caches = caches
        self._client = client

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
            return Result()
        pipeline = Pipeline.model_validate(current)
        limit = pipeline.spec.history_limit
        stored = self._caches.bundles_of(key.namespace, key.name)
        if len(stored) <= limit:
            return Result()
        bundles: list[Bundle] = []
        for each in stored:
            if not self._is_leaving(each):
                bundles.append(Bundle.model_validate(each))
            if len(bundles) % _PORTION == 0:
                # There may be thousands, and others wait for the event loop.
                await asyncio.sleep(0)
        for bundle in surplus(bundles, limit=limit):
            try:
                await self._client.delete(BUNDLE, bundle.metadata.name, key.namespace, uid=bundle.metadata.uid)
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


def surplus(bundles: Sequence[Bundle], *, limit: int) -> list[Bundle]:
    """Return the finished Bundles beyond the limit, oldest first; never one that an environment runs."""
    running = _running(bundles)
    finished = sorted((bundle for bundle in bundles if bundle.status.has_ended), key=age)
    beyond = finished[: max(len(finished) - limit, 0)]
    return [bundle for bundle in beyond if bundle.metadata.name not in running]


def _running(bundles: Iterable[Bundle]) -> set[str]:
    """Return the names of the Bundles that were Verified last in some environment."""
    latest: dict[str, tuple[datetime, str]] = {}
    for bundle in bundles:
        for environment, entry in bundle.status.environments.items():
            if entry.state == "Verified" and entry.verified_at:
                candidate = (entry.verified_at, bundle.metadata.name)
                latest[environment] = max(latest.get(environment, candidate), candidate)
    return {name for _, name in latest.values()}
