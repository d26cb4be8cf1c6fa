"""Decide whether a Bundle may skip an environment.

An org gate before an environment also forbids to skip the environment. Only a skip permission in a policy namespace can
allow it, and only while its expression is true for this Bundle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.pipeline import Environment
from kardinal.promotion.policy.attestation import Attestation
from kardinal.promotion.policy.binding import place_of
from kardinal.promotion.policy.calendar import Calendar
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.evaluate import evaluate
from kardinal.promotion.policy.matching import GateTemplate
from kardinal.promotion.translation.errors import SkipDenied

__all__ = ["check_skips"]

_NO_HOLIDAYS = "a permission to skip knows no holidays"


def check_skips(
    skipped: Iterable[Environment],
    pipeline: Pipeline,
    bundle: Bundle,
    gates: Sequence[GateTemplate],
    *,
    attestation: Attestation,
    now: datetime,
) -> None:
    """Raise `SkipDenied` for the first skipped environment that is protected and that no skip permission allows."""
    for environment in skipped:
        place = place_of(pipeline, environment)
        here = [gate for gate in gates if gate.scope == "org" and gate.applies_to(place)]
        protecting = next((gate for gate in here if not gate.permits_skip), None)
        if protecting is None:
            continue
        answers = {
            gate.name: evaluate(
                gate.spec.expression,
                GateContext(
                    bundle=bundle,
                    environment=environment.name,
                    approval=environment.approval,
                    attestation=attestation,
                    calendar=Calendar(gate.spec.time_zone, holidays_problem=_NO_HOLIDAYS),
                ),
                now=now,
            )
            for gate in here
            if gate.permits_skip
        }
        if not any(answer.ready for answer in answers.values()):
            refusals = [f"{name}: {answer.reason}" for name, answer in answers.items()]
            why = "; ".join(refusals) or f"no skip permission applies to {environment.name}"
            raise SkipDenied(environment=environment.name, gate=protecting.name, why=why)
