"""The reconciler of gate instances: the gates that one Bundle meets before one environment.

It is the only writer of their status. What it decides by are the node of the Bundle's recorded Graph, which says which
template stands before which environment, and that template as it is now: the instance is a view, and its spec, which
others may be able to write, is never evaluated. An instance that no such Graph made, that differs from its node, or
whose template is gone, is closed.

It evaluates again exactly when the answer can change: on a change of the instance, of its template, of its Bundle, of
the steps before and behind it, of the Bundle that was there before; at the moment at which time alone changes the
answer; and at the latest after recheckInterval. `kardinal.policy.decision` says whether an evaluation is worth a
write; most are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from kardinal import cel
from kardinal.api import BUNDLE, POLICY_GATE, Bundle, PolicyGate, PromotionStep
from kardinal.api.image import bundle_version
from kardinal.api.names import step_name
from kardinal.api.policy_gate import GateOrigin, PolicyGateSpec, PolicyGateStatus
from kardinal.api.promotion_step import ENDED_STATES
from kardinal.objects import GRAPH, JsonObject, Key, controller_of, key_of, labels_of
from kardinal.policy.context import Context
from kardinal.policy.decision import decide
from kardinal.policy.evaluate import Answer
from kardinal.policy.matching import is_instance, is_template
from kardinal.policy.soak import HealthyTime, Soak, healthy_time, upstream_soak
from kardinal.runtime import Clock, EventRecorder, ResourceRef, Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import (
    either,
    generation_changed,
    labels_changed,
    metadata_changed,
    status_changed,
)
from kardinal.translation.recorded import Untraceable, expected_spec, trace
from kardinal.translation.rollback import soak_of_restored
from kardinal.translation.topology import GateNode, read_topology
from kardinal_controller.attestations import Attestations
from kardinal_controller.caches import Caches, bundle_key, pipeline_label
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.gates.events import gate_event, with_condition
from kardinal_controller.metrics import ControlPlaneMetrics

__all__ = ["GateReconciler"]

_NEW = timedelta(seconds=2)
"""How old an instance must be before it is called foreign: its Graph or Bundle may only be about to be visible."""

_REMEDY = 'the gate is closed until it is there again; if it is to hold nothing, make it with expression "true"'
_NO_TEMPLATE = "take the Bundle label off for a template"

_HEALTH = ("healthy", "healthySince", "healthyFor")

_NOTHING_STARTS = frozenset(["Verified", "Superseded", "SkipDenied"])
"""Phases in which no step starts any more. In a failed Bundle, environments beside the failed one still go on."""


@dataclass(frozen=True, slots=True)
class _Promotion:
    """The promotion that the recorded Graph of a Bundle says an instance is for."""

    graph: JsonObject
    bundle: Bundle
    node: GateNode
    upstreams: tuple[str, ...]
    """The environments whose soak counts."""
    spec: PolicyGateSpec
    """The spec that the instance must have."""

    @property
    def environment(self) -> str:
        return self.node.environment

    @property
    def template(self) -> Key:
        return Key(self.node.namespace, self.node.name)

    @property
    def origin(self) -> GateOrigin:
        assert self.spec.origin is not None  # noqa: S101 - translation writes it into every gate
        return self.spec.origin


class GateReconciler:
    """Evaluates gate instances."""

    def __init__(
        self,
        caches: Caches,
        *,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
        metrics: ControlPlaneMetrics,
        attestations: Attestations,
        expressions: ExpressionCompiler,
    ) -> None:
        self._caches = caches
        self._attestations = attestations
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._expressions = expressions
        self._quarantine: cel.Quarantine[Answer] = cel.Quarantine()

    def sources(self) -> Sequence[Source]:
        return [
            # Also where the Bundle label was taken off or put on just now.
            Watch(self._caches.gates, when=either(lambda gate: is_instance(labels_of(gate)))),
            # Also a template that is deleted, and one made again under its name.
            Watch(self._caches.gates, self._gates_of_template, when=either(_is_template) & _template_changed),
            # A step that appears or goes settles its gates; its verification starts the soak of the next.
            Watch(self._caches.steps, self._gates_of_step, when=status_changed("state", "verifiedAt", *_HEALTH)),
            Watch(
                self._caches.bundles,
                self._gates_of_bundle,
                when=labels_changed
                | generation_changed
                | status_changed("phase", "environments", "graph", "artifacts"),
            ),
        ]

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.gates.get(*key)
        if current is None or not is_instance(labels_of(current)):
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
        self, current: JsonObject, instance: PolicyGate, template: PolicyGate, promoted: _Promotion
    ) -> Result:
        bundle = promoted.bundle
        version = {"template_uid": template.metadata.uid, "template_generation": template.metadata.generation}
        before = instance.status
        if (before.template_uid, before.template_generation) != tuple(version.values()):
            # The answer of another template is none: the first of this one is written whatever it is.
            before = PolicyGateStatus()
        recheck = min(template.spec.recheck_interval, instance.spec.recheck_interval)
        spec = template.spec.model_copy(update={"recheck_interval": recheck})
        await self._expressions.prepare([spec.expression])
        step = self._own_step(promoted.graph, promoted.environment)
        ended = bundle.status.phase in _NOTHING_STARTS
        decision = decide(
            instance.model_copy(update={"spec": spec, "status": before}),
            self._context(spec.expression, promoted),
            now=self._clock.now(),
            passed=step is not None or ended,
            settled=ended or (step is not None and (step.get("status") or {}).get("state") in ENDED_STATES),
            quarantine=self._quarantine,
        )
        self._metrics.gates_evaluated.labels(decision.answer.result).inc()
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
        promoted: _Promotion | None,
    ) -> None:
        """Write an answer, and tell of it on the Bundle where it is another one than before."""
        answer = with_condition(status, instance, result, now=self._clock.now())
        written = await self._status.write(POLICY_GATE, current, answer.to_json())
        if written is None or promoted is None:
            return
        bundle, node = promoted.bundle, promoted.node
        event = gate_event(node.name, node.environment, bundle=bundle, before=instance.status, after=answer)
        if event is not None:
            metadata = bundle.metadata
            about = ResourceRef(BUNDLE.api_version, BUNDLE.kind, metadata.namespace, metadata.name, metadata.uid)
            self._recorder.event(about, reason=event.reason, note=event.note)

    def _promotion(self, current: JsonObject) -> _Promotion:
        """Return what the recorded Graph says of an instance; raises Untraceable."""
        owner, namespace = controller_of(current, GRAPH), current["metadata"]["namespace"]
        graph = self._caches.graphs.get(namespace, owner.name) if owner else None
        parent = controller_of(graph, BUNDLE) if graph else None
        bundle = self._caches.bundles.get(namespace, parent.name) if parent else None
        node = trace(current, POLICY_GATE, graph=graph, bundle=bundle)
        assert graph is not None  # noqa: S101 - `trace` has raised
        topology = read_topology(graph)
        found = next((gate for gate in topology.gates if gate.id == node["id"]), None)
        if found is None:
            raise Untraceable("its node does not say which gate it is")
        return _Promotion(
            graph=graph,
            bundle=Bundle.model_validate(bundle),
            node=found,
            upstreams=topology.upstreams.get(found.environment, ()),
            spec=PolicyGateSpec.model_validate(expected_spec(node, current["spec"])),
        )

    async def _untraceable(self, current: JsonObject, instance: PolicyGate, why: str) -> Result:
        """Close an instance that no recorded Graph made; a new one may only be ahead of what made it."""
        created = instance.metadata.creation_timestamp
        age = self._clock.now() - created if created else _NEW
        if timedelta() <= age < _NEW and instance.status.ready is not True:
            return Result(requeue_after=_NEW - age)
        return await self._close(current, instance, f"{why}: instances are made by a Graph; {_NO_TEMPLATE}")

    async def _close(
        self, current: JsonObject, instance: PolicyGate, reason: str, promoted: _Promotion | None = None
    ) -> Result:
        status = PolicyGateStatus(
            observed_generation=instance.metadata.generation or None,
            ready=False,
            last_evaluated_at=instance.status.last_evaluated_at or self._clock.now(),
            reason=reason,
        )
        await self._answer(current, instance, status, "error", promoted)
        return Result()

    def _context(self, expression: str, promoted: _Promotion) -> Context:
        return Context(
            bundle=promoted.bundle,
            environment=promoted.environment,
            approval=promoted.origin.approval,
            soak=self._soak(promoted),
            previous_version=self._previous_version(expression, promoted),
            attestation=self._attestations.verify(promoted.bundle),
            first=promoted.bundle.status.environments.keys().isdisjoint(promoted.upstreams),
        )

    def _soak(self, promoted: _Promotion) -> Soak:
        rollback, environment = promoted.bundle.spec.intent.rollback, promoted.environment
        if rollback is not None and promoted.upstreams:
            others = self._caches.bundles_of(promoted.bundle.metadata.namespace, promoted.origin.pipeline)
            return soak_of_restored(environment, promoted.upstreams, rollback.restores, others)
        return upstream_soak(environment, {name: self._healthy_time(promoted, name) for name in promoted.upstreams})

    def _own_step(self, graph: JsonObject, environment: str) -> JsonObject | None:
        """Return the PromotionStep that the Graph made for an environment."""
        metadata = graph["metadata"]
        stored = self._caches.steps.get(metadata["namespace"], step_name(metadata["name"], environment))
        owner = controller_of(stored, GRAPH) if stored is not None else None
        return stored if owner is not None and owner.uid == metadata["uid"] else None

    def _healthy_time(self, promoted: _Promotion, environment: str) -> HealthyTime | None:
        """Return the healthy time of an environment: as its step says, or the Bundle where the step is gone."""
        stored = self._own_step(promoted.graph, environment)
        entry = promoted.bundle.status.environments.get(environment)
        replaced = entry.replaced_at if entry is not None else None
        if stored is None:
            return healthy_time(entry, until=replaced) if entry is not None else None
        step = PromotionStep.model_validate(stored)
        return healthy_time(step.status, created=step.metadata.creation_timestamp, until=replaced)

    def _previous_version(self, expression: str, promoted: _Promotion) -> str | None:
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

    def _gates_of_template(self, template: JsonObject) -> Iterable[Key]:
        return map(key_of, self._caches.instances(key_of(template)))

    def _gates_of_step(self, step: JsonObject) -> Iterable[Key]:
        return map(key_of, self._caches.gates_of(bundle_key(step)))

    def _gates_of_bundle(self, bundle: JsonObject) -> Iterable[Key]:
        """Name its own gates, and those of its Pipeline that ask which Bundle was there before."""
        key = key_of(bundle)
        reading = self._caches.gates_reading_previous(key.namespace, pipeline_label(bundle))
        return map(key_of, [*self._caches.gates_of(key), *reading])


# The uid as well: a list after a lost watch shows one that was deleted and made again as a change.
_template_changed = metadata_changed("uid", "generation", "labels")


def _is_template(gate: JsonObject) -> bool:
    return is_template(labels_of(gate))
