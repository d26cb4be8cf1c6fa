"""The gates of a promotion as they are at this moment: what holds it, and what they say.

Three kinds of gates are asked before every effect: the freeze of the pipeline and the hold of the environment, which
hold by being there, and the instances of the gates before the promotion, which hold when they are not ready. An answer
counts only if it is that of the instance and of the template that are there now, and until time ends it; without an
answer there is no permission. An environment before it that is no longer healthy holds like a closed gate, until the
promotion has landed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from kardinal import cel
from kardinal.api import PolicyGate, names
from kardinal.api.evidence import GateResult
from kardinal.objects import GRAPH, JsonObject, controller_of, labels_of
from kardinal.policy.freshness import unexpired
from kardinal.policy.holds import is_hold, why_held
from kardinal.policy.matching import is_template
from kardinal.runtime import Clock, Informer
from kardinal_agent.execution.ownership import OwnedStep, RequiredGate

__all__ = ["Gates", "StepGates"]


_UNEXPIRED = cel.compile(unexpired("gate"))


class Gates:
    """The gates of a cluster, from the agent's point of view, and the Bundles that say what is healthy."""

    def __init__(self, informer: Informer, bundles: Informer, clock: Clock) -> None:
        self._informer = informer
        self._bundles = bundles
        self._clock = clock

    def of(self, owned: OwnedStep) -> StepGates:
        """Return the gates of one promotion."""
        return StepGates(self._informer, self._bundles, self._clock, owned)


class StepGates:
    """The gates of one promotion; every answer is that of the moment in which it is asked for."""

    def __init__(self, informer: Informer, bundles: Informer, clock: Clock, owned: OwnedStep) -> None:
        self._informer = informer
        self._bundles = bundles
        self._clock = clock
        self._upstreams = owned.upstreams
        self._step = owned.step
        self._graph_uid = owned.graph_uid
        self._required = owned.gates

    def holds(self, *, landed: bool = False) -> list[str]:
        """Return everything that forbids an effect now, each in words; empty when nothing does.

        What has landed is to be proven, whatever becomes of the environments before it.
        """
        closed = [*self._freeze(), *self._hold(), *filter(None, map(self._closed, self._required))]
        return closed if landed else [*closed, *self._unhealthy()]

    def results(self) -> list[GateResult]:
        """Return how the required gates stand, with the values they saw."""
        return [
            GateResult(
                name=required.template.name,
                namespace=required.template.namespace,
                template_generation=gate.status.template_generation,
                scope=required.scope,
                result="fail" if self._closed(required) else "pass",
                reason=gate.status.reason or gate.spec.message or None,
                evaluated_at=gate.status.last_evaluated_at,
            )
            for required, gate in self._instances()
        ]

    def duration(self) -> timedelta | None:
        """Return how long the gates held the promotion back: from the first of them to the PromotionStep itself."""
        made = [gate.metadata.creation_timestamp for _, gate in self._instances()]
        began = min((moment for moment in made if moment is not None), default=None)
        ended = self._step.metadata.creation_timestamp
        return max(ended - began, timedelta()) if began is not None and ended is not None else None

    def _unhealthy(self) -> Iterable[str]:
        """Yield which environments before this one were Verified and are no longer healthy, as the Bundle says."""
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
        if gate is not None and labels_of(gate).get(names.LABEL_TYPE) == names.TYPE_FREEZE:
            message = gate["spec"].get("message")
            yield f"held by a freeze of {pipeline} (PolicyGate {name})" + (f": {message}" if message else "")

    def _hold(self) -> Iterable[str]:
        spec, namespace = self._step.spec, self._step.metadata.namespace
        gate = self._informer.get(namespace, names.hold_name(spec.pipeline, spec.environment))
        if gate is None or not is_hold(gate, spec.pipeline, spec.environment):
            return
        if gate["spec"].get("exceptBundle") != spec.bundle_ref:
            yield why_held(gate, spec.pipeline, spec.environment)

    def _closed(self, required: RequiredGate) -> str | None:
        """Return why a gate is closed; None when it is open."""
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
        """Return the instance of a gate; an object of its name that the Graph did not make is none."""
        gate = self._informer.get(self._step.metadata.namespace, required.instance)
        owner = controller_of(gate, GRAPH) if gate is not None else None
        return gate if owner is not None and owner.uid == self._graph_uid else None
