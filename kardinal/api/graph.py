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
    """The nodes; the engine checks what is in them."""


class NodeGate(Model):
    """The propagateWhen of a node: whether its data flows, and the expression that holds it."""

    open: bool
    """Whether the data of the node flows."""
    expr: ShortText | None = None
    """The expression that holds it."""


class NodeObject(Model):
    api_version: Annotated[str, Field(max_length=317)]
    """Group and version of the object."""
    kind: Identifier
    """Kind of the object."""
    namespace: Identifier | None = None
    """Namespace of the object."""
    name: Annotated[str, Field(max_length=253)]
    """Name of the object."""
    uid: Identifier | None = None
    """UID of the object."""


class NodeStatus(Model):
    id: Identifier
    """Id of the node."""
    kind: NodeKind
    """`template` makes an object, `ref` reads one, `watch` reads a selection."""
    state: NodeState
    """`Ready`; `NotReady`: its readyWhen does not hold; `Pending`: it waits; `Excluded`: its includeWhen is false;
    `Blocked`: its propagateWhen holds what follows; `Error`, `Conflict`, `SystemError`: see the message.
    """
    ready: bool
    """Whether its readyWhen holds."""
    reason: ShortText | None = None
    """Why it stands so, in one word."""
    message: ShortText | None = None
    """Why it stands so, in a sentence."""
    waiting_for: Annotated[tuple[ShortText, ...], Field(max_length=20)] = ()
    """Ids of the nodes that it waits for."""
    gate: NodeGate | None = None
    """Its propagateWhen."""
    object: NodeObject | None = None
    """The object that it made or reads."""
    last_transition_time: Time | None = None
    """The moment at which the state changed last."""


class GraphStatus(Status):
    """Conditions: Accepted and Compiled (the same answer under both names), Ready."""

    revision: Annotated[str | None, Field(max_length=253)] = None
    """Name of the GraphRevision that is walked."""
    nodes: Annotated[
        tuple[NodeStatus, ...],
        Field(
            max_length=1000,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
        ),
    ] = ()
    """The nodes with their states."""
    topological_order: Annotated[tuple[Identifier, ...], Field(max_length=1000)] = ()
    """Ids of the nodes, each after those that it needs."""


class Graph(Resource):
    resource: ClassVar[ResourceType] = GRAPH

    spec: GraphSpec = Field(default_factory=GraphSpec)
    """The nodes."""
    status: GraphStatus = Field(default_factory=GraphStatus)
    """How far the engine has walked them."""


class GraphRevisionSpec(Model):
    """The user's nodes, word for word, with what identifies them."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "a revision is immutable"}]
        }
    )

    nodes: Nodes = ()
    """The nodes as they were written."""
    generation: Annotated[int, Field(ge=1)]
    """Generation of the Graph."""
    hash: Annotated[str, Field(max_length=64)]
    """Hash of the nodes."""
    dialect_version: Annotated[str, Field(max_length=32)]
    """Version of the dialect."""


class GraphRevision(Resource):
    resource: ClassVar[ResourceType] = GRAPH_REVISION

    spec: GraphRevisionSpec
    """One version of the nodes of a Graph."""
    status: Status = Field(default_factory=Status)
    """Conditions."""
