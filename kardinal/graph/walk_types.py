"""The input and the results of a walk: states of nodes, applies and prunes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from kardinal.graph.compile import CompiledNode
from kardinal.graph.conditions import Unmet
from kardinal.graph.desired import Desired
from kardinal.graph.evaluator import Overruns
from kardinal.graph.identity import CONFIDENTIAL, GraphIdentity, Kinds, ObjectKey
from kardinal.graph.selection import Selection
from kardinal.objects import JsonObject, NodeKind, NodeState, ResourceType

__all__ = [
    "SEVERITY",
    "Apply",
    "NodeResult",
    "Observed",
    "Outside",
    "Prune",
    "RefusedApply",
    "Remembered",
    "Seen",
    "Unobserved",
    "Walk",
    "WalkInput",
]

SEVERITY: tuple[NodeState, ...] = ("SystemError", "Error", "Conflict", "Blocked", "Pending", "NotReady")
"""The states that are not at rest, the worst first."""


class Unobserved(Exception):
    """Objects that cannot be read, or not yet; `state`, `reason` and the message are those of the node."""

    def __init__(self, state: Literal["Pending", "Error", "SystemError"], reason: str, message: str) -> None:
        super().__init__(message)
        self.state: NodeState = state
        self.reason = reason


class Observed(Protocol):
    """The current objects. They are shared with other readers and must not be changed."""

    def get(self, key: ObjectKey) -> JsonObject | None:
        """Return the object, None if there is none; raises Unobserved."""
        ...

    def select(self, selection: Selection) -> list[JsonObject]:
        """Return the selected objects in order of namespace and name; raises Unobserved."""
        ...

    def owned(self) -> list[tuple[ObjectKey, JsonObject]]:
        """Return all objects that belong to the Graph."""
        ...

    def patched(self) -> list[tuple[ObjectKey, JsonObject]]:
        """Return all objects of others that may have fields of the Graph."""
        ...


class Outside(Protocol):
    """The objects outside the namespace of a Graph that the Graph has made."""

    def owns(self, key: ObjectKey, obj: JsonObject) -> bool:
        """Return whether the Graph has made an object."""
        ...

    def has_room(self, key: ObjectKey) -> bool:
        """Return whether the Graph may make an object besides those it has made."""
        ...


@dataclass(frozen=True, slots=True)
class RefusedApply:
    """An apply that the API server refused.

    The same object is not sent again before `retry_at`; without `retry_at` it is never sent again.
    """

    hash: str
    state: Literal["Error", "Conflict", "SystemError"]
    reason: str
    message: str
    retry_at: datetime | None = None
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Remembered:
    """The result of a node in an earlier pass, and all that it was made of.

    `before`: the results of the nodes that it reads, by id. `live`: the object that it reads or has made, under `key`.
    `selection`: that of a watch, whose objects are the value of `outcome`.
    """

    node: CompiledNode
    before: tuple[tuple[str, NodeResult], ...]
    key: ObjectKey | None
    live: JsonObject | None
    accepted: str | None
    outcome: NodeResult
    selection: Selection | None


@dataclass(frozen=True, slots=True)
class WalkInput:
    """The input of a walk besides the compiled graph.

    `failures` are the refused applies, by object. `accepted` are hashes of objects as the server stored them, where
    they differ from the applied ones. `references` are ambiguous templates that turned out to be references in an
    earlier pass. `not_ready_since` has the times since which nodes are NotReady, for their timeouts. `overruns` are the
    expressions that exceeded their budget; the walk adds to them. `reserved` are the API groups whose objects no
    template may make, except those of `free`. `remembered` are results of nodes, by id, of earlier passes over the same
    compiled graph with the same `identity` and `kinds`; the walk replaces them. `deleting`: all objects of the Graph
    go, and nothing but hooks is applied. `outside`: the objects that it has made elsewhere; None if it may make none.
    """

    identity: GraphIdentity
    observed: Observed
    kinds: Kinds
    now: datetime
    failures: Mapping[ObjectKey, RefusedApply]
    accepted: Mapping[ObjectKey, str]
    references: frozenset[str]
    not_ready_since: Mapping[str, datetime] = field(default_factory=dict)
    overruns: Overruns = field(default_factory=Overruns)
    reserved: frozenset[str] = frozenset()
    free: frozenset[ResourceType] = frozenset()
    remembered: dict[str, Remembered] = field(default_factory=dict)
    deleting: bool = False
    outside: Outside | None = None


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The result of one node. `gate` is the unmet condition of its outflow gate, which holds the nodes after it.

    `children`: for a node with forEach, the number of objects that it wants, and how many of them are Ready.
    """

    node: CompiledNode
    kind: NodeKind
    state: NodeState
    reason: str | None = None
    message: str | None = None
    waiting_for: tuple[str, ...] = ()
    object: JsonObject | None = None
    value: Any = None
    """The data that other nodes read under the id of the node: an object, a list of objects, or a computed value."""
    gate: Unmet | None = None
    settling: bool = False
    """Whether an object of the node is about to be applied; the nodes after it wait for the next pass."""
    children: tuple[int, int] | None = None
    updated: bool = True
    """Whether the object is as the node wants it now: no gate holds it, and nothing is about to be applied."""

    @property
    def blocks(self) -> bool:
        """Return whether this is a hook that is due and not ready, for which a deletion waits."""
        return self.node.declaration.finalizes is not None and self.state not in ("Ready", "Excluded")


@dataclass(frozen=True, slots=True)
class Apply:
    """One object to apply. With `force` it takes the fields that other managers own.

    `correction`: the object was applied before, and fields of it were changed by hand since. `confidential`: a Secret
    is part of the object, so that neither its name nor an answer about it may be repeated.
    """

    node: CompiledNode
    desired: Desired
    force: bool
    correction: bool
    confidential: bool = False

    @property
    def object(self) -> JsonObject:
        marked = self.desired.marked(self.node.layer)
        if self.confidential:
            marked["metadata"]["annotations"][CONFIDENTIAL] = "true"
        return marked


@dataclass(frozen=True, slots=True)
class Prune:
    """One object to delete; with `release`, an object of another program whose patched fields are given up.

    `held`: it is the next one to go, and waits until a hook of its node is ready.
    """

    key: ObjectKey
    object: JsonObject
    release: bool = False
    held: bool = False

    @property
    def confidential(self) -> bool:
        """Return whether the name may be made of data of a Secret."""
        return CONFIDENTIAL in (self.object["metadata"].get("annotations") or {})

    @property
    def told(self) -> str:
        """Return what may be told of the object: its name, or only its kind."""
        return f"a {self.key.resource.kind}" if self.confidential else str(self.key)

    @property
    def under_way(self) -> bool:
        return "deletionTimestamp" in self.object["metadata"]


@dataclass(frozen=True, slots=True)
class Seen:
    """The objects and the selections whose changes matter to a Graph."""

    reads: frozenset[ObjectKey]
    selections: frozenset[Selection]


@dataclass(frozen=True, slots=True)
class Walk:
    """The result of one pass: the results of the nodes, the applies and deletions to make, and when to walk again.

    A change of an object in `reads`, or of a selection in `selections`, requires another pass; so does the time `wake`.
    `unserved` are the kinds, as apiVersion and kind, that nodes have and `WalkInput.kinds` has not.
    """

    outcomes: tuple[NodeResult, ...]
    applies: tuple[Apply, ...]
    prunes: tuple[Prune, ...]
    wake: datetime | None
    reads: frozenset[ObjectKey]
    selections: frozenset[Selection]
    unserved: frozenset[tuple[str, str]] = frozenset()
    evaluated: tuple[NodeResult, ...] = ()
    """The results that are not those of an earlier pass."""
    expression_seconds: float = field(default=0.0, compare=False)
    """The time that all expressions took."""
