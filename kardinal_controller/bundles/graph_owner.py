"""Admit Graphs of Bundles to the engine: only those that the statuses of their Bundles record.

A Graph acts with the controller's rights, and agents write to Git for the PromotionSteps that a recorded Graph made. So
no other Graph is walked. One that a person has written for a Bundle waits until the reconciler of Bundles has recorded
it and made the Bundle its controller.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kardinal.kube import Client, NotFound
from kardinal.objects import GRAPH, JsonObject, Key, ResourceType, controller_of, key_of
from kardinal.objects.conditions import find_condition
from kardinal.promotion.api.names import WAITING_FOR_GRAPH
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.translation.authored import is_offered
from kardinal.promotion.translation.recorded import is_recorded, spec_hash
from kardinal.runtime import Source, Watch
from kardinal.runtime.predicates import generation_changed, status_changed
from kardinal_controller.bundles.notices import GRAPH_REFUSED
from kardinal_controller.caches import Caches
from kardinal_controller.graphs.ownership import ADMITTED, UNDECIDED, Admission
from kardinal_controller.graphs.persons import GraphsOfPersons

__all__ = ["GraphsOfBundles", "GraphsWithoutController"]


class GraphsOfBundles:
    """The owner, for the engine, of the Graphs that Bundles control; they are walked with the controller's rights."""

    resource: ResourceType = BUNDLE
    kinds: Collection[ResourceType] = (BUNDLE, PROMOTION_STEP, POLICY_GATE)
    makes: Collection[ResourceType] = ()
    records_specs = True

    def __init__(self, caches: Caches, client: Client) -> None:
        self._caches = caches
        self._client = client

    def changes(self) -> Sequence[Source]:
        """Return the source of changes of admissions: the record in the status of a Bundle."""
        return [Watch(self._caches.bundles, _graph_of, when=status_changed("graph"))]

    async def admission(self, graph: JsonObject) -> Admission:
        """Return whether the Graph is walked. Before one is refused, its Bundle is read from the API server."""
        owner = controller_of(graph, BUNDLE)
        if owner is None:
            return UNDECIDED
        namespace = graph["metadata"]["namespace"]
        admission = _judged(graph, self._caches.bundles.get(namespace, owner.name))
        if admission.state != "refused":
            return admission
        try:
            return _judged(graph, await self._client.get(BUNDLE, owner.name, namespace))
        except NotFound:
            return UNDECIDED

    def identity(self, graph: JsonObject) -> Client:
        """Return the client of the controller itself."""
        return self._client


class GraphsWithoutController:
    """The owner, for the engine, of Graphs that no object controls: offered to a Bundle, or a person's own."""

    resource: ResourceType | None = None
    kinds: Collection[ResourceType] = ()
    makes: Collection[ResourceType] = (GRAPH,)
    records_specs = False

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._persons = GraphsOfPersons()

    def changes(self) -> Sequence[Source]:
        """Return the source of changes of refusals: the Bundle to which a Graph is offered."""
        return [Watch(self._caches.bundles, self._offered_to, when=generation_changed | status_changed("conditions"))]

    async def admission(self, graph: JsonObject) -> Admission:
        """Return why the Graph is not walked, or that its account decides what it may do."""
        if not is_offered(graph):
            return await self._persons.admission(graph)
        metadata = graph["metadata"]
        name = metadata["name"]
        if graph["spec"]["bundleRef"] != name:
            return Admission("refused", "spec.bundleRef: a Graph and the Bundle that it promotes have one name")
        bundle = self._caches.bundles.get(metadata["namespace"], name)
        if bundle is None or not _is_manual(bundle):
            why = (
                f"there is no Bundle {name} here" if bundle is None else f"Bundle {name} gets the Graph of its Pipeline"
            )
            return Admission("refused", f"{why}: create a Bundle with spec.intent.graph: manual")
        status = bundle.get("status") or {}
        ready = find_condition(status, "Ready") or {}
        if "graphRef" in status and status.get("graph", {}).get("uid") != metadata["uid"]:
            return Admission("refused", f"Bundle {name} has started with another Graph: create another Bundle")
        refusal = find_condition(status, GRAPH_REFUSED)
        if refusal is not None:
            return Admission("refused", str(refusal["message"]))
        if ready.get("reason") in (None, WAITING_FOR_GRAPH, "Promoting"):
            # Its reconciler is about to look at the Graph, or to take it back.
            return UNDECIDED
        return Admission("refused", f"Bundle {name} does not go by it: {ready['reason']}: {ready.get('message', '')}")

    def identity(self, graph: JsonObject) -> Client:
        """Return the client with whose rights the objects are written."""
        return self._persons.identity(graph)

    def _offered_to(self, bundle: JsonObject) -> Iterable[Key]:
        key = key_of(bundle)
        graph = self._caches.graphs.get(*key)
        return (key,) if graph is not None and is_offered(graph) else ()


def _is_manual(bundle: JsonObject) -> bool:
    return bool((bundle["spec"].get("intent") or {}).get("graph") == "manual")


def _judged(graph: JsonObject, bundle: JsonObject | None) -> Admission:
    if bundle is None:
        # Not visible yet, or gone: then the garbage collector takes the Graph.
        return UNDECIDED
    if is_recorded(graph, bundle):
        return ADMITTED
    record = (bundle.get("status") or {}).get("graph")
    if record is None or (record.get("uid") is None and record.get("nextHash") == spec_hash(graph)):
        # Its reconciler is about to write the rest.
        return UNDECIDED
    name = bundle["metadata"]["name"]
    known = record.get("uid")
    if known not in (None, graph["metadata"]["uid"]):
        return Admission("refused", f"Bundle {name} has another Graph: delete this one")
    if _is_manual(bundle):
        remedy = "write it as it was, or create another Bundle"
        return Admission("refused", f"its spec has changed since Bundle {name} was given to it: {remedy}")
    return Admission(
        "refused", f"its spec is not what Bundle {name} was translated to: delete the Graph, and it is made again"
    )


def _graph_of(bundle: JsonObject) -> Iterable[Key]:
    """Name the Graph of a Bundle, which has its name."""
    return (key_of(bundle),)
