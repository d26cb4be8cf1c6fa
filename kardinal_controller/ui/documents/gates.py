"""The drawer of a gate: its verdict, what it saw, its past answers, and who may open it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from kardinal import cel
from kardinal.objects import JsonObject
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import PolicyGate
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.policy.approvals import APPROVALS
from kardinal.promotion.policy.comparisons import requirements
from kardinal.promotion.policy.freshness import recheck_interval
from kardinal.promotion.views.gates import GateLine
from kardinal.promotion.views.missing import no_bundle
from kardinal.promotion.views.reading import PipelineObjects
from kardinal_controller.ui.documents.cards import drawn_gate
from kardinal_controller.ui.documents.facts import facts_of
from kardinal_controller.ui.documents.sentences import gate_sentence
from kardinal_controller.ui.documents.tones import mark
from kardinal_controller.ui.model import GateAnswer, GateDocument, GateValue

__all__ = ["NoGate", "gate_document"]


_TEMPLATES = f"{POLICY_GATE.plural}.{POLICY_GATE.group}"
_MUST: Final = {"==": "", "!=": "other than", "<": "below", "<=": "at most", ">": "above", ">=": "at least"}


class NoGate(KardinalError):
    """The Bundle that is shown has no such gate before that environment."""


def gate_document(
    objects: PipelineObjects,
    environment: str,
    gate_namespace: str,
    gate: str,
    *,
    template: JsonObject | None,
    now: datetime,
) -> GateDocument:
    """Return the drawer of a gate before an environment.

    `template` is the PolicyGate that the gate was made from, None if it is deleted or cannot be read. Raises
    `NotThere` for a Pipeline without a Bundle, and `NoGate`.
    """
    facts = facts_of(objects, now=now)
    if objects.bundle is None:
        raise no_bundle(facts.pipeline)
    line = _find(facts.gates.get(environment, ()), gate_namespace, gate)
    if line is None:
        raise NoGate(f"no gate {gate_namespace}/{gate} stands before {environment}")
    instance = facts.instance(line)
    made = instance.spec if instance is not None else None
    spec = PolicyGate.model_validate(template).spec if template is not None else made
    expression = spec.expression if spec is not None else ""
    interval = min((recheck_interval(each) for each in (spec, made) if each is not None), default=None)
    return GateDocument(
        namespace=objects.pipeline.metadata.namespace,
        pipeline=facts.pipeline,
        bundle=objects.bundle.metadata.name,
        gate=drawn_gate(line, facts),
        verdict=gate_sentence(facts, line),
        expression=expression,
        message=line.message,
        values=list(_values(instance, expression)),
        history=list(_history(instance)),
        next_look=_next_look(instance, interval, now=now) if instance is not None and interval is not None else None,
        recheck_seconds=round(interval.total_seconds()) if interval is not None else None,
        owner=line.owner,
        approvable=_reads_approvals(expression),
        right_command=shlex.join(
            ["kubectl", "auth", "can-i", "patch", f"{_TEMPLATES}/{line.name}", "--namespace", line.namespace]
        ),
        commands=[
            f"kardinal explain {facts.pipeline} --env {environment}",
            shlex.join(["kubectl", "get", "policygate", line.name, "--namespace", line.namespace, "--output", "yaml"]),
        ],
    )


def _find(gates: Sequence[GateLine], namespace: str, name: str) -> GateLine | None:
    return next((gate for gate in gates if (gate.namespace, gate.name) == (namespace, name)), None)


def _values(instance: PolicyGate | None, expression: str) -> Iterator[GateValue]:
    try:
        needed = requirements(expression) if expression else []
    except cel.CompileError:
        needed = []
    for seen in (instance.status.values if instance is not None else None) or ():
        needs = [f"{_MUST[each.operator]} {each.literal_text}".strip() for each in needed if each.path == seen.name]
        yield GateValue(name=seen.name, value=seen.value, needed=f"must be {' and '.join(needs)}" if needs else None)


def _reads_approvals(expression: str) -> bool:
    try:
        return any(reference.root == APPROVALS for reference in cel.compile(expression).references)
    except cel.CompileError:
        return False


def _history(instance: PolicyGate | None) -> Iterator[GateAnswer]:
    for past in reversed((instance.status.history if instance is not None else None) or ()):
        answer = mark("Gate", "PASS" if past.ready else "FAIL")
        yield GateAnswer(answer=answer, since=past.since, reason=past.reason or "")


def _next_look(instance: PolicyGate, interval: timedelta, *, now: datetime) -> datetime | None:
    """Return when the gate is evaluated again at the latest: after its interval, or when time changes its answer.

    None if that has passed: a look that gives the same answer is written nowhere, so the next one is not known.
    """
    status = instance.status
    if status.last_evaluated_at is None:
        return None
    look = status.last_evaluated_at + interval
    if status.next_transition_at is not None:
        look = min(look, status.next_transition_at)
    return look if look > now else None
