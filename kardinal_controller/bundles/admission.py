"""Which Graphs the engine walks: those that translation made, as the status of their Bundles records them.

A Graph acts with the controller's rights, and agents write to Git for the PromotionSteps that a recorded Graph made. So
no other Graph is walked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.kube import Client, NotFound
from kardinal.objects import BUNDLE, JsonObject, Key, controller_of, key_of
from kardinal.runtime import Source, Watch
from kardinal.runtime.predicates import status_changed
from kardinal.translation.recorded import is_recorded, spec_hash
from kardinal_controller.caches import Caches
from kardinal_controller.graphs.admission import ADMITTED, UNDECIDED, Verdict

__all__ = ["RecordedGraphs"]

_NOT_A_BUNDLES = Verdict(
    "refused", "only the Graphs of Bundles are walked in this version: create a Bundle, which gets one"
)


class RecordedGraphs:
    """Answers the engine's question about a Graph."""

    def __init__(self, caches: Caches, client: Client) -> None:
        self._caches = caches
        self._client = client

    def changes(self) -> Sequence[Source]:
        """Return what can change an answer."""
        return [Watch(self._caches.bundles, _graph_of, when=status_changed("graph"))]

    async def verdict(self, graph: JsonObject) -> Verdict:
        """Return whether the Graph is walked. Before one is refused, its Bundle is read from the API server."""
        owner = controller_of(graph, BUNDLE)
        if owner is None:
            return _NOT_A_BUNDLES
        namespace = graph["metadata"]["namespace"]
        verdict = _judged(graph, self._caches.bundles.get(namespace, owner.name))
        if verdict.state != "refused":
            return verdict
        try:
            return _judged(graph, await self._client.get(BUNDLE, owner.name, namespace))
        except NotFound:
            return UNDECIDED


def _judged(graph: JsonObject, bundle: JsonObject | None) -> Verdict:
    if bundle is None:
        # Not visible yet, or gone: then the garbage collector takes the Graph.
        return UNDECIDED
    if is_recorded(graph, bundle):
        return ADMITTED
    record = (bundle.get("status") or {}).get("graph")
    if record is None or (record.get("uid") is None and record.get("nextHash") == spec_hash(graph)):
        # Its reconciler is about to write the rest.
        return UNDECIDED
    name, known = bundle["metadata"]["name"], record.get("uid")
    if known not in (None, graph["metadata"]["uid"]):
        return Verdict("refused", f"Bundle {name} has another Graph: delete this one")
    return Verdict(
        "refused", f"its spec is not what Bundle {name} was translated to: delete the Graph, and it is made again"
    )


def _graph_of(bundle: JsonObject) -> Iterable[Key]:
    """Name the Graph of a Bundle, which has its name."""
    return (key_of(bundle),)
