"""The reconciler of gate instances: the gates of one Bundle before one environment.

It is the only writer of their status. It evaluates the present expression of the template that the Bundle's recorded
Graph names for the environment. The spec of the instance is never evaluated, because other users may be able to write
it. An instance is closed if no recorded Graph made it, if it differs from its node, or if its template is gone.

It evaluates again when the answer can change: after a change of the instance, its template, its Bundle, the steps of
its own and its upstream environments, an Approval, or the previous Bundle; at the moment at which time alone changes
the answer; and at the latest after recheckInterval. `policy/decision.py` decides whether an evaluation leads to a
write; most do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import structlog

from kardinal import cel
from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key, key_of, labels_of
from kardinal.promotion.api import Bundle, PolicyGate, PromotionStep
from kardinal.promotion.api.bundle import SETTLED_PHASES
from kardinal.promotion.api.image import bundle_version
from kardinal.promotion.api.names import LABEL_ENVIRONMENT
from kardinal.promotion.api.policy_gate import PolicyGateSpec, PolicyGateStatus
from kardinal.promotion.api.promotion_step import ENDED_STATES
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from kardinal.promotion.metrics.queries import subject_of
from kardinal.promotion.metrics.readings import METRICS, MetricReadings, checks_read
from kardinal.promotion.policy.calendar import Calendar
from kardinal.promotion.policy.context import GateContext
from kardinal.promotion.policy.decision import decide
from kardinal.promotion.policy.evaluate import Answer, fault
from kardinal.promotion.policy.inputs import Input
from kardinal.promotion.policy.matching import is_instance, is_template
from kardinal.promotion.policy.soak import Soak
from kardinal.promotion.translation.recorded import Untraceable, expected_spec, trace
from kardinal.promotion.translation.rollback import soak_of
from kardinal.promotion.translation.topology import read_topology
from kardinal.runtime import EventRecorder, ResourceRef, Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import (
    either,
    generation_changed,
    labels_changed,
    metadata_changed,
    status_changed,
)
from kardinal_controller.approvals import ApprovalRecords
from kardinal_controller.attestations import Attestations
from kardinal_controller.caches import Caches, bundle_key, pipeline_label
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.gates.calendars import Calendars
from kardinal_controller.gates.events import gate_event, with_condition, with_history
from kardinal_controller.gates.promotions import GatePromotion, VariableSource
from kardinal_controller.metric_checks.demand import MetricDemand
from kardinal_controller.metrics import ControlPlaneMetrics

__all__ = ["GateReconciler"]

log = structlog.get_logger(__name__)

_NEW = timedelta(seconds=2)
"""The minimum age of an instance before it counts as foreign: its Graph or Bundle may not be in the cache yet."""

_PENDING = timedelta(seconds=30)
"""The most time for which an answer that counts is kept until a check is queried."""

_REMEDY = 'the gate is closed until it is there again; if it is to hold nothing, make it with expression "true"'
_NO_TEMPLATE = "take the Bundle label off for a template"

_HEALTH = ("healthy", "healthySince", "healthyFor")


class GateReconciler:
    """Evaluates gate instances, and writes their answers."""

    def __init__(
        self,
        caches: Caches,
        *,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        metrics: ControlPlaneMetrics,
        attestations: Attestations,
        approvals: ApprovalRecords,
        expressions: ExpressionCompiler,
        calendars: Calendars,
        inputs: Sequence[VariableSource] = (),
        checks: MetricDemand,
    ) -> None:
        self._caches = caches
        self._approvals = approvals
        self._checks = checks
        self._attestations = attestations
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._expressions = expressions
        self._calendars = calendars
        self._inputs = inputs
        self._quarantine: cel.Quarantine[Answer] = cel.Quarantine()

    def sources(self) -> Sequence[Source]:
        return [
            *self._approvals.sources(self._gates_of_approval),
            # Also if the Bundle label was just removed or added.
            Watch(self._caches.gates, when=either(lambda gate: is_instance(labels_of(gate)))),
            self._checks.answered,
            # Also for a template that is deleted, or created again under the same name.
            Watch(self._caches.gates, self._gates_of_template, when=either(_is_template) & _template_changed),
            # A step that appears or disappears settles its gates; its verification starts the soak for the next
            # environment.
            Watch(self._caches.steps, self._gates_of_step, when=status_changed("state", "verifiedAt", *_HEALTH)),
            Watch(
                self._caches.bundles,
                self._gates_of_bundle,
                when=labels_changed
                | generation_changed
                | status_changed("phase", "environments", "graph", "artifacts"),
            ),
            *(source for given in self._inputs for source in given.sources()),
        ]

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.gates.get(*key)
        if current is None or not is_instance(labels_of(current)):
            self._checks.end(key)
            return Result()
        instance = PolicyGate.model_validate(current)
        try:
            promoted = self._promotion(current)
        except Untraceable as error:
            return await self._untraceable(current, instance, str(error))
        if instance.spec != promoted.spec:
            why = "its spec was changed by hand; its Graph puts it back"
            return await self._close(current, instance, why, promoted)
        stored = self._caches.gates.get(promoted.node.namespace, promoted.node.name)
        if stored is None or not _is_template(stored):
            why = f"its template {promoted.template} does not exist; {_REMEDY}"
            return await self._close(current, instance, why, promoted)
        return await self._evaluate(current, instance, PolicyGate.model_validate(stored), promoted)

    async def _evaluate(
        self, current: JsonObject, instance: PolicyGate, template: PolicyGate, promoted: GatePromotion
    ) -> Result:
        bundle = promoted.bundle
        version = {"template_uid": template.metadata.uid, "template_generation": template.metadata.generation}
        before = instance.status
        if (before.template_uid, before.template_generation) != tuple(version.values()):
            # An answer of another template does not count, so the first answer of this template is always written.
            before = PolicyGateStatus()
        recheck = min(template.spec.recheck_interval, instance.spec.recheck_interval)
        spec = template.spec.model_copy(update={"recheck_interval": recheck})
        await self._expressions.prepare([spec.expression])
        calendar = await self._calendars.of(template.metadata.namespace, spec)
        step = self._caches.step_of_graph(promoted.graph, promoted.environment)
        ended = bundle.status.phase in SETTLED_PHASES
        settled = ended or (step is not None and (step.get("status") or {}).get("state") in ENDED_STATES)
        readings = self._readings(key_of(current), spec.expression, promoted)
        if readings is not None and settled:
            # Nothing waits for the gate any more, so its last answer stays.
            self._checks.end(key_of(current))
            return Result()
        if readings is not None and readings.is_pending and (left := self._patience(instance, before)) > timedelta():
            return Result(requeue_after=left)
        decision = decide(
            instance.model_copy(update={"spec": spec, "status": before}),
            self._context(spec.expression, promoted, calendar, readings),
            now=self._clock.now(),
            passed=step is not None or ended,
            settled=settled,
            quarantine=self._quarantine,
        )
        self._metrics.gates_evaluated.labels(decision.answer.result).inc()
        log.debug(
            "gate evaluated",
            result=decision.answer.result,
            reason=decision.answer.reason,
            written=decision.status is not None,
            look_again=str(decision.look_again),
        )
        if decision.status is not None:
            if instance.status.ready is not False and not decision.answer.ready:
                self._metrics.gate_blocked(promoted.node.name, namespace=promoted.bundle.metadata.namespace)
            status = decision.status.model_copy(update=version)
            await self._answer(current, instance, status, decision.answer.result, promoted)
        return Result(requeue_after=decision.look_again)

    async def _answer(
        self,
        current: JsonObject,
        instance: PolicyGate,
        status: PolicyGateStatus,
        result: Literal["pass", "fail", "error"],
        promoted: GatePromotion | None,
    ) -> None:
        """Write an answer, and record an Event on the Bundle if it differs from the last answer."""
        now = self._clock.now()
        answer = with_history(with_condition(status, instance, result, now=now), instance, now=now)
        written = await self._status.write(POLICY_GATE, current, answer.to_json())
        if written is None:
            return
        if answer.ready != instance.status.ready:
            said = "gate opened" if answer.ready else "gate closed"
            log.info(said, environment=instance.metadata.labels.get(LABEL_ENVIRONMENT), reason=answer.reason)
        if promoted is None:
            return
        bundle = promoted.bundle
        node = promoted.node
        event = gate_event(node.name, node.environment, bundle=bundle, before=instance.status, after=answer)
        if event is not None:
            metadata = bundle.metadata
            about = ResourceRef(BUNDLE.api_version, BUNDLE.kind, metadata.namespace, metadata.name, metadata.uid)
            self._recorder.event(about, reason=event.reason, note=event.note)

    def _promotion(self, current: JsonObject) -> GatePromotion:
        """Return the promotion that an instance belongs to; raises Untraceable."""
        caches = self._caches
        node, graph, bundle = trace(current, POLICY_GATE, graphs=caches.graphs.get, bundles=caches.bundles.get)
        topology = read_topology(graph)
        found = next((gate for gate in topology.gates if gate.id == node["id"]), None)
        if found is None:
            raise Untraceable("its node does not say which gate it is")
        return GatePromotion(
            graph=graph,
            bundle=Bundle.model_validate(bundle),
            node=found,
            topology=topology,
            spec=PolicyGateSpec.model_validate(expected_spec(node, current["spec"])),
        )

    async def _untraceable(self, current: JsonObject, instance: PolicyGate, why: str) -> Result:
        """Close an instance that no recorded Graph made; a new instance may only be seen before its Graph."""
        created = instance.metadata.creation_timestamp
        age = self._clock.now() - created if created else _NEW
        if timedelta() <= age < _NEW and instance.status.ready is not True:
            return Result(requeue_after=_NEW - age)
        return await self._close(current, instance, f"{why}: instances are made by a Graph; {_NO_TEMPLATE}")

    async def _close(
        self, current: JsonObject, instance: PolicyGate, reason: str, promoted: GatePromotion | None = None
    ) -> Result:
        self._checks.end(key_of(current))
        status = PolicyGateStatus(
            observed_generation=instance.metadata.generation or None,
            ready=False,
            last_evaluated_at=instance.status.last_evaluated_at or self._clock.now(),
            reason=reason,
        )
        await self._answer(current, instance, status, "error", promoted)
        return Result()

    def _readings(self, gate: Key, expression: str, promoted: GatePromotion) -> MetricReadings | None:
        """Return what the gate reads of the checks in its template's namespace; None if it reads none."""
        readable = METRICS in expression and not fault(expression)
        names = checks_read(cel.compile(expression)) if readable else frozenset()
        if not names:
            self._checks.end(gate)
            return None
        subject = subject_of(promoted.bundle, environment=promoted.environment, pipeline=promoted.origin.pipeline)
        return self._checks.read(gate, subject, [Key(promoted.node.namespace, name) for name in names])

    def _patience(self, instance: PolicyGate, before: PolicyGateStatus) -> timedelta:
        """Return how long the gate waits for the first results of its checks, which come by themselves.

        After a start of the controller, an open gate stays open for as long as its answer counts.
        """
        now = self._clock.now()
        if before.counts_at(now):
            return min(_PENDING, (before.next_transition_at or now + _PENDING) - now)
        created = instance.metadata.creation_timestamp
        return _NEW - (now - created) if created is not None and timedelta() <= now - created else timedelta()

    def _context(
        self, expression: str, promoted: GatePromotion, calendar: Calendar, readings: MetricReadings | None
    ) -> GateContext:
        return GateContext(
            bundle=promoted.bundle,
            environment=promoted.environment,
            approval=promoted.origin.approval,
            soak=self._soak(promoted),
            previous_version=self._previous_version(expression, promoted),
            attestation=self._attestations.verify(promoted.bundle),
            approvals=self._approvals.at_gate(
                promoted.bundle, promoted.environment, promoted.template, expression=expression
            ),
            first=promoted.bundle.status.environments.keys().isdisjoint(promoted.upstreams),
            calendar=calendar,
            inputs=self._read_inputs(expression, promoted),
            metrics=readings,
        )

    def _read_inputs(self, expression: str, promoted: GatePromotion) -> dict[str, Input]:
        """Return the inputs that a gate reads; none for an expression with a fault, which is not evaluated."""
        if fault(expression):
            return {}
        program = cel.compile(expression)
        read = {reference.root for reference in program.references}
        return {each.name: each.read(promoted, program) for each in self._inputs if each.name in read}

    def _soak(self, promoted: GatePromotion) -> Soak:
        own = {name: self._caches.step_of_graph(promoted.graph, name) for name in promoted.upstreams}
        return soak_of(
            promoted.bundle,
            promoted.environment,
            promoted.upstreams,
            steps={name: PromotionStep.model_validate(step) for name, step in own.items() if step is not None},
            others=lambda: self._caches.bundles_of(promoted.bundle.metadata.namespace, promoted.origin.pipeline),
        )

    def _previous_version(self, expression: str, promoted: GatePromotion) -> str | None:
        """Return the version of the other Bundle that was Verified last in the environment."""
        if "previousBundle" not in expression:
            return None
        verified: list[tuple[datetime, Bundle]] = []
        metadata = promoted.bundle.metadata
        for stored in self._caches.bundles_of(metadata.namespace, promoted.origin.pipeline):
            other = Bundle.model_validate(stored)
            entry = other.status.environments.get(promoted.environment)
            if other.metadata.name != metadata.name and entry and entry.state == "Verified" and entry.verified_at:
                verified.append((entry.verified_at, other))
        if not verified:
            return None
        return bundle_version(max(verified, key=lambda pair: pair[0])[1].spec.artifacts)

    def _gates_of_approval(self, approval: JsonObject) -> Iterable[Key]:
        bundle = Key(approval["metadata"]["namespace"], approval["spec"]["bundle"])
        return map(key_of, self._caches.gates_of(bundle))

    def _gates_of_template(self, template: JsonObject) -> Iterable[Key]:
        return map(key_of, self._caches.instances(key_of(template)))

    def _gates_of_step(self, step: JsonObject) -> Iterable[Key]:
        return map(key_of, self._caches.gates_of(bundle_key(step)))

    def _gates_of_bundle(self, bundle: JsonObject) -> Iterable[Key]:
        """Return the Bundle's own gates, and those of its Pipeline that read the previous Bundle."""
        key = key_of(bundle)
        reading = self._caches.gates_reading("previousBundle", namespace=key.namespace, pipeline=pipeline_label(bundle))
        return map(key_of, [*self._caches.gates_of(key), *reading])


# Includes the uid: after a lost watch, a template that was deleted and created again appears as a change.
_template_changed = metadata_changed("uid", "generation", "labels")


def _is_template(gate: JsonObject) -> bool:
    return is_template(labels_of(gate))
