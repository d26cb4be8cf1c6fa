"""Simulate and replay the gates before an environment, from the objects that the reader may read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kardinal import cel
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.api.evidence import GateResult
from kardinal.promotion.policy.attributes import BUNDLE_ROOTS
from kardinal.promotion.policy.binding import place_of
from kardinal.promotion.policy.calendar import Calendar
from kardinal.promotion.policy.changes import binding_gates
from kardinal.promotion.policy.evaluate import Answer, fault
from kardinal.promotion.policy.matching import GateTemplate, collect
from kardinal.promotion.policy.recording import RecordedContext, evaluate_recorded
from kardinal.promotion.policy.simulation import Interval, intervals
from kardinal.promotion.views.missing import unknown_environment
from kardinal.promotion.views.reader import Reader

__all__ = [
    "GateSituation",
    "NoRecord",
    "Replayed",
    "SimulatedGate",
    "binding_templates",
    "needs_bundle",
    "recorded_results",
    "replayed",
]


class NoRecord(KardinalError):
    """A Bundle of which no inputs of gates are recorded."""


@dataclass(frozen=True, slots=True)
class SimulatedGate:
    """A gate before an environment, with what its evaluation reads."""

    gate: GateTemplate
    context: RecordedContext

    def at(self, now: datetime) -> Answer:
        return evaluate_recorded(self.gate.spec.expression, self.context, now=now)

    def over(self, start: datetime, end: datetime) -> list[Interval]:
        """Return the answers from `start` to `end`."""
        answer = self.at(start)
        if answer.result == "error":
            return [Interval(start, end, open=False, reason=answer.reason)]
        return intervals(self.gate.spec.expression, self.context, start=start, end=end)


@dataclass(frozen=True, slots=True)
class GateSituation:
    """The Bundle before an environment, with the instances of the gates there; None for time alone."""

    environment: str
    approval: str
    bundle: Bundle | None = None
    instances: Sequence[PolicyGate] = ()

    def simulated(self, gate: GateTemplate, calendar: Calendar, *, now: datetime) -> SimulatedGate:
        """Return a gate with the values that its instance has recorded; without one, with those of the Bundle."""
        recorded: Mapping[str, Any] = {}
        at = now
        if self.bundle is not None:
            recorded = {"bundle": _of_bundle(self.bundle)}
        instance = next(filter(lambda each: self._is_of(each, gate), self.instances), None)
        if instance is not None and instance.status.inputs is not None and instance.status.last_evaluated_at:
            recorded = _merged([recorded, instance.status.inputs])
            at = instance.status.last_evaluated_at
        # Holidays are those of today's ConfigMap.
        recorded = {**recorded, "schedule": {"isHoliday": None}}
        context = RecordedContext(self.bundle, self.environment, self.approval, calendar, recorded, at)
        return SimulatedGate(gate, context)

    def _is_of(self, instance: PolicyGate, gate: GateTemplate) -> bool:
        origin = instance.spec.origin
        return origin is not None and (origin.namespace, origin.name, origin.environment) == (
            gate.namespace,
            gate.name,
            self.environment,
        )


@dataclass(frozen=True, slots=True)
class Replayed:
    """The answer of a gate that was recorded, and the one that a policy gives for the same inputs."""

    namespace: str
    name: str
    recorded: GateResult | None
    """None for a gate that stood not before the environment then."""
    answer: Answer

    @property
    def is_same(self) -> bool:
        return self.recorded is not None and (self.recorded.result == "pass") == self.answer.ready


async def binding_templates(
    reader: Reader, pipeline: Pipeline, environment: str, *, policy_namespaces: Collection[str]
) -> list[GateTemplate]:
    """Return the gates that stand before an environment today. Raises `Missing` for an unknown environment."""
    known = {each.name: each for each in pipeline.spec.environments}
    if environment not in known:
        raise unknown_environment(pipeline.metadata.name, environment, list(known))
    namespace = pipeline.metadata.namespace
    stored = [gate for each in sorted({namespace, *policy_namespaces}) for gate in await reader.gates(each)]
    templates = collect(
        map(PolicyGate.model_validate, stored),
        pipeline=pipeline.metadata.name,
        namespace=namespace,
        policy_namespaces=policy_namespaces,
    )
    return list(binding_gates(templates, place_of(pipeline, known[environment])))


def needs_bundle(gates: Iterable[GateTemplate]) -> bool:
    """Return whether a gate reads anything of a Bundle."""
    expressions = [gate.spec.expression for gate in gates]
    return any(
        not BUNDLE_ROOTS.isdisjoint(reference.root for reference in cel.compile(each).references)
        for each in expressions
        if fault(each) is None
    )


def recorded_results(bundle: Bundle, environment: str, instances: Iterable[PolicyGate]) -> list[GateResult]:
    """Return the recorded answers before an environment: of its evidence, else of the instances. Raises `NoRecord`."""
    entry = bundle.status.environments.get(environment)
    found: list[GateResult] = []
    if entry is not None and entry.evidence is not None:
        found = list(entry.evidence.policy_gates)
    if not found:
        found = [result for each in instances if (result := _result(each, environment)) is not None]
    if not any(result.inputs is not None for result in found):
        raise NoRecord(
            f"no inputs of gates before {environment} are recorded of {bundle.metadata.name}",
            remedy="They are recorded from the first evaluation on, and kept with the evidence where there is space.",
        )
    return found


def replayed(
    results: Sequence[GateResult], policies: Mapping[tuple[str, str], PolicyGate], situation: GateSituation
) -> list[Replayed]:
    """Return the answers of `policies`, by namespace and name, for recorded inputs.

    A policy without a record of its own is asked with all inputs together, at the time of the last evaluation.
    """
    together = _merged([result.inputs for result in results if result.inputs is not None])
    last = max(result.evaluated_at for result in results if result.evaluated_at is not None)
    by_gate = {(result.namespace or "", result.name): result for result in results}
    found = []
    for (namespace, name), policy in policies.items():
        result = by_gate.get((namespace, name))
        inputs = result.inputs if result is not None else None
        at = (result.evaluated_at if result is not None else None) or last
        recorded = inputs if inputs is not None else together
        calendar = Calendar(policy.spec.time_zone, frozenset())
        context = RecordedContext(situation.bundle, situation.environment, situation.approval, calendar, recorded, at)
        answer = evaluate_recorded(policy.spec.expression, context, now=at)
        found.append(Replayed(namespace, name, result, answer))
    return found


def _result(instance: PolicyGate, environment: str) -> GateResult | None:
    origin = instance.spec.origin
    status = instance.status
    if origin is None or origin.environment != environment or status.ready is None:
        return None
    return GateResult(
        name=origin.name,
        namespace=origin.namespace,
        template_generation=status.template_generation,
        scope=origin.scope,
        result="pass" if status.ready else "fail",
        reason=status.reason,
        evaluated_at=status.last_evaluated_at,
        inputs=status.inputs,
    )


def _of_bundle(bundle: Bundle) -> dict[str, Any]:
    intent = bundle.spec.intent.model_copy(update={"requests": None, "rollback": None})
    return {"labels": bundle.metadata.labels, "intent": intent.to_json()}


def _merged(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return one record of several of the same Bundle, attribute by attribute."""
    found: dict[str, Any] = {}
    for recorded in records:
        for root, value in recorded.items():
            before = found.get(root)
            found[root] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
    return found
