"""Graph and GraphRevision: a set of objects in dependency order.

The body of a node is free-form: the CRDs preserve unknown fields and the engine checks it, so `spec.nodes` stays plain
JSON here. Only what the engine writes into status has a fixed shape.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from kardinal.api.base import Model, Resource, ShortText, Status, Time
from kardinal.objects import GRAPH, GRAPH_REVISION, NodeKind, NodeState, ResourceType

__all__ = [
    "Graph",
    "GraphRevision",
    "GraphRevisionSpec",
    "GraphSpec",
    "GraphStatus",
    "NodeGate",
    "NodeObject",
    "NodeStatus",
]


Nodes = Annotated[tuple[dict[str, Any], ...], Field(max_length=1000)]
Identifier = Annotated[str, Field(max_length=63)]


class GraphSpec(Model):
    model_config = ConfigDict(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})

    nodes: Nodes = ()


class NodeGate(Model):
    """The propagateWhen of a node: whether its data flows, and the expression that holds it."""

    open: bool
    expr: ShortText | None = None


class NodeObject(Model):
    api_version: Annotated[str, Field(max_length=317)]
    kind: Identifier
    namespace: Identifier | None = None
    name: Annotated[str, Field(max_length=253)]
    uid: Identifier | None = None


class NodeStatus(Model):
    id: Identifier
    kind: NodeKind
    state: NodeState
    ready: bool
    reason: ShortText | None = None
    message: ShortText | None = None
    waiting_for: Annotated[tuple[ShortText, ...], Field(max_length=20)] = ()
    gate: NodeGate | None = None
    object: NodeObject | None = None
    last_transition_time: Time | None = None


class GraphStatus(Status):
    """Conditions: Accepted and Compiled (the same answer under both names), Ready."""

    revision: Annotated[str | None, Field(max_length=253)] = None
    nodes: Annotated[
        tuple[NodeStatus, ...],
        Field(
            max_length=1000,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
        ),
    ] = ()
    topological_order: Annotated[tuple[Identifier, ...], Field(max_length=1000)] = ()


class Graph(Resource):
    resource: ClassVar[ResourceType] = GRAPH

    spec: GraphSpec = Field(default_factory=GraphSpec)
    status: GraphStatus = Field(default_factory=GraphStatus)


class GraphRevisionSpec(Model):
    """The user's nodes, word for word, with what identifies them."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "a revision is immutable"}]
        }
    )

    nodes: Nodes = ()
    generation: Annotated[int, Field(ge=1)]
    hash: Annotated[str, Field(max_length=64)]
    dialect_version: Annotated[str, Field(max_length=32)]


class GraphRevision(Resource):
    resource: ClassVar[ResourceType] = GRAPH_REVISION

    spec: GraphRevisionSpec
    status: Status = Field(default_factory=Status)
