"""Find out if a PromotionStep is to be executed: only what a recorded Graph of a living Bundle made.

A user who may create PromotionSteps could otherwise promote without a gate, so nothing that a step says of itself
counts: the gates before it are the gate nodes of the Graph, and its spec must be the one of its node. A step that
cannot be traced to one gets the condition NotOwned and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pydantic import ValidationError

from kardinal.api import BUNDLE, PROMOTION_STEP, Bundle, PromotionStep
from kardinal.api.policy_gate import GateScope
from kardinal.api.promotion_step import PromotionStepSpec
from kardinal.api.stored import StoredModels
from kardinal.objects import GRAPH, JsonObject, Key, controller_of, key_of
from kardinal.objects.conditions import find_condition, set_condition
from kardinal.runtime import Clock, EventRecorder, Informer, Result, StatusWriter, TerminalError
from kardinal.steps.pins import pinned
from kardinal.translation.recorded import Untraceable, expected_spec, trace
from kardinal.translation.topology import Topology, read_topology

__all__ = ["NOT_OWNED", "OwnedStep", "Ownership", "RequiredGate", "StepRefusals"]

NOT_OWNED = "NotOwned"
"""The condition of a PromotionStep that is not executed."""

_PATIENCE = timedelta(seconds=2)
"""How long a step may be untraceable before it is told so: the caches of the kinds are not filled at one moment."""
_INSTANT = 0.001
"""Seconds below which a timer has fired: sums of floats do not meet exactly."""


@dataclass(frozen=True, slots=True)
class RequiredGate:
    """One gate before a step: the name of its instance, and its template."""

    instance: str
    template: Key
    scope: GateScope


@dataclass(frozen=True, slots=True)
class OwnedStep:
    """A PromotionStep with the Bundle and the Graph that it was traced to."""

    step: PromotionStep
    bundle: Bundle
    """With `update.pinDigest` by the digests that are known of its tags."""
    graph_uid: str
    gates: Sequence[RequiredGate]
    upstreams: Sequence[str]
    """The environments right before its own."""
    dependents: Sequence[str]
    """The environments right after its own."""


class Ownership:
    """Traces PromotionSteps to the Graphs that made them."""

    def __init__(self, graphs: Informer, bundles: Informer) -> None:
        self._graphs = graphs
        self._bundles = bundles
        self._read_steps = StoredModels(PromotionStep)
        self._read_bundles = StoredModels(Bundle)

    def trace(self, raw: JsonObject) -> OwnedStep:
        """Return the step with what it was traced to; raises Untraceable, and TerminalError for an unreadable one."""
        namespace, owner = raw["metadata"]["namespace"], controller_of(raw, GRAPH)
        graph = self._graphs.get(namespace, owner.name) if owner else None
        parent = controller_of(graph, BUNDLE) if graph else None
        bundle = self._bundles.get(namespace, parent.name) if parent else None
        node = trace(raw, PROMOTION_STEP, graph=graph, bundle=bundle)
        assert graph is not None  # noqa: S101 - `trace` has raised
        assert bundle is not None  # noqa: S101 - `trace` has raised
        try:
            step, topology = self._read_steps.of(raw), read_topology(graph)
            environment, upstreams = step.spec.environment, topology.upstreams
            owned = OwnedStep(
                step,
                pinned(self._read_bundles.of(bundle), step.spec.update, step.spec.steps),
                graph["metadata"]["uid"],
                gates=_gates(graph, topology, environment),
                upstreams=upstreams.get(environment, ()),
                dependents=[name for name, before in upstreams.items() if environment in before],
            )
        except ValidationError as error:
            raise TerminalError(f"PromotionStep {key_of(raw)} or its Bundle cannot be read: {error}") from error
        if step.spec.bundle_ref != owned.bundle.metadata.name or step.spec != _wanted(node, raw):
            raise Untraceable("its spec was changed by hand; its Graph puts it back")
        return owned


class StepRefusals:
    """Tells of steps that are not executed, once they have been untraceable for a while."""

    def __init__(self, *, status: StatusWriter, recorder: EventRecorder, clock: Clock) -> None:
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._since: dict[Key, float] = {}

    def forget(self, key: Key) -> None:
        """Forget a step that is traceable, or gone."""
        self._since.pop(key, None)

    async def refuse(self, raw: JsonObject, why: str) -> Result:
        """Write the condition, or wait until it is due."""
        since = self._since.setdefault(key_of(raw), self._clock.monotonic())
        left = _PATIENCE.total_seconds() - (self._clock.monotonic() - since)
        if left > _INSTANT:
            return Result(requeue_after=timedelta(seconds=left))
        status: JsonObject = raw.get("status") or {}
        message = f"not executed: {why}"
        conditions = set_condition(
            status.get("conditions") or [],
            NOT_OWNED,
            "True",
            reason=NOT_OWNED,
            message=message,
            now=self._clock.now(),
            observed_generation=raw["metadata"].get("generation"),
        )
        changed = {"state": status.get("state") or "Pending", "message": message, "conditions": conditions}
        written = await self._status.write(PROMOTION_STEP, raw, {**status, **changed})
        if written is not None and find_condition(status, NOT_OWNED) is None:
            self._recorder.event(raw, type="Warning", reason=NOT_OWNED, note=message)
        return Result()


def _wanted(node: JsonObject, raw: JsonObject) -> PromotionStepSpec | None:
    """Return the spec that the node of a step wants; None where what it reads cannot have come to this."""
    try:
        return PromotionStepSpec.model_validate(expected_spec(node, raw["spec"]))
    except ValidationError:
        return None


def _gates(graph: JsonObject, topology: Topology, environment: str) -> list[RequiredGate]:
    """Return the gates that the Graph has before an environment."""
    specs = {node["id"]: node["template"].get("spec") or {} for node in graph["spec"]["nodes"] if "template" in node}
    return [
        RequiredGate(gate.object, Key(gate.namespace, gate.name), specs[gate.id].get("origin", {}).get("scope", "team"))
        for gate in topology.gates
        if gate.environment == environment
    ]
