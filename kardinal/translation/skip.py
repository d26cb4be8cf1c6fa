"""Decide whether a Bundle may skip an environment.

An org gate that stands before an environment protects it from being skipped, too. Only a skip permission from a policy
namespace can lift that, and only while its expression says so for this very Bundle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from kardinal.api import Bundle, Pipeline
from kardinal.api.pipeline import Environment
from kardinal.policy.attestation import Attestation
from kardinal.policy.binding import place_of
from kardinal.policy.context import Context
from kardinal.policy.evaluate import evaluate
from kardinal.policy.matching import GateTemplate
from kardinal.translation.errors import SkipDenied

__all__ = ["check_skips"]


def check_skips(
    skipped: Iterable[Environment],
    pipeline: Pipeline,
    bundle: Bundle,
    gates: Sequence[GateTemplate],
    *,
    attestation: Attestation,
    now: datetime,
) -> None:
    """Raise `SkipDenied` for the first environment that is protected and not permitted to be left out."""
    for environment in skipped:
        place = place_of(pipeline, environment)
        here = [gate for gate in gates if gate.scope == "org" and gate.applies_to(place)]
        protecting = next((gate for gate in here if not gate.permits_skip), None)
        if protecting is None:
            continue
        context = Context(
            bundle=bundle, environment=environment.name, approval=environment.approval, attestation=attestation
        )
        answers = {gate.name: evaluate(gate.spec.expression, context, now=now) for gate in here if gate.permits_skip}
        if not any(answer.ready for answer in answers.values()):
            refusals = [f"{name}: {answer.reason}" for name, answer in answers.items()]
            why = "; ".join(refusals) or f"no skip permission applies to {environment.name}"
            raise SkipDenied(environment=environment.name, gate=protecting.name, why=why)
