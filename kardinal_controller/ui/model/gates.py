"""A gate before an environment, in the DAG and in its drawer."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from kardinal_controller.ui.model.parts import Sentence, StateMark, View

__all__ = ["DrawnGate", "GateAnswer", "GateDocument", "GateSoak", "GateValue"]


class GateSoak(View):
    """The soak of the Bundle before a gate, as the gate counts it: the shortest healthy time in what is before it."""

    since: datetime | None = None
    """It grows, and is the time since then; absent while it does not grow."""
    seconds: int | None = None
    """The value at which it stands, or with `since` at which it stops growing; absent without such an end."""
    unknown: str | None = None
    """The reason why there is none, such as `staging is not Verified`."""


class DrawnGate(View):
    """A gate in the DAG; it stands before one environment."""

    kind: Literal["gate"] = "gate"
    environment: str
    namespace: str
    name: str
    scope: Literal["org", "team"]
    answer: StateMark
    detail: str
    seen_at: datetime | None = None
    opens_at: datetime | None = None
    soak: GateSoak | None = None
    """Only of a gate that reads `bundle.upstreamSoakMinutes`."""


class GateAnswer(View):
    """An answer that a gate gave, until the next one."""

    answer: StateMark
    since: datetime
    reason: str


class GateValue(View):
    """A value that the expression read: `{"name": "schedule.hour", "value": "20", "needed": "must be below 17"}`."""

    name: str
    value: str
    needed: str | None = None


class GateDocument(View):
    """The drawer of a gate before an environment."""

    namespace: str
    pipeline: str
    bundle: str
    gate: DrawnGate
    verdict: Sentence
    expression: str
    message: str
    values: list[GateValue]
    history: list[GateAnswer]
    """Its last answers, newest first, at most 20."""
    next_look: datetime | None = None
    """When it is evaluated again at the latest; absent if that is not known, as a look with the same answer is written
    nowhere."""
    recheck_seconds: int | None = None
    """The longest time between two looks."""
    owner: str
    approvable: bool
    """Whether it reads the approvals that people give."""
    right_command: str
    """The command by which a person finds out whether they may open it: names are in no cache, and RBAC answers."""
    commands: list[str]
