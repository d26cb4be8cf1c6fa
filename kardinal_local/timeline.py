"""Turn watch events into lines for a person: one line for each visible change of state (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kardinal.promotion.api import Bundle, PolicyGate, PromotionStep

__all__ = ["Line", "Timeline"]


@dataclass(frozen=True, slots=True)
class Line:
    """One change of state, for example `Line(4.2, "dev", "Verified", "runs 6.7.1")`.

    `seconds` is the time since the start. `subject` is an environment, a gate or `bundle`; `message` is the reason.
    """

    seconds: float
    subject: str
    state: str
    message: str


@dataclass(slots=True)
class Timeline:
    """The lines so far. It remembers the last state of each subject, so that an event without a change adds no line."""

    lines: list[Line] = field(default_factory=list)
    steps: dict[str, PromotionStep] = field(default_factory=dict)
    bundle: Bundle | None = None
    _last: dict[str, tuple[str, str]] = field(default_factory=dict)

    def observe(self, document: Mapping[str, Any], *, seconds: float) -> Line | None:
        subject, state, message = self._read(document)
        if not state or self._last.get(subject) == (state, message):
            return None
        self._last[subject] = (state, message)
        line = Line(seconds, subject, state, message)
        self.lines.append(line)
        return line

    def _read(self, document: Mapping[str, Any]) -> tuple[str, str, str]:
        match document["kind"]:
            case "PromotionStep":
                step = PromotionStep.model_validate(document)
                self.steps[step.spec.environment] = step
                return step.spec.environment, step.status.state or "", step.status.message or ""
            case "PolicyGate":
                gate = PolicyGate.model_validate(document)
                if gate.spec.origin is None or gate.status.ready is None:
                    return gate.metadata.name, "", ""
                answer = "PASS" if gate.status.ready else "FAIL"
                return f"gate {gate.spec.origin.name}", answer, gate.status.reason or ""
            case _:
                self.bundle = Bundle.model_validate(document)
                return "bundle", self.bundle.status.phase or "", ""
