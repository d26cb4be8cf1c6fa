"""Read where the Graphs of Bundles under way are not what they would be today.

The comparison translates every environment that is still ahead, which is too dear for each run of a Bundle: its result
is kept until something that it was computed from is another one.
"""

from __future__ import annotations

from kardinal.api import Bundle, Pipeline
from kardinal.api.bundle import EnvironmentStatus
from kardinal.objects import JsonObject, Key
from kardinal.translation.drift import NO_DRIFT, Drift, drift_of
from kardinal_controller.bundles.graphs import GraphKeeper, has_recorded_spec

__all__ = ["DriftReader"]

_COMPARED = frozenset(["Promoting", "Failed"])
"""Phases in which it matters what a Bundle goes by: in the others nothing is done any more, or yet."""


_ENDED = frozenset(["Verified", "Failed", "Superseded"])


class DriftReader:
    """Compares Graphs with the Pipelines and gates of the informers."""

    def __init__(self, graphs: GraphKeeper) -> None:
        self._graphs = graphs
        self._known: dict[Key, tuple[object, Drift]] = {}

    def read(self, bundle: Bundle, graph: JsonObject | None, pipeline: Pipeline | None) -> Drift:
        """Return the differences; none for a Bundle that is not under way or whose Pipeline is gone."""
        metadata = bundle.metadata
        key = Key(metadata.namespace, metadata.name)
        if graph is None or pipeline is None or bundle.status.phase not in _COMPARED:
            self.forget(key)
            return NO_DRIFT
        inputs = (
            (graph["metadata"]["uid"], graph["metadata"].get("generation")),
            (pipeline.metadata.uid, pipeline.metadata.generation),
            (metadata.generation, *(_over(entry) for entry in bundle.status.environments.items())),
            tuple(gate["metadata"].get("resourceVersion") for gate in self._graphs.templates_known(pipeline)),
        )
        known = self._known.get(key)
        if known is None or known[0] != inputs:
            known = self._known[key] = (inputs, self._compare(bundle, graph, pipeline))
        return known[1]

    def _compare(self, bundle: Bundle, graph: JsonObject, pipeline: Pipeline) -> Drift:
        if not has_recorded_spec(graph, bundle):
            # Another user changed it: it is not walked, and its nodes may have any shape.
            return NO_DRIFT
        return drift_of(graph, pipeline, bundle, self._graphs.gates_known(pipeline))

    def forget(self, key: Key) -> None:
        """Drop what is kept for a Bundle."""
        self._known.pop(key, None)


def _over(named: tuple[str, EnvironmentStatus]) -> tuple[str, str | None, str | None]:
    """Return what matters of an entry: how it ended; on the way there every state is the same."""
    name, entry = named
    return name, entry.state if entry.state in _ENDED else None, entry.displaced_by
