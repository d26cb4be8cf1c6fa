"""Translation: a Bundle, its Pipeline and the gates become a Graph (promotion.md, "Translation"; pure).

The Graph is all that the engine sees: it must hold every gate, every edge and nothing that this version ignores. So
everything is checked before the first node is drawn, and a translation either yields a whole Graph or says all that is
wrong. It reads nothing but its arguments; the same arguments give the same Graph, node for node.

A Graph is drawn once. When the target of a Bundle moves forward, the nodes that stand stay word for word, whatever has
become of the Pipeline, and only what is missing is drawn from today's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from kardinal.api import BUNDLE, Bundle, Pipeline
from kardinal.api.names import node_ids
from kardinal.api.pipeline import Environment
from kardinal.graph import FINALIZER
from kardinal.objects import GRAPH, JsonObject
from kardinal.policy.matching import GateTemplate, instance_names
from kardinal.translation.errors import InvalidSpec, Problem
from kardinal.translation.nodes import Place, bundle_node, freeze_node, gate_node, step_node
from kardinal.translation.repository import Features
from kardinal.translation.route import Route, find_route, order_problems
from kardinal.translation.skip import check_skips
from kardinal.translation.topology import Legend, read_legend
from kardinal.translation.validation import bundle_problems, pipeline_problems

__all__ = ["extend_graph", "translate", "validate"]


def validate(pipeline: Pipeline, *, features: Features) -> tuple[Problem, ...]:
    """What keeps every Bundle of a Pipeline from being translated; empty when nothing does."""
    return (*order_problems(pipeline), *pipeline_problems(pipeline, features))


def translate(
    pipeline: Pipeline, bundle: Bundle, gates: Sequence[GateTemplate], *, features: Features, now: datetime
) -> JsonObject:
    """The Graph of a Bundle. Raises `InvalidSpec` with every problem there is, or `SkipDenied`."""
    route = _checked(pipeline, bundle, features)
    check_skips(_environments(pipeline, route.skipped), bundle, gates, now=now)
    place = _place(pipeline, bundle)
    drawing = _Drawing(pipeline, place, route, Legend({}, {}, {}), gates)
    nodes = [bundle_node(place), freeze_node(place), *drawing.nodes(route.upstreams)]
    owner = {
        "apiVersion": BUNDLE.api_version,
        "kind": BUNDLE.kind,
        "name": bundle.metadata.name,
        "uid": bundle.metadata.uid,
        "controller": True,
    }
    return {
        "apiVersion": GRAPH.api_version,
        "kind": GRAPH.kind,
        "metadata": {
            "name": bundle.metadata.name,
            "namespace": place.namespace,
            "labels": place.labels({}),
            # The engine would add it by a write of its own.
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {"nodes": nodes},
    }


def extend_graph(
    graph: JsonObject,
    pipeline: Pipeline,
    bundle: Bundle,
    gates: Sequence[GateTemplate],
    *,
    features: Features,
    now: datetime,
) -> list[JsonObject]:
    """The nodes of a Graph with those added that today's target needs; raises what `translate` raises."""
    nodes: list[JsonObject] = graph["spec"]["nodes"]
    legend, route = read_legend(graph), find_route(pipeline, bundle)
    missing = [name for name in route.upstreams if name not in legend.environments]
    if not missing:
        return nodes
    _checked(pipeline, bundle, features)
    passed = set().union(*map(route.up_to, legend.environments))
    newly_skipped = [name for name in route.skipped if name not in passed]
    check_skips(_environments(pipeline, newly_skipped), bundle, gates, now=now)
    return [*nodes, *_Drawing(pipeline, _place(pipeline, bundle), route, legend, gates).nodes(missing)]


class _Drawing:
    """The ids and names of one Graph, those that stand and those to come, and the nodes made of them."""

    def __init__(
        self, pipeline: Pipeline, place: Place, route: Route, legend: Legend, gates: Sequence[GateTemplate]
    ) -> None:
        self._place = place
        self._spec = pipeline.spec
        self._upstreams = route.upstreams
        self._environments = {environment.name: environment for environment in pipeline.spec.environments}
        self._gates = {
            name: {(gate.namespace, gate.name, name): gate for gate in gates if _holds(gate, name)}
            for name in route.upstreams
        }
        keys = [*legend.gates, *(key for here in self._gates.values() for key in here)]
        names = [*legend.environments, *route.upstreams]
        self._ids = node_ids(names, keys) | legend.ids
        self._instances = instance_names(place.bundle, set(keys))

    def nodes(self, environments: Collection[str]) -> Iterator[JsonObject]:
        """For each environment its gates, then its step."""
        for name in environments:
            environment = self._environments[name]
            upstreams = [self._ids[upstream,] for upstream in self._upstreams[name]]
            gates = self._gates[name]
            for key, gate in gates.items():
                yield gate_node(
                    self._place,
                    gate,
                    environment,
                    identifier=self._ids[key],
                    name=self._instances[key],
                    upstreams=upstreams,
                )
            yield step_node(
                self._place,
                environment,
                self._spec,
                identifier=self._ids[name,],
                upstreams=upstreams,
                gates=[self._ids[key] for key in gates],
            )


def _holds(gate: GateTemplate, environment: str) -> bool:
    return gate.applies_to(environment) and not gate.permits_skip


def _environments(pipeline: Pipeline, names: Collection[str]) -> list[Environment]:
    return [environment for environment in pipeline.spec.environments if environment.name in names]


def _checked(pipeline: Pipeline, bundle: Bundle, features: Features) -> Route:
    problems = [*pipeline_problems(pipeline, features), *bundle_problems(bundle)]
    try:
        route = find_route(pipeline, bundle)
    except InvalidSpec as invalid:
        raise InvalidSpec([*invalid.problems, *problems]) from None
    if problems:
        raise InvalidSpec(problems)
    return route


def _place(pipeline: Pipeline, bundle: Bundle) -> Place:
    return Place(bundle.metadata.namespace, pipeline.metadata.name, bundle.metadata.name)
