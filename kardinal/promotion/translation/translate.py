"""Translate a Bundle, its Pipeline and the gates to a Graph.

The engine sees only the Graph, so the Graph must contain every gate and every edge, and no field that this version
ignores. Everything is validated before the first node is made: a translation yields a whole Graph, or all problems at
once. It reads only its arguments, and equal arguments give an equal Graph.

A Graph is translated once. When a Bundle is to go further, the existing nodes stay as they are, even if the Pipeline
has changed, and only the missing nodes are made from today's Pipeline. A step that is tried again gets the number of
its attempt. A Graph that is made again leaves out the environments in which the Bundle is Verified already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from kardinal.graph import FINALIZER
from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.names import node_ids
from kardinal.promotion.api.pipeline import Environment
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.policy.attestation import NOT_ATTESTED, Attestation
from kardinal.promotion.policy.binding import Place, places_of
from kardinal.promotion.policy.matching import GateTemplate, instance_names
from kardinal.promotion.translation.bundle_fit import fit_problems
from kardinal.promotion.translation.errors import InvalidSpec, Problem
from kardinal.promotion.translation.nodes import (
    PromotedBundle,
    bundle_node,
    freeze_node,
    gate_node,
    step_node,
    with_attempt,
)
from kardinal.promotion.translation.pins import check_pins
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.route import Route, find_route, order_problems, remaining
from kardinal.promotion.translation.skip import check_skips
from kardinal.promotion.translation.topology import Topology, read_topology
from kardinal.promotion.translation.validation import bundle_problems, gate_problems, pipeline_problems

__all__ = ["controller_reference", "extend_graph", "translate", "validate"]


def validate(pipeline: Pipeline, *, features: Features) -> tuple[Problem, ...]:
    """Return the problems of a Pipeline that keep every Bundle from being translated; empty if there are none."""
    return (*order_problems(pipeline), *pipeline_problems(pipeline, features))


def translate(
    pipeline: Pipeline,
    bundle: Bundle,
    gates: Sequence[GateTemplate],
    *,
    features: Features,
    now: datetime,
    attestation: Attestation = NOT_ATTESTED,
) -> JsonObject:
    """Return the Graph of a Bundle. Raises `InvalidSpec` with all problems, or `SkipDenied`."""
    route = _checked(pipeline, bundle, gates, features)
    skipped = _environments(pipeline, route.skipped)
    check_skips(skipped, pipeline, bundle, gates, attestation=attestation, now=now)
    promotion = _promotion(pipeline, bundle)
    builder = _NodeBuilder(pipeline, bundle, route, Topology({}, []), gates)
    environments = remaining(route.upstreams, bundle.status.environments)
    check_pins(bundle, _environments(pipeline, environments))
    nodes = [bundle_node(promotion), freeze_node(promotion), *builder.nodes(environments)]
    return {
        "apiVersion": GRAPH.api_version,
        "kind": GRAPH.kind,
        "metadata": {
            "name": bundle.metadata.name,
            "namespace": promotion.namespace,
            "labels": promotion.labels({}),
            # Set here, because the engine would otherwise add it in a separate write.
            "finalizers": [FINALIZER],
            "ownerReferences": [controller_reference(bundle)],
        },
        "spec": {"nodes": nodes},
    }


def controller_reference(bundle: Bundle) -> JsonObject:
    """Return the owner reference of a Graph that a Bundle controls."""
    return {
        "apiVersion": BUNDLE.api_version,
        "kind": BUNDLE.kind,
        "name": bundle.metadata.name,
        "uid": bundle.metadata.uid,
        "controller": True,
    }


def extend_graph(
    graph: JsonObject,
    pipeline: Pipeline,
    bundle: Bundle,
    gates: Sequence[GateTemplate],
    *,
    features: Features,
    now: datetime,
    attestation: Attestation = NOT_ATTESTED,
) -> list[JsonObject]:
    """Return the nodes of a Graph, extended for today's intent of the Bundle.

    Adds the missing nodes, and raises the number of a step for which another attempt was requested. Raises the same
    errors as `translate`.
    """
    topology = read_topology(graph)
    environments = {step.id: name for name, step in topology.steps.items()}
    nodes: list[JsonObject] = [
        with_attempt(node, _attempt(bundle, environments[node["id"]])) if node["id"] in environments else node
        for node in graph["spec"]["nodes"]
    ]
    if bundle.spec.intent.graph == "manual":
        # Its author decides where it goes.
        return nodes
    route = find_route(pipeline, bundle)
    missing = remaining(route.upstreams, bundle.status.environments, there=topology.steps)
    if not missing:
        return nodes
    _checked(pipeline, bundle, gates, features)
    check_pins(bundle, _environments(pipeline, missing))
    passed = set().union(*map(route.up_to, topology.steps))
    newly_skipped = [name for name in route.skipped if name not in passed]
    skipped = _environments(pipeline, newly_skipped)
    check_skips(skipped, pipeline, bundle, gates, attestation=attestation, now=now)
    return [*nodes, *_NodeBuilder(pipeline, bundle, route, topology, gates).nodes(missing)]


class _NodeBuilder:
    """Build nodes with ids and names that are unique among the existing and the new nodes of one Graph."""

    def __init__(
        self, pipeline: Pipeline, bundle: Bundle, route: Route, topology: Topology, gates: Sequence[GateTemplate]
    ) -> None:
        self._promotion = promotion = _promotion(pipeline, bundle)
        self._bundle = bundle
        self._topology = topology
        self._spec = pipeline.spec
        self._upstreams = route.upstreams
        self._environments = {environment.name: environment for environment in pipeline.spec.environments}
        self._gates = {
            place.environment: {
                (gate.namespace, gate.name, place.environment): gate for gate in gates if _holds(gate, place)
            }
            for place in places_of(pipeline)
            if place.environment in route.upstreams
        }
        known = [(gate.namespace, gate.name, gate.environment) for gate in topology.gates]
        keys = [*known, *(key for here in self._gates.values() for key in here)]
        names = [*topology.steps, *route.upstreams]
        self._ids = node_ids(names, keys) | topology.ids
        self._instances = instance_names(promotion.bundle, set(keys))

    def nodes(self, environments: Collection[str]) -> Iterator[JsonObject]:
        """Yield for each environment the nodes of its gates, and then the node of its step."""
        there = {*self._topology.steps, *environments}
        for name in environments:
            environment = self._environments[name]
            upstreams = {before: self._ids[before,] if before in there else None for before in self._upstreams[name]}
            gates = self._gates[name]
            for key, gate in gates.items():
                yield gate_node(
                    self._promotion,
                    gate,
                    environment,
                    identifier=self._ids[key],
                    name=self._instances[key],
                    upstreams=upstreams,
                )
            yield step_node(
                self._promotion,
                environment,
                self._spec,
                identifier=self._ids[name,],
                upstreams=upstreams,
                gates=[self._ids[key] for key in gates],
                attempt=_attempt(self._bundle, name),
            )


def _attempt(bundle: Bundle, environment: str) -> int | None:
    entry = bundle.status.environments.get(environment)
    return entry.attempt if entry is not None else None


def _holds(gate: GateTemplate, place: Place) -> bool:
    return gate.applies_to(place) and not gate.permits_skip


def _environments(pipeline: Pipeline, names: Collection[str]) -> list[Environment]:
    return [environment for environment in pipeline.spec.environments if environment.name in names]


def _checked(pipeline: Pipeline, bundle: Bundle, gates: Sequence[GateTemplate], features: Features) -> Route:
    problems = [
        *pipeline_problems(pipeline, features),
        *bundle_problems(bundle),
        *gate_problems(gates),
    ]
    try:
        route = find_route(pipeline, bundle)
    except InvalidSpec as invalid:
        raise InvalidSpec([*invalid.problems, *problems]) from None
    if not problems:
        there = _environments(pipeline, route.upstreams)
        problems += fit_problems(bundle, pipeline.spec.git, there, features.registry.steps)
    if problems:
        raise InvalidSpec(problems)
    return route


def _promotion(pipeline: Pipeline, bundle: Bundle) -> PromotedBundle:
    return PromotedBundle(
        bundle.metadata.namespace, pipeline.metadata.name, bundle.metadata.name, bundle.spec.artifacts.kinds
    )
