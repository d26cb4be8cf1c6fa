"""The gates of a Bundle, as its Graph names them and their controller answered them (pure).

Nothing is evaluated here. A gate of the Graph that has no instance yet, or whose instance has no answer yet, is
PENDING: it has neither let anything pass nor refused it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kardinal.api import POLICY_GATE, Bundle, Graph, PolicyGate
from kardinal.api.evidence import Evidence

__all__ = ["Answer", "GateLine", "gate_answer", "gate_lines", "recorded_gates"]

Answer = Literal["PASS", "FAIL", "PENDING"]

_NOT_CREATED = "waits for the environment before it"
_NOT_EVALUATED = "not evaluated yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLine:
    """One gate before one environment; `detail` has the values that were seen at `seen_at`."""

    environment: str
    namespace: str
    name: str
    scope: str
    answer: Answer
    detail: str
    message: str = ""
    """The text that the author of the gate wrote for those it holds."""
    seen_at: datetime | None = None
    opens_at: datetime | None = None
    """The moment at which time alone can open it."""

    @property
    def owner(self) -> str:
        """Return who can open it, apart from time."""
        return f"who may change PolicyGate {self.namespace}/{self.name}"


def gate_answer(gate: PolicyGate) -> Answer:
    """Return the answer of an instance."""
    return "PENDING" if gate.status.ready is None else "PASS" if gate.status.ready else "FAIL"


def gate_lines(graph: Graph | None, instances: Iterable[PolicyGate]) -> list[GateLine]:
    """Return every gate of the Graph in its order, whether its instance was created yet or not."""
    by_name = {gate.metadata.name: gate for gate in instances}
    return list(_lines(graph, by_name)) if graph is not None else []


def recorded_gates(bundle: Bundle, environments: Iterable[str]) -> list[GateLine]:
    """Return the gates of environments as their evidence has them, for those that no Graph has any more."""
    return [
        GateLine(
            environment=name,
            namespace=gate.namespace or "",
            name=gate.name,
            scope=gate.scope or "team",
            answer="PASS" if gate.result == "pass" else "FAIL",
            detail=gate.reason or "no reason is kept",
            seen_at=gate.evaluated_at,
        )
        for name in environments
        for gate in (bundle.status.environments[name].evidence or Evidence()).policy_gates
    ]


def _lines(graph: Graph, instances: Mapping[str, PolicyGate]) -> Iterator[GateLine]:
    states = {status.id: status for status in graph.status.nodes}
    for node in graph.spec.nodes:
        template = node.get("template") or {}
        spec = template.get("spec") or {}
        if template.get("kind") != POLICY_GATE.kind or "origin" not in spec:
            continue
        origin, waiting = spec["origin"], states.get(node["id"])
        # The text of a Graph has its dollars doubled where they could be taken for an expression.
        message = str(spec.get("message", "")).replace("$${", "${")
        gate = instances.get(template["metadata"]["name"])
        answer: Answer = "PENDING"
        detail = (waiting.message or waiting.reason if waiting else None) or _NOT_CREATED
        if gate is not None:
            answer, detail = gate_answer(gate), gate.status.reason or _NOT_EVALUATED
        yield GateLine(
            environment=origin["environment"],
            namespace=origin["namespace"],
            name=origin["name"],
            scope=origin["scope"],
            answer=answer,
            detail=detail,
            message=message,
            seen_at=gate.status.last_evaluated_at if gate else None,
            opens_at=gate.status.next_transition_at if gate and answer == "FAIL" else None,
        )
