"""The topology of a Graph that translation made: its environments, their order and their gates.

The Pipeline may change after the Graph was made, so the environments of a Bundle are read from the Graph. Every
generated node describes itself under the key `x-kardinal`, which the engine ignores:

  kind          step or gate; the nodes of the Bundle and of the freeze have no description
  environment   the name of its environment
  gate          of a gate: namespace and name of its template
  upstreams     of a step: the environments that must be Verified before it

For example `{"kind": "step", "environment": "prod", "upstreams": ["staging"]}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kardinal.objects import JsonObject
from kardinal.promotion.translation.environment_order import ancestors

__all__ = ["NODE_KEY", "GateNode", "StepNode", "Topology", "describe_gate", "describe_step", "read_topology"]

NODE_KEY = "x-kardinal"


@dataclass(frozen=True, slots=True)
class StepNode:
    """The PromotionStep of one environment. `upstreams` are names of environments, in the order of `dependsOn`."""

    id: str
    environment: str
    upstreams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateNode:
    """The instance of a gate template before one environment. `namespace` and `name` are those of the template."""

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
        """Return node ids by `(environment,)` for steps and `(namespace, gate, environment)` for gates."""
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
        """Return every environment that must be Verified before `environment` starts."""
        return ancestors(self.upstreams, environment)


def describe_step(environment: str, upstreams: Iterable[str]) -> JsonObject:
    """Return the description of a step for the key `NODE_KEY`."""
    return {"kind": "step", "environment": environment, "upstreams": list(upstreams)}


def describe_gate(environment: str, *, namespace: str, name: str) -> JsonObject:
    """Return the description of a gate for the key `NODE_KEY`."""
    return {"kind": "gate", "environment": environment, "gate": {"namespace": namespace, "name": name}}


def read_topology(graph: JsonObject) -> Topology:
    """Return the topology of a Graph. Nodes without a description are ignored."""
    nodes = graph.get("spec", {}).get("nodes", ())
    found = list(_described(nodes))
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


def _object(node: JsonObject) -> str:
    metadata = (node.get("template") or {}).get("metadata") or {}
    return str(metadata.get("name", ""))
