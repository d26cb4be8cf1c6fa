"""List the gates of a Bundle: the nodes of its Graph, with the answers in the status of the gate instances (pure).

No gate is evaluated here. A gate whose instance is not created yet, or has no answer yet, is PENDING.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from kardinal.promotion.api import Bundle, Graph, PolicyGate
from kardinal.promotion.api.evidence import Evidence
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.policy.context import SOAK
from kardinal.promotion.views.states import Answer

__all__ = ["GateLine", "gate_answer", "gate_lines", "reads_soak", "recorded_gates"]

_NOT_CREATED = "waits for the environment before it"
_NOT_EVALUATED = "not evaluated yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLine:
    """One gate before one environment.

    `namespace` and `name` are those of the gate template; `scope` is `org` or `team`. `detail` is the reason of the
    answer, with the values that the expression read at the time `seen_at`.
    """

    environment: str
    namespace: str
    name: str
    scope: str
    answer: Answer
    detail: str
    message: str = ""
    """`spec.message`: the author's text for people whose Bundle is held, such as "Ask #sre before you override"."""
    instance: str = ""
    """Name of the gate instance; empty if it is not known any more."""
    seen_at: datetime | None = None
    opens_at: datetime | None = None
    """The earliest time at which a closed gate can open by the passing of time alone; None if it cannot."""

    @property
    def owner(self) -> str:
        """Return the text about the people who can open the gate."""
        return f"who may change PolicyGate {self.namespace}/{self.name}"


def gate_answer(gate: PolicyGate) -> Answer:
    """Return the answer in the status of a gate instance."""
    return "PENDING" if gate.status.ready is None else "PASS" if gate.status.ready else "FAIL"


def reads_soak(gate: PolicyGate) -> bool:
    """Return whether the answer of a gate instance rests on a soak, or waits for one."""
    if gate.status.values is not None:
        return any(value.name == SOAK for value in gate.status.values)
    return SOAK in gate.spec.expression


def gate_lines(graph: Graph | None, instances: Iterable[PolicyGate]) -> list[GateLine]:
    """Return all gates of a Graph in the order of its nodes, also those whose instance is not created yet."""
    by_name = {gate.metadata.name: gate for gate in instances}
    return list(_lines(graph, by_name)) if graph is not None else []


def recorded_gates(bundle: Bundle, environments: Iterable[str]) -> list[GateLine]:
    """Return the gates in the evidence of the given environments; used if no Graph has these environments any more."""
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
        origin = spec["origin"]
        waiting = states.get(node["id"])
        # In a Graph, `$${` is an escaped `${`, which would begin an expression.
        message = str(spec.get("message", "")).replace("$${", "${")
        gate = instances.get(template["metadata"]["name"])
        answer: Answer = "PENDING"
        detail = (waiting.message or waiting.reason if waiting else None) or _NOT_CREATED
        if gate is not None:
            answer = gate_answer(gate)
            detail = gate.status.reason or _NOT_EVALUATED
        yield GateLine(
            environment=origin["environment"],
            namespace=origin["namespace"],
            name=origin["name"],
            scope=origin["scope"],
            answer=answer,
            detail=detail,
            message=message,
            instance=template["metadata"]["name"],
            seen_at=gate.status.last_evaluated_at if gate else None,
            opens_at=gate.status.next_transition_at if gate and answer == "FAIL" else None,
        )
