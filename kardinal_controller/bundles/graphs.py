"""Creating, extending and deleting the Graphs of Bundles.

A Graph belongs to a Bundle when it names this very Bundle, uid included, as its owner. One that appears between the
observation and the write is adopted if it belongs to the Bundle; so a run that crashed after creating the Graph leaves
nothing to repair.

A node is translated once, with the gates of that moment, and never gets those that were missed. So the gates are listed
from the API server: a cache may be seconds behind, and a gate that existed before the Bundle must hold it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable

from kardinal.api import POLICY_GATE, Bundle, Pipeline, PolicyGate
from kardinal.api.names import FIELD_MANAGER_CONTROLLER, LABEL_BUNDLE
from kardinal.kube import AlreadyExists, Client, Conflict, NotFound
from kardinal.objects import GRAPH, JsonObject
from kardinal.policy.matching import GateTemplate, collect
from kardinal.runtime import Clock
from kardinal.translation.errors import GraphNameTaken
from kardinal.translation.repository import Features
from kardinal.translation.translate import extend_graph, translate
from kardinal_controller.caches import Caches

__all__ = ["GraphKeeper"]


class GraphKeeper:
    """Translates Bundles to Graphs and keeps those on the API server."""

    def __init__(
        self,
        caches: Caches,
        client: Client,
        *,
        clock: Clock,
        features: Features,
        policy_namespaces: Collection[str],
    ) -> None:
        self._caches = caches
        self._client = client
        self._clock = clock
        self._features = features
        self._policy_namespaces = policy_namespaces

    def find(self, bundle: Bundle) -> JsonObject | None:
        """Return the Graph that belongs to a Bundle, as far as the cache knows."""
        found = self._caches.graphs.get(bundle.metadata.namespace, bundle.metadata.name)
        return found if found is not None and _belongs(found, bundle) else None

    async def create(self, pipeline: Pipeline, bundle: Bundle) -> JsonObject:
        """Create the Graph of a Bundle; raises what `translate` raises, and `GraphNameTaken`."""
        gates = await self._gates_now(pipeline)
        wanted = translate(pipeline, bundle, gates, features=self._features, now=self._clock.now())
        name, namespace = bundle.metadata.name, bundle.metadata.namespace
        try:
            return await self._client.create(GRAPH, wanted, field_manager=FIELD_MANAGER_CONTROLLER)
        except AlreadyExists:
            found = await self._client.get(GRAPH, name, namespace)
        if _belongs(found, bundle):
            return found
        raise GraphNameTaken(name)

    async def extend(self, graph: JsonObject, pipeline: Pipeline, bundle: Bundle) -> JsonObject:
        """Add the nodes that the present intent needs besides, if any; raises what `translate` raises."""
        if self._extended(graph, pipeline, bundle, self._gates_known(pipeline)) == graph["spec"]["nodes"]:
            return graph
        nodes = self._extended(graph, pipeline, bundle, await self._gates_now(pipeline))
        # With the revision it was computed from: two extensions must not undo each other.
        body = {"metadata": {"resourceVersion": graph["metadata"]["resourceVersion"]}, "spec": {"nodes": nodes}}
        return await self._client.patch(
            GRAPH, bundle.metadata.name, bundle.metadata.namespace, body, field_manager=FIELD_MANAGER_CONTROLLER
        )

    async def delete(self, graph: JsonObject) -> None:
        """Ask for the deletion of this very Graph; the engine deletes its nodes in order."""
        metadata = graph["metadata"]
        try:
            await self._client.delete(GRAPH, metadata["name"], metadata["namespace"], uid=metadata["uid"])
        except (NotFound, Conflict):
            # Gone, or another one of the same name: either way nothing of the Bundle is left to delete.
            return

    def _extended(
        self, graph: JsonObject, pipeline: Pipeline, bundle: Bundle, gates: tuple[GateTemplate, ...]
    ) -> list[JsonObject]:
        return extend_graph(graph, pipeline, bundle, gates, features=self._features, now=self._clock.now())

    async def _gates_now(self, pipeline: Pipeline) -> tuple[GateTemplate, ...]:
        """List the gates of a Pipeline from the API server."""
        templates = f"!{LABEL_BUNDLE}"
        lists = await asyncio.gather(
            *(self._client.list(POLICY_GATE, namespace, labels=templates) for namespace in self._namespaces(pipeline))
        )
        return self._collected(pipeline, (gate for found in lists for gate in found.items))

    def _gates_known(self, pipeline: Pipeline) -> tuple[GateTemplate, ...]:
        """List the gates of a Pipeline from the cache: enough to find out whether there is anything to add."""
        return self._collected(pipeline, self._caches.templates(self._namespaces(pipeline)))

    def _namespaces(self, pipeline: Pipeline) -> list[str]:
        return sorted({*self._policy_namespaces, pipeline.metadata.namespace})

    def _collected(self, pipeline: Pipeline, gates: Iterable[JsonObject]) -> tuple[GateTemplate, ...]:
        return collect(
            map(PolicyGate.model_validate, gates),
            pipeline=pipeline.metadata.name,
            namespace=pipeline.metadata.namespace,
            policy_namespaces=self._policy_namespaces,
        )


def _belongs(graph: JsonObject, bundle: Bundle) -> bool:
    owners = graph["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == bundle.metadata.uid for owner in owners)
