"""The reconciler of gate templates and freezes: what their authors should know before a Bundle meets them.

A template is never open or closed; it is valid or not. Its status says whether the expression can be evaluated and
which of its labels have no effect, and each time that changes to something wrong, an Event says so too. A freeze is
always closed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kardinal.api import POLICY_GATE, PolicyGate, set_condition
from kardinal.api.names import LABEL_PIPELINE, label_value
from kardinal.api.policy_gate import PolicyGateStatus
from kardinal.objects import JsonObject, Key, key_of, labels_of
from kardinal.policy.evaluate import fault
from kardinal.policy.matching import gate_warnings, is_instance, is_template, name_warnings
from kardinal.runtime import Clock, EventRecorder, Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import either, generation_changed
from kardinal_controller.caches import Caches

__all__ = ["TemplateReconciler"]


class TemplateReconciler:
    """Validates gate templates and keeps freezes closed."""

    def __init__(
        self,
        caches: Caches,
        *,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        policy_namespaces: Collection[str],
    ) -> None:
        self._caches = caches
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._policy_namespaces = policy_namespaces

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
        reason, message = self._verdict(gate)
        now = self._clock.now()
        conditions = set_condition(
            gate.status.conditions,
            "Valid",
            "False" if reason == "InvalidExpression" else "True",
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

    def _verdict(self, gate: PolicyGate) -> tuple[str, str]:
        if broken := fault(gate.spec.expression):
            return "InvalidExpression", f"{broken}; the gate stays closed"
        vain = gate_warnings(gate, environments=self._environments(gate), policy_namespaces=self._policy_namespaces)
        names = name_warnings(gate, policy_namespaces=self._policy_namespaces)
        reason = "Ineffective" if vain else "SelectsByName" if names else "Valid"
        return reason, "; ".join((*vain, *names))

    def _environments(self, gate: PolicyGate) -> set[str]:
        """Return the environments of every Pipeline that the gate can stand in."""
        namespace = gate.metadata.namespace
        if namespace in self._policy_namespaces:
            pipelines = self._caches.pipelines.list()
        else:
            limit = gate.metadata.labels.get(LABEL_PIPELINE)
            pipelines = [
                pipeline
                for pipeline in self._caches.pipelines.list(namespace)
                if limit in (None, label_value(pipeline["metadata"]["name"]))
            ]
        # A Pipeline may be stored without environments.
        return {entry["name"] for pipeline in pipelines for entry in pipeline["spec"].get("environments", ())}

    def _templates_of_pipeline(self, pipeline: JsonObject) -> Iterable[Key]:
        namespaces = [*self._policy_namespaces, pipeline["metadata"]["namespace"]]
        return map(key_of, self._caches.templates(namespaces))
