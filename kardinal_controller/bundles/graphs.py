"""Creating, extending and deleting the Graphs of Bundles.

A Graph belongs to a Bundle if the Bundle controls it, by uid, and the Bundle's status records it: by its uid, or, as
long as the status has no uid, by its hash. So a run that crashed after creating the Graph leaves nothing to repair, and
a Graph that another user creates under the Bundle's name does not count.

With `intent.graph: manual` a person creates the Graph. Once it is admitted, the status records its uid and its hash,
and then the Bundle becomes its controller: from there on it is a Graph of a Bundle like any other.

A node is translated once, with the gates of that moment, and never gets those that were missed. So the gates are listed
from the API server: a cache may be seconds behind, and a gate that existed before the Bundle must hold it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress

from kardinal.clock import Clock
from kardinal.kube import AlreadyExists, Client, Conflict, NotFound
from kardinal.objects import GRAPH, JsonObject, controller_of
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.api.bundle import GraphRecord
from kardinal.promotion.api.names import FIELD_MANAGER_CONTROLLER, LABEL_BUNDLE
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from kardinal.promotion.policy.matching import GateTemplate, collect
from kardinal.promotion.translation.authored import AccountAnswers, GraphRefusal, admit, is_offered
from kardinal.promotion.translation.errors import GraphChanged, GraphNameTaken, GraphRefused
from kardinal.promotion.translation.recorded import spec_hash
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.translate import controller_reference, extend_graph, translate
from kardinal_controller.attestations import Attestations
from kardinal_controller.bundles.rollback import check_rollback
from kardinal_controller.caches import Caches
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs.accounts import AccountRights, account_of

__all__ = ["GraphKeeper", "has_recorded_spec"]


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
        attestations: Attestations,
        expressions: ExpressionCompiler,
        rights: AccountRights,
    ) -> None:
        self._caches = caches
        self._client = client
        self._clock = clock
        self._features = features
        self.policy_namespaces = policy_namespaces
        self._attestations = attestations
        self._expressions = expressions
        self._rights = rights

    def find(self, bundle: Bundle) -> JsonObject | None:
        """Return the Graph that belongs to a Bundle from the cache, which may be late; None if it has none."""
        found = self._caches.graphs.get(bundle.metadata.namespace, bundle.metadata.name)
        return found if found is not None and _belongs(found, bundle) else None

    async def translated(self, pipeline: Pipeline, bundle: Bundle) -> JsonObject:
        """Translate a Bundle to the Graph to create; raises the errors of `translate`, and of an invalid rollback."""
        await check_rollback(bundle, pipeline, self._client)
        gates = await self._gates_now(pipeline)
        await self._prepare(gates)
        return translate(
            pipeline,
            bundle,
            gates,
            features=self._features,
            now=self._clock.now(),
            attestation=self._attestations.verify(bundle),
        )

    def offered(self, bundle: Bundle) -> JsonObject | None:
        """Return the Graph that a person has written for a Bundle, from the cache; None if there is none."""
        metadata = bundle.metadata
        found = self._caches.graphs.get(metadata.namespace, metadata.name)
        return found if found is not None and is_offered(found) else None

    async def admitted(self, pipeline: Pipeline, bundle: Bundle) -> tuple[JsonObject, GraphRecord]:
        """Return the Graph that a person has written for a Bundle, as it is now, and the record of it.

        Raises `GraphRefused`. For a Bundle that has started with a Graph, raises `GraphChanged` unless this is the
        Graph: it has only lost its owner reference.
        """
        name = bundle.metadata.name
        graph = await self._client.get(GRAPH, name, bundle.metadata.namespace)
        if bundle.status.graph_ref is not None and (record := bundle.status.graph) is not None:
            if not has_recorded_spec(graph, bundle):
                raise GraphChanged(name, authored=True)
            return graph, record
        gates = await self._gates_now(pipeline)
        await self._prepare(gates)
        answer = admit(
            graph,
            bundle,
            pipeline,
            gates,
            await self._account_answers(graph, bundle),
            features=self._features,
            now=self._clock.now(),
            attestation=self._attestations.verify(bundle),
        )
        if isinstance(answer, GraphRefusal):
            raise GraphRefused(name, answer.reasons, may_pass=answer.may_pass)
        return graph, GraphRecord(uid=answer.uid, hash=answer.hash)

    async def claim(self, graph: JsonObject, bundle: Bundle) -> JsonObject:
        """Make a Bundle the controller of the Graph that was admitted for it; raises Conflict if that has changed."""
        metadata = graph["metadata"]
        body = {
            "metadata": {
                # With the revision that was looked at: another spec would be walked otherwise.
                "resourceVersion": metadata["resourceVersion"],
                "uid": metadata["uid"],
                "ownerReferences": [*(metadata.get("ownerReferences") or ()), controller_reference(bundle)],
            }
        }
        return await self._client.patch(
            GRAPH, metadata["name"], metadata["namespace"], body, field_manager=FIELD_MANAGER_CONTROLLER
        )

    async def _account_answers(self, graph: JsonObject, bundle: Bundle) -> AccountAnswers:
        account = account_of(graph)
        if account is None:
            return AccountAnswers("", lent=False, promotes=False)
        lent = await self._rights.lends(account)
        promotes = lent and await self._rights.may(account, "promote", BUNDLE, bundle.metadata.name)
        return AccountAnswers(account.name, lent=lent, promotes=promotes)

    async def create_rollback(self, manifest: JsonObject) -> str:
        """Create a Bundle that rolls an environment back, unless a Bundle of its name exists; return the name."""
        with suppress(AlreadyExists):
            await self._client.create(BUNDLE, manifest, field_manager=FIELD_MANAGER_CONTROLLER)
        return str(manifest["metadata"]["name"])

    async def create(self, wanted: JsonObject, bundle: Bundle) -> JsonObject:
        """Create the Graph, whose hash the Bundle's status has already; raises `GraphNameTaken`."""
        name = bundle.metadata.name
        namespace = bundle.metadata.namespace
        try:
            return await self._client.create(GRAPH, wanted, field_manager=FIELD_MANAGER_CONTROLLER)
        except AlreadyExists:
            found = await self._client.get(GRAPH, name, namespace)
        if _belongs(found, bundle):
            return found
        raise GraphNameTaken(name)

    async def extension(self, graph: JsonObject, pipeline: Pipeline, bundle: Bundle) -> JsonObject:
        """Return the Graph with further nodes for the present intent, or unchanged if it needs none.

        Raises the errors of `translate`, and `GraphChanged` if the spec differs from the recorded one: an extension
        would add the nodes of another user to the record.
        """
        if not has_recorded_spec(graph, bundle):
            # The cache may be older than the record.
            graph = await self._client.get(GRAPH, bundle.metadata.name, bundle.metadata.namespace)
            if not has_recorded_spec(graph, bundle):
                raise GraphChanged(bundle.metadata.name, authored=bundle.spec.intent.graph == "manual")
        known = self.gates_known(pipeline)
        await self._prepare(known)
        if self._extended(graph, pipeline, bundle, known) == graph["spec"]["nodes"]:
            return graph
        gates = await self._gates_now(pipeline)
        await self._prepare(gates)
        nodes = self._extended(graph, pipeline, bundle, gates)
        return {**graph, "spec": {**graph["spec"], "nodes": nodes}}

    async def write(self, wanted: JsonObject) -> JsonObject:
        """Write the nodes of a Graph that `extension` returned."""
        metadata = wanted["metadata"]
        # With the revision it was computed from: two extensions must not undo each other.
        body = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "spec": {"nodes": wanted["spec"]["nodes"]},
        }
        return await self._client.patch(
            GRAPH, metadata["name"], metadata["namespace"], body, field_manager=FIELD_MANAGER_CONTROLLER
        )

    async def delete(self, graph: JsonObject) -> None:
        """Request the deletion of the Graph with this uid; the engine then deletes its objects in order."""
        metadata = graph["metadata"]
        try:
            await self._client.delete(GRAPH, metadata["name"], metadata["namespace"], uid=metadata["uid"])
        except (NotFound, Conflict):
            # The Graph is gone, and there may be another Graph of the same name, which is not deleted.
            return

    def _extended(
        self, graph: JsonObject, pipeline: Pipeline, bundle: Bundle, gates: tuple[GateTemplate, ...]
    ) -> list[JsonObject]:
        return extend_graph(
            graph,
            pipeline,
            bundle,
            gates,
            features=self._features,
            now=self._clock.now(),
            attestation=self._attestations.verify(bundle),
        )

    async def _prepare(self, gates: Iterable[GateTemplate]) -> None:
        """Compile the expressions that translation evaluates: those of gates that permit a skip."""
        await self._expressions.prepare(gate.spec.expression for gate in gates if gate.permits_skip)

    async def _gates_now(self, pipeline: Pipeline) -> tuple[GateTemplate, ...]:
        """List the gates of a Pipeline from the API server."""
        templates = f"!{LABEL_BUNDLE}"
        lists = await asyncio.gather(
            *(self._client.list(POLICY_GATE, namespace, labels=templates) for namespace in self._namespaces(pipeline))
        )
        return self._collected(pipeline, (gate for found in lists for gate in found.items))

    def gates_known(self, pipeline: Pipeline) -> tuple[GateTemplate, ...]:
        """List the gates of a Pipeline from the cache, which is enough to see whether a Graph may need more nodes."""
        return self._collected(pipeline, self.templates_known(pipeline))

    def templates_known(self, pipeline: Pipeline) -> list[JsonObject]:
        """List the templates that may hold a Pipeline, from the cache."""
        return self._caches.templates(self._namespaces(pipeline))

    def _namespaces(self, pipeline: Pipeline) -> list[str]:
        return sorted({*self.policy_namespaces, pipeline.metadata.namespace})

    def _collected(self, pipeline: Pipeline, gates: Iterable[JsonObject]) -> tuple[GateTemplate, ...]:
        return collect(
            map(PolicyGate.model_validate, gates),
            pipeline=pipeline.metadata.name,
            namespace=pipeline.metadata.namespace,
            policy_namespaces=self.policy_namespaces,
        )


def _belongs(graph: JsonObject, bundle: Bundle) -> bool:
    """Return whether a Graph belongs to a Bundle: its status has the uid of the Graph, or before that the hash."""
    owner = controller_of(graph, BUNDLE)
    record = bundle.status.graph
    if owner is None or owner.uid != bundle.metadata.uid or record is None:
        return False
    if record.uid is not None:
        return bool(graph["metadata"]["uid"] == record.uid)
    return spec_hash(graph) == record.next_hash


def has_recorded_spec(graph: JsonObject, bundle: Bundle) -> bool:
    """Return whether a Graph has the spec that the status of its Bundle records."""
    record = bundle.status.graph
    return record is not None and spec_hash(graph) in (record.hash, record.next_hash)
