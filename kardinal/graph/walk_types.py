"""The input and the results of a walk: states of nodes, applies and prunes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from kardinal.graph.compile import CompiledNode
from kardinal.graph.conditions import Unmet
from kardinal.graph.desired import Desired
from kardinal.graph.evaluator import Overruns
from kardinal.graph.identity import GraphIdentity, Kinds, ObjectKey
from kardinal.graph.selection import Selection
from kardinal.objects import JsonObject, NodeKind, NodeState

__all__ = ["Apply", "Failure", "NodeResult", "Observed", "Prune", "Seen", "Situation", "Walk"]


class Observed(Protocol):
    """The objects as they are now. They are shared and must not be changed."""

    def get(self, key: ObjectKey) -> JsonObject | None: ...

    def select(self, selection: Selection) -> list[JsonObject]:
        """In order of namespace and name."""
        ...

    def owned(self) -> list[tuple[ObjectKey, JsonObject]]:
        """Everything that belongs to the Graph."""
        ...


@dataclass(frozen=True, slots=True)
class Failure:
    """An apply that the server refused. The same object is not sent again before `retry_at`; without it, never."""

    hash: str
    state: Literal["Error", "Conflict", "SystemError"]
    reason: str
    message: str
    retry_at: datetime | None = None
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Situation:
    """All that a walk depends on besides the compiled graph.

    `failures` are the applies that were refused, by node; `accepted` what earlier applies left behind where the server
    did not take them literally; `references` the ambiguous templates that were found to be references before;
    `overruns` the expressions that were too much work, to which the walk adds.
    """

    identity: GraphIdentity
    observed: Observed
    kinds: Kinds
    now: datetime
    failures: Mapping[str, Failure]
    accepted: Mapping[ObjectKey, str]
    references: frozenset[str]
    overruns: Overruns = field(default_factory=Overruns)


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The state of one node; `gate` is the condition by which it holds what comes after it, while it does not hold."""

    node: CompiledNode
    kind: NodeKind
    state: NodeState
    reason: str | None = None
    message: str | None = None
    waiting_for: tuple[str, ...] = ()
    object: JsonObject | None = None
    gate: Unmet | None = None
    settling: bool = False
    """Its object is about to be applied: what comes after it waits for the next pass."""


@dataclass(frozen=True, slots=True)
class Apply:
    """One object to apply. `force` takes back fields that were ours when they were changed by hand."""

    node: CompiledNode
    desired: Desired
    force: bool

    @property
    def object(self) -> JsonObject:
        return self.desired.marked(self.node.layer)


@dataclass(frozen=True, slots=True)
class Prune:
    """One object to delete."""

    key: ObjectKey
    object: JsonObject

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
    """The result of one pass: states, what to do, when to look again, and whose changes matter."""

    outcomes: tuple[NodeResult, ...]
    applies: tuple[Apply, ...]
    prunes: tuple[Prune, ...]
    wake: datetime | None
    reads: frozenset[ObjectKey]
    selections: frozenset[Selection]
