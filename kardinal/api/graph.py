"""Graph and GraphRevision: a set of objects in dependency order (graph.md 1).

The body of a node is free-form: the CRDs preserve unknown fields and the engine checks it, so `spec.nodes` stays plain
JSON here. Only what the engine writes into status has a fixed shape.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kardinal.api.base import Model, Resource, ShortText, Status, Time
from kardinal.api.resource import ResourceType

__all__ = [
    "GRAPH",
    "GRAPH_REVISION",
    "Graph",
    "GraphRevision",
    "GraphRevisionSpec",
    "GraphSpec",
    "GraphStatus",
    "NodeGate",
    "NodeKind",
    "NodeObject",
    "NodeState",
    "NodeStatus",
]

GRAPH = ResourceType("experimental.kro.run", "v1alpha1", "Graph", "graphs")
GRAPH_REVISION = ResourceType("experimental.kro.run", "v1alpha1", "GraphRevision", "graphrevisions")

NodeKind = Literal["template", "ref", "watch"]
NodeState = Literal["Ready", "NotReady", "Pending", "Excluded", "Blocked", "Error", "Conflict", "SystemError"]


class GraphSpec(Model):
    nodes: tuple[dict[str, Any], ...] = ()


class NodeGate(Model):
    """The propagateWhen of a node: whether its data flows, and the expression that holds it."""

    open: bool
    expr: ShortText | None = None


class NodeObject(Model):
    api_version: str
    kind: str
    namespace: str | None = None
    name: str
    uid: str | None = None


class NodeStatus(Model):
    id: str
    kind: NodeKind
    state: NodeState
    ready: bool
    reason: ShortText | None = None
    message: ShortText | None = None
    waiting_for: tuple[str, ...] = ()
    gate: NodeGate | None = None
    object: NodeObject | None = None
    last_transition_time: Time | None = None


class GraphStatus(Status):
    """Conditions: Accepted and Compiled (the same answer under both names), Ready."""

    revision: str | None = None
    nodes: tuple[NodeStatus, ...] = ()
    topological_order: tuple[str, ...] = ()


class Graph(Resource):
    resource: ClassVar[ResourceType] = GRAPH

    spec: GraphSpec = Field(default_factory=GraphSpec)
    status: GraphStatus = Field(default_factory=GraphStatus)


class GraphRevisionSpec(Model):
    """The user's nodes, word for word, with what identifies them."""

    nodes: tuple[dict[str, Any], ...] = ()
    generation: Annotated[int, Field(ge=1)]
    hash: Annotated[str, Field(max_length=64)]
    dialect_version: Annotated[str, Field(max_length=32)]


class GraphRevision(Resource):
    resource: ClassVar[ResourceType] = GRAPH_REVISION

    spec: GraphRevisionSpec
    status: Status = Field(default_factory=Status)
