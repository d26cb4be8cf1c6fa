"""Graph and GraphRevision: a set of objects in dependency order.

The body of a node is free-form: the CRDs preserve unknown fields and the engine validates it, so `spec.nodes` is plain
JSON here. Only the status that the engine writes has a fixed shape.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field

from kardinal.models.base import Model, Resource, ShortText, Status, Time
from kardinal.objects import GRAPH, GRAPH_REVISION, NodeKind, NodeState, ResourceType

__all__ = [
    "Graph",
    "GraphRevision",
    "GraphRevisionSpec",
    "GraphRevisionStatus",
    "GraphSpec",
    "GraphStatus",
    "NodeChildren",
    "NodeGate",
    "NodeObject",
    "NodeStatus",
]


Nodes = Annotated[tuple[dict[str, Any], ...], Field(max_length=1000)]
Identifier = Annotated[str, Field(max_length=63)]


class GraphSpec(Model):
    model_config = ConfigDict(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})

    bundle_ref: Annotated[str | None, Field(max_length=253)] = None
    """The Bundle with `intent.graph: manual` that the Graph promotes; both have one name."""
    nodes: Nodes = ()
    """The nodes. The engine validates their contents."""
    service_account_name: Annotated[str | None, Field(max_length=253)] = None
    """A ServiceAccount of the namespace with whose rights objects are read and written that are not kardinal's own.
    A Role must let the controller impersonate it.
    """


class NodeGate(Model):
    """The propagateWhen of a node: whether it is open, and the expression that keeps it closed."""

    open: bool
    """Whether nodes that come after this node may use its data."""
    expr: ShortText | None = None
    """The expression that keeps the gate closed."""


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


class NodeChildren(Model):
    total: Annotated[int, Field(ge=0)]
    """The number of objects that the node wants."""
    ready: Annotated[int, Field(ge=0)]
    """The number of these whose readyWhen holds."""


class NodeStatus(Model):
    id: Identifier
    """Id of the node."""
    kind: NodeKind
    """`template` creates an object, `patch` changes one, `ref` reads one, `watch` selects some, `def` computes data."""
    state: NodeState
    """`Ready`; `NotReady`: its readyWhen does not hold; `Pending`: it waits; `Excluded`: its includeWhen is false;
    `Blocked`: its propagateWhen holds the nodes after it; `Error`, `Conflict`, `SystemError`: see the message.
    """
    ready: bool
    """Whether its readyWhen holds."""
    reason: ShortText | None = None
    """The reason for the state, in one word."""
    message: ShortText | None = None
    """The reason for the state, in a sentence."""
    waiting_for: Annotated[tuple[ShortText, ...], Field(max_length=20)] = ()
    """Ids of the nodes that it waits for."""
    gate: NodeGate | None = None
    """The answer of its propagateWhen."""
    object: NodeObject | None = None
    """The object that the node has created or reads."""
    children: NodeChildren | None = None
    """The number of the objects of a node with forEach."""
    last_transition_time: Time | None = None
    """The time at which the state changed last."""


class GraphStatus(Status):
    """Conditions: Accepted and Compiled (the same answer under both names), Ready."""

    revision: Annotated[str | None, Field(max_length=253)] = None
    """Name of the GraphRevision that the engine currently applies."""
    nodes: Annotated[
        tuple[NodeStatus, ...],
        Field(
            max_length=1000,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]},
        ),
    ] = ()
    """The nodes with their states."""
    topological_order: Annotated[tuple[Identifier, ...], Field(max_length=1000)] = ()
    """Ids of the nodes, each after the nodes that it depends on."""


class Graph(Resource):
    resource: ClassVar[ResourceType] = GRAPH

    spec: GraphSpec = Field(default_factory=GraphSpec)
    """The nodes."""
    status: GraphStatus = Field(default_factory=GraphStatus)
    """The state of the nodes."""


class GraphRevisionSpec(Model):
    """The nodes of a Graph as the user wrote them, with their generation and hash."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "a revision is immutable"}]
        }
    )

    nodes: Nodes = ()
    """The nodes exactly as they were written."""
    generation: Annotated[int, Field(ge=1)]
    """Generation of the Graph."""
    hash: Annotated[str, Field(max_length=64)]
    """Hash of the nodes."""
    dialect_version: Annotated[str, Field(max_length=32)]
    """Version of the Graph dialect."""


class GraphRevisionStatus(Status):
    """Conditions."""

    objects: Annotated[tuple[NodeObject, ...], Field(max_length=1000)] = ()
    """The objects outside its namespace that the Graph has made; one without a uid is about to be made."""


class GraphRevision(Resource):
    resource: ClassVar[ResourceType] = GRAPH_REVISION

    spec: GraphRevisionSpec
    """One version of the nodes of a Graph."""
    status: GraphRevisionStatus = Field(default_factory=GraphRevisionStatus)
    """The objects outside the namespace, in the newest revision."""
