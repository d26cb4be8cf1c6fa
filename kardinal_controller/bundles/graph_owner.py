"""Admit Graphs of Bundles to the engine: only those that the statuses of their Bundles record.

A Graph acts with the controller's rights, and agents write to Git for the PromotionSteps that a recorded Graph made. So
no other Graph is walked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kardinal.kube import Client, NotFound
from kardinal.objects import JsonObject, Key, ResourceType, controller_of, key_of
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.translation.recorded import is_recorded, spec_hash
from kardinal.runtime import Source, Watch
from kardinal.runtime.predicates import status_changed
from kardinal_controller.caches import Caches
from kardinal_controller.graphs.ownership import ADMITTED, UNDECIDED, Admission

__all__ = ["GraphsOfBundles"]


class GraphsOfBundles:
    """The owner, for the engine, of the Graphs that Bundles control; they are walked with the controller's rights."""

    resource: ResourceType = BUNDLE
    kinds: Collection[ResourceType] = (BUNDLE, PROMOTION_STEP, POLICY_GATE)
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
    return Admission(
        "refused", f"its spec is not what Bundle {name} was translated to: delete the Graph, and it is made again"
    )


def _graph_of(bundle: JsonObject) -> Iterable[Key]:
    """Name the Graph of a Bundle, which has its name."""
    return (key_of(bundle),)
