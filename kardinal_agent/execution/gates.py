"""The gates of a promotion at this moment: whether they hold it, and their answers.

Three kinds of gates are asked before every effect: the freeze of the Pipeline and the hold of the environment, which
hold by their existence, and the gate instances before the promotion, which hold while they are closed. An answer counts
if it is about the instance and the template that exist now, and until its time is over; without an answer there is no
permission. An upstream environment that is no longer healthy holds like a closed gate, until the promotion has landed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from kardinal import cel
from kardinal.clock import Clock
from kardinal.objects import GRAPH, JsonObject, controller_of, labels_of
from kardinal.promotion.api import PolicyGate, names
from kardinal.promotion.api.evidence import GateResult
from kardinal.promotion.metrics.readings import values_read
from kardinal.promotion.policy.freshness import unexpired
from kardinal.promotion.policy.hold_gate import is_hold, why_held
from kardinal.promotion.policy.matching import is_freeze, is_template
from kardinal.runtime import Informer
from kardinal_agent.execution.ownership import OwnedStep, RequiredGate

__all__ = ["Gates", "StepGates"]


_UNEXPIRED = cel.compile(unexpired("gate"))


class Gates:
    """The gates of a cluster, and the Bundles, whose status says which environments are healthy."""

    def __init__(self, informer: Informer, bundles: Informer, clock: Clock) -> None:
        self._informer = informer
        self._bundles = bundles
        self._clock = clock

    def of(self, owned: OwnedStep) -> StepGates:
        """Return the gates of one promotion."""
        return StepGates(self._informer, self._bundles, self._clock, owned)


class StepGates:
    """The gates of one promotion; the caches are read anew at every call."""

    def __init__(self, informer: Informer, bundles: Informer, clock: Clock, owned: OwnedStep) -> None:
        self._informer = informer
        self._bundles = bundles
        self._clock = clock
        self._upstreams = owned.upstreams
        self._step = owned.step
        self._graph_uid = owned.graph_uid
        self._required = owned.gates

    def holds(self, *, landed: bool = False) -> list[str]:
        """Return the reasons that forbid an effect now, in words; empty without one.

        A landed change is proven even if an upstream environment is no longer healthy.
        """
        closed = [*self._freeze(), *self._hold(), *filter(None, map(self._closed, self._required))]
        return closed if landed else [*closed, *self._unhealthy()]

    def results(self) -> list[GateResult]:
        """Return the answers of the required gates, with the values that their expressions read."""
        return [
            GateResult(
                name=required.template.name,
                namespace=required.template.namespace,
                template_generation=gate.status.template_generation,
                scope=required.scope,
                result="fail" if self._closed(required) else "pass",
                reason=gate.status.reason or gate.spec.message or None,
                evaluated_at=gate.status.last_evaluated_at,
                inputs=gate.status.inputs,
            )
            for required, gate in self._instances()
        ]

    def metrics(self) -> dict[str, float]:
        """Return the values of metrics that the required gates have read, by the name of the check."""
        read = [(seen.name, seen.value) for _, gate in self._instances() for seen in gate.status.values or ()]
        return values_read(read)

    def duration(self) -> timedelta | None:
        """Return the time from the creation of the first gate instance to that of the PromotionStep."""
        made = [gate.metadata.creation_timestamp for _, gate in self._instances()]
        began = min((moment for moment in made if moment is not None), default=None)
        ended = self._step.metadata.creation_timestamp
        return max(ended - began, timedelta()) if began is not None and ended is not None else None

    def _unhealthy(self) -> Iterable[str]:
        """Yield the upstream environments that were Verified and are no longer healthy, by the status of the Bundle."""
        bundle = self._bundles.get(self._step.metadata.namespace, self._step.spec.bundle_ref)
        entries = ((bundle or {}).get("status") or {}).get("environments") or {}
        for name in self._upstreams:
            entry = entries.get(name) or {}
            if entry.get("healthy") is False:
                yield f"held: {name} is no longer healthy: {entry.get('message') or 'it does not say why'}"

    def _freeze(self) -> Iterable[str]:
        pipeline = self._step.spec.pipeline
        name = names.freeze_name(pipeline)
        gate = self._informer.get(self._step.metadata.namespace, name)
        if gate is not None and is_freeze(labels_of(gate)):
            message = gate["spec"].get("message")
            yield f"held by a freeze of {pipeline} (PolicyGate {name})" + (f": {message}" if message else "")

    def _hold(self) -> Iterable[str]:
        spec = self._step.spec
        namespace = self._step.metadata.namespace
        gate = self._informer.get(namespace, names.hold_name(spec.pipeline, spec.environment))
        if gate is None or not is_hold(gate, spec.pipeline, spec.environment):
            return
        if gate["spec"].get("exceptBundle") != spec.bundle_ref:
            yield why_held(gate, spec.pipeline, spec.environment)

    def _closed(self, required: RequiredGate) -> str | None:
        """Return the reason why a gate is closed; None if it is open."""
        gate = self._own_instance(required)
        if gate is None:
            return f"held: its gate {required.instance} does not exist"
        template = self._informer.get(*required.template)
        if template is None or not is_template(labels_of(template)):
            return f"held: PolicyGate {required.template}, the template of a gate, does not exist"
        status = gate.get("status") or {}
        shown = required.template.name
        if status.get("ready") is not True:
            return f"held by gate {shown}: {status.get('reason') or gate['spec'].get('message') or 'it is not ready'}"
        answered = [status.get(field) for field in ("observedGeneration", "templateUID", "templateGeneration")]
        known = template["metadata"]
        if answered != [gate["metadata"].get("generation"), known["uid"], known.get("generation")]:
            return f"held by gate {shown}: it or its template has changed, and is not evaluated yet"
        if _UNEXPIRED.evaluate({"gate": gate}, now=self._clock.now()) != cel.Value(True):
            until = status.get("nextTransitionAt")
            return f"held by gate {shown}: its answer counted until {until}, and is not evaluated again yet"
        return None

    def _instances(self) -> list[tuple[RequiredGate, PolicyGate]]:
        found = ((required, self._own_instance(required)) for required in self._required)
        return [(required, PolicyGate.model_validate(gate)) for required, gate in found if gate is not None]

    def _own_instance(self, required: RequiredGate) -> JsonObject | None:
        """Return the instance of a gate; None for an object of its name that the Graph did not create."""
        gate = self._informer.get(self._step.metadata.namespace, required.instance)
        owner = controller_of(gate, GRAPH) if gate is not None else None
        return gate if owner is not None and owner.uid == self._graph_uid else None
