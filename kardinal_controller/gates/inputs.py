"""The inputs of gates that are about environments: `upstream`, `contracts`, `delegation` and `targetDrift`.

All of them rest on status that only programs write: that of Bundles, and that of PromotionSteps that the recorded Graph
made. Labels, names and specs of others prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kardinal.cel import Program
from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.api.names import step_name
from kardinal.promotion.api.promotion_step import TargetDrift
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal.promotion.policy.drift import TARGET_DRIFT, known_drift
from kardinal.promotion.policy.inputs import Input
from kardinal.promotion.translation.recorded import Untraceable, trace
from kardinal.promotion.translation.rollback import past_of
from kardinal.promotion.translation.running import Running, running
from kardinal.runtime import Source, Watch
from kardinal.runtime.predicates import metadata_changed, status_changed
from kardinal_controller.caches import Caches, bundle_key, pipeline_label
from kardinal_controller.gates.promotions import GatePromotion

__all__ = ["ContractInput", "DelegationInput", "DriftInput", "UpstreamInput"]


class UpstreamInput:
    """`upstream["staging"].version`: what the environments before that of the gate run."""

    name = "upstream"

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def sources(self) -> Sequence[Source]:
        return [Watch(self._caches.bundles, self._gates, when=status_changed("environments"))]

    def read(self, promotion: GatePromotion, program: Program) -> Input:
        bundles = self._caches.started(promotion.namespace, promotion.origin.pipeline)
        found = {name: running(bundles, name) for name in promotion.topology.before(promotion.environment)}
        value = {name: each.to_json() for name, each in found.items() if isinstance(each, Running)}
        absent = {name: each for name, each in found.items() if isinstance(each, str)}
        for reference in program.references:
            if reference.root == self.name and reference.path and reference.path[0] not in found:
                absent[reference.path[0]] = f"{reference.path[0]} does not come before {promotion.environment}"
        return Input(value, absent)

    def _gates(self, bundle: JsonObject) -> Iterable[Key]:
        namespace = bundle["metadata"]["namespace"]
        found = self._caches.gates_reading(self.name, namespace=namespace, pipeline=pipeline_label(bundle))
        return map(key_of, found)


class ContractInput:
    """`contracts["payments"]["prod"].version`: what other Pipelines of the namespace run.

    Both names are literals in every expression, so only these Pipelines are looked at.
    """

    name = "contracts"

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def sources(self) -> Sequence[Source]:
        return [
            Watch(self._caches.bundles, self._gates, when=status_changed("environments")),
            Watch(self._caches.pipelines, self._gates, when=metadata_changed("uid", "generation")),
        ]

    def read(self, promotion: GatePromotion, program: Program) -> Input:
        value: dict[str, dict[str, Any]] = {}
        absent: dict[str, str] = {}
        named = {reference.path[:2] for reference in program.references if reference.root == self.name}
        for pipeline, environment in sorted(path for path in named if len(path) == 2):
            found = self._running(promotion.namespace, pipeline, environment)
            if isinstance(found, Running):
                value.setdefault(pipeline, {})[environment] = {"version": found.version}
            else:
                absent[f"{pipeline}.{environment}"] = f"Pipeline {pipeline}: {found}"
        return Input(value, absent)

    def _running(self, namespace: str, pipeline: str, environment: str) -> Running | str:
        stored = self._caches.pipelines.get(namespace, pipeline)
        if stored is None:
            return f"namespace {namespace} has none of this name"
        if all(environment != entry["name"] for entry in stored["spec"].get("environments", ())):
            return f"it has no environment {environment}"
        return running(self._caches.started(namespace, pipeline), environment)

    def _gates(self, changed: JsonObject) -> Iterable[Key]:
        return map(key_of, self._caches.gates_reading_contracts(changed["metadata"]["namespace"]))


class DelegationInput:
    """`delegation.status`: what the delivery controller of the environment right before the gate reports."""

    name = "delegation"

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def sources(self) -> Sequence[Source]:
        return [Watch(self._caches.steps, self._gates, when=status_changed("delegatedStatus"))]

    def read(self, promotion: GatePromotion, program: Program) -> Input:
        steps = {name: self._caches.step_of_graph(promotion.graph, name) for name in promotion.upstreams}
        reported = {name: (step.get("status") or {}).get("delegatedStatus") for name, step in steps.items() if step}
        found = {name: status for name, status in reported.items() if status}
        statuses = set(found.values())
        if len(statuses) == 1:
            return Input({"status": statuses.pop()})
        if not found:
            before = " and ".join(promotion.upstreams)
            return Input({}, {"": f"no delegate reports of {before}" if before else "no environment comes before"})
        told = ", ".join(f"{name}: {status}" for name, status in sorted(found.items()))
        return Input({}, {"": f"the delegates differ ({told})"})

    def _gates(self, step: JsonObject) -> Iterable[Key]:
        return map(key_of, self._caches.gates_of(bundle_key(step)))


class DriftInput:
    """`targetDrift.unreconciled`: whether the tool of the gate's own environment has something left to apply.

    The agent notes it on the promotion that landed there last. Once the Bundle of the gate has landed itself, the rest
    to apply is its own commit: the value is false.
    """

    name = TARGET_DRIFT

    def __init__(self, caches: Caches, clock: Clock) -> None:
        self._caches = caches
        self._clock = clock

    def sources(self) -> Sequence[Source]:
        return [
            Watch(self._caches.steps, self._gates_of_step, when=status_changed("targetDrift")),
            Watch(self._caches.bundles, self._gates_of_bundle, when=status_changed("environments")),
        ]

    def read(self, promotion: GatePromotion, program: Program) -> Input:
        own = self._caches.step_of_graph(promotion.graph, promotion.environment)
        if own is not None and "promotedAt" in (own.get("status") or {}):
            return Input({"unreconciled": False})
        found = self._seen(promotion)
        return Input({"unreconciled": found}) if isinstance(found, bool) else Input({}, {"": found})

    def _seen(self, promotion: GatePromotion) -> bool | str:
        environment = promotion.environment
        runs = past_of(self._caches.started(promotion.namespace, promotion.origin.pipeline), environment).runs
        if runs is None:
            return f"nothing has been promoted to {environment} yet"
        step = self._caches.steps.get(promotion.namespace, step_name(runs.name, environment))
        try:
            if step is None:
                raise Untraceable("it does not exist")
            trace(step, PROMOTION_STEP, graphs=self._caches.graphs.get, bundles=self._caches.bundles.get)
        except Untraceable as error:
            return f"the promotion of {runs.name} to {environment} says nothing: {error}"
        seen = (step.get("status") or {}).get("targetDrift")
        return known_drift(TargetDrift.model_validate(seen) if seen else None, environment, now=self._clock.now())

    def _gates_of_step(self, step: JsonObject) -> Iterable[Key]:
        return self._gates(step, step["spec"]["pipeline"])

    def _gates_of_bundle(self, bundle: JsonObject) -> Iterable[Key]:
        return self._gates(bundle, pipeline_label(bundle))

    def _gates(self, obj: JsonObject, pipeline: str) -> Iterable[Key]:
        namespace = obj["metadata"]["namespace"]
        return map(key_of, self._caches.gates_reading(self.name, namespace=namespace, pipeline=pipeline))
