"""The topology of a Graph that translation made: its environments, their order and their gates.

A Graph outlives changes of its Pipeline, so how far a Bundle goes is read from the Graph. Every generated node
carries what it stands for under the key `x-kardinal`, which the engine ignores:

    kind          step or gate; the Bundle and the freeze watch have no place in the topology
    environment   the environment it belongs to
    gate          of a gate: namespace and name of its template
    upstreams     of a step: the environments that must be Verified before it
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kardinal.objects import JsonObject
from kardinal.translation.environment_order import ancestors

__all__ = ["NODE_KEY", "GateNode", "StepNode", "Topology", "describe_gate", "describe_step", "read_topology"]

NODE_KEY = "x-kardinal"

_UPSTREAM = re.compile(r"\$\{(\w+)\.status\.state\}")


@dataclass(frozen=True, slots=True)
class StepNode:
    """The PromotionStep of one environment; `upstreams` are environments, in the order of `dependsOn`."""

    id: str
    environment: str
    upstreams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateNode:
    """The instance of one gate template, which is in `namespace`, before one environment."""

    id: str
    environment: str
    namespace: str
    name: str
    object: str
    """The name of the instance."""


@dataclass(frozen=True, slots=True)
class Topology:
    """The steps by environment, and the gates."""

    steps: Mapping[str, StepNode]
    gates: Sequence[GateNode]

    @property
    def ids(self) -> dict[tuple[str, ...], str]:
        """Return all node ids, by the keys of `names.node_ids`."""
        steps: dict[tuple[str, ...], str] = {(step.environment,): step.id for step in self.steps.values()}
        return steps | {(gate.namespace, gate.name, gate.environment): gate.id for gate in self.gates}

    @property
    def environments(self) -> tuple[str, ...]:
        """Return the environments that have a step."""
        return tuple(self.steps)

    @property
    def upstreams(self) -> dict[str, tuple[str, ...]]:
        """Return the upstream environments by environment."""
        return {environment: step.upstreams for environment, step in self.steps.items()}

    def before(self, environment: str) -> set[str]:
        """Return every environment that must be Verified before this one starts."""
        return ancestors(self.upstreams, environment)


def describe_step(environment: str, upstreams: Iterable[str]) -> JsonObject:
    """Return what the node of a step carries under `NODE_KEY`."""
    return {"kind": "step", "environment": environment, "upstreams": list(upstreams)}


def describe_gate(environment: str, *, namespace: str, name: str) -> JsonObject:
    """Return what the node of a gate carries under `NODE_KEY`."""
    return {"kind": "gate", "environment": environment, "gate": {"namespace": namespace, "name": name}}


def read_topology(graph: JsonObject) -> Topology:
    """Return the topology of a Graph; nodes that are neither steps nor gates are passed over."""
    nodes = graph.get("spec", {}).get("nodes", ())
    found = [*_described(nodes), *_from_templates(nodes)]
    return Topology(
        {node.environment: node for node in found if isinstance(node, StepNode)},
        [node for node in found if isinstance(node, GateNode)],
    )


def _described(nodes: Iterable[JsonObject]) -> Iterator[StepNode | GateNode]:
    for node in nodes:
        match node.get(NODE_KEY):
            case {"kind": "step", "environment": str(environment), "upstreams": list(upstreams)}:
                yield StepNode(node["id"], environment, tuple(map(str, upstreams)))
            case {
                "kind": "gate",
                "environment": str(environment),
                "gate": {"namespace": str(namespace), "name": str(name)},
            }:
                yield GateNode(node["id"], environment, namespace, name, _object(node))


def _from_templates(nodes: Iterable[JsonObject]) -> Iterator[StepNode | GateNode]:
    """Read the nodes that version 0.1 made, which do not describe themselves; goes with version 0.3."""
    specs: dict[str, Mapping[str, Any]] = {
        node["id"]: node["template"].get("spec") or {} for node in nodes if isinstance(node.get("template"), Mapping)
    }
    environments = {node: spec["environment"] for node, spec in specs.items() if "environment" in spec}
    objects = {node["id"]: _object(node) for node in nodes if node["id"] in specs}
    undescribed = {node["id"] for node in nodes if NODE_KEY not in node}
    for node, spec in specs.items():
        if node not in undescribed:
            continue
        if node in environments:
            upstreams = _UPSTREAM.findall(spec.get("upstreamVerified") or "")
            yield StepNode(node, environments[node], tuple(environments[each] for each in upstreams))
        elif origin := spec.get("origin"):
            yield GateNode(node, origin["environment"], origin["namespace"], origin["name"], objects[node])


def _object(node: JsonObject) -> str:
    metadata = (node.get("template") or {}).get("metadata") or {}
    return str(metadata.get("name", ""))
