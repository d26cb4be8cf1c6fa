"""The reconciler of gate templates and freezes: it warns their authors before a Bundle meets them.

A template is never open or closed; it is valid or not. Its status says whether the expression can be evaluated and
which of its fields and labels have no effect, and whenever that changes to a problem, an Event reports it, too. A
freeze is always closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key, key_of, labels_of
from kardinal.promotion.api import Pipeline, PolicyGate, set_condition
from kardinal.promotion.api.names import LABEL_APPLIES_TO, LABEL_PIPELINE
from kardinal.promotion.api.overlong import overlong
from kardinal.promotion.api.policy_gate import PolicyGateSpec, PolicyGateStatus
from kardinal.promotion.api.stored import StoredModels
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.policy.calendar import zone_problem
from kardinal.promotion.policy.context import SOAK
from kardinal.promotion.policy.evaluate import fault
from kardinal.promotion.policy.matching import is_instance, is_template, named_environments
from kardinal.promotion.policy.template_warnings import (
    gate_warnings,
    ignored_fields,
    label_mistakes,
    name_warnings,
    namespace_warnings,
)
from kardinal.promotion.translation.soakless import First, asks_for_soak, firsts_held, soak_warning
from kardinal.runtime import EventRecorder, Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import either, generation_changed
from kardinal_controller.caches import Caches
from kardinal_controller.expressions import ExpressionCompiler

__all__ = ["TemplateReconciler"]

_AT_ONCE: Final = 32
"""The number of Pipelines examined before other tasks get the event loop."""


class TemplateReconciler:
    """Validate gate templates and keep freezes closed."""

    def __init__(
        self,
        caches: Caches,
        *,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        policy_namespaces: Collection[str],
        expressions: ExpressionCompiler,
    ) -> None:
        self._caches = caches
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._policy_namespaces = policy_namespaces
        self._expressions = expressions
        self._pipelines = StoredModels(Pipeline)

    def sources(self) -> Sequence[Source]:
        return [
            Watch(self._caches.gates, when=either(lambda gate: not is_instance(labels_of(gate)))),
            Watch(self._caches.pipelines, self._templates_of_pipeline, when=generation_changed),
        ]

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.gates.get(*key)
        if current is None or is_instance(labels_of(current)):
            return Result()
        gate = PolicyGate.model_validate(current)
        await self._expressions.prepare([gate.spec.expression])
        reason, message = await self._verdict(gate, overlong(PolicyGateSpec, current.get("spec"), field="spec"))
        now = self._clock.now()
        conditions = set_condition(
            gate.status.conditions,
            "Valid",
            "False" if reason.startswith("Invalid") else "True",
            reason=reason,
            message=message,
            now=now,
            observed_generation=gate.metadata.generation or None,
        )
        status = PolicyGateStatus(observed_generation=gate.metadata.generation or None, conditions=conditions)
        if not is_template(labels_of(current)):
            frozen = {"ready": False, "last_evaluated_at": gate.status.last_evaluated_at or now}
            status = status.model_copy(update={**frozen, "reason": gate.spec.message or "paused"})
        written = await self._status.write(POLICY_GATE, current, status.to_json())
        if written is not None and reason != "Valid":
            self._recorder.event(current, type="Warning", reason=reason, note=message)
        return Result()

    async def _verdict(self, gate: PolicyGate, too_long: Iterable[str]) -> tuple[str, str]:
        if unknown := zone_problem(gate.spec.time_zone):
            return "InvalidTimeZone", f"{unknown}; a gate that reads schedule stays closed"
        if broken := fault(gate.spec.expression):
            return "InvalidExpression", f"{broken}; the gate stays closed"
        vain = [*(f"{field} {remedy}" for field, remedy in ignored_fields(gate)), *too_long]
        vain += gate_warnings(
            gate,
            unknown=self._unknown(gate),
            policy_namespaces=self._policy_namespaces,
            has_pipeline=self._caches.has_environment("", gate.metadata.namespace),
        )
        vain += filter(None, (*label_mistakes(gate), soak_warning(await self._firsts(gate))))
        names = name_warnings(gate, policy_namespaces=self._policy_namespaces)
        spaces = namespace_warnings(gate, policy_namespaces=self._policy_namespaces)
        reasons = {"Ineffective": vain, "SelectsByName": names, "SelectsByNamespace": spaces}
        reason = next((reason for reason, warnings in reasons.items() if warnings), "Valid")
        return reason, "; ".join((*vain, *names, *spaces))

    async def _firsts(self, gate: PolicyGate) -> list[First]:
        """Return the environments without upstreams before which a gate stands that asks for a soak."""
        if not asks_for_soak(gate) or not is_template(gate.metadata.labels):
            return []
        namespace = gate.metadata.namespace
        everywhere = namespace in self._policy_namespaces
        found: list[First] = []
        for pipelines in _batched(self._caches.pipelines.list(None if everywhere else namespace)):
            models = [self._pipelines.of(each) for each in pipelines]
            found += firsts_held(gate, models, policy_namespaces=self._policy_namespaces)
            await asyncio.sleep(0)  # There may be thousands of Pipelines.
        return found

    def _unknown(self, gate: PolicyGate) -> set[str]:
        """Return the environments that a gate names but no Pipeline has; empty while there is no Pipeline at all."""
        named = named_environments(gate)
        known = self._known(gate)
        return {name for name in named if not known(name)} if named and known("") else set()

    def _known(self, gate: PolicyGate) -> Callable[[str], bool]:
        """Return a predicate: whether a Pipeline that the gate can hold has this environment.

        The environment `""` stands for any environment.
        """
        namespace = gate.metadata.namespace
        limit = gate.metadata.labels.get(LABEL_PIPELINE)
        if namespace in self._policy_namespaces:
            return self._caches.has_environment
        if limit is None:
            return lambda environment: self._caches.has_environment(environment, namespace)
        pipeline = self._caches.pipeline(namespace, limit)
        entries = pipeline["spec"].get("environments", ()) if pipeline else ()
        return lambda environment: any(environment in ("", entry["name"]) for entry in entries)

    def _templates_of_pipeline(self, pipeline: JsonObject) -> Iterable[Key]:
        """Return the templates whose warnings depend on a Pipeline.

        These are the templates of its namespace, and the org templates that name environments or ask for a soak.
        """
        own = pipeline["metadata"]["namespace"]
        return [
            key_of(gate)
            for gate in self._caches.templates([*self._policy_namespaces, own])
            if gate["metadata"]["namespace"] == own
            or gate["spec"].get("appliesTo")
            or LABEL_APPLIES_TO in labels_of(gate)
            or SOAK.rpartition(".")[2] in gate["spec"]["expression"]
        ]


def _batched(found: Sequence[JsonObject]) -> Iterator[Sequence[JsonObject]]:
    """Yield the objects in batches."""
    return (found[start : start + _AT_ONCE] for start in range(0, len(found), _AT_ONCE))
