"""Find out if a PromotionStep is executed: only one that a recorded Graph of an existing Bundle created.

A user who may create PromotionSteps could otherwise promote without a gate, so the content of a PromotionStep proves
nothing: the gates before it are the gate nodes of the Graph, and its spec must be that of its node. A PromotionStep
that cannot be traced to a node gets the condition NotOwned and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pydantic import ValidationError

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key, key_of
from kardinal.objects.conditions import find_condition, set_condition
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.policy_gate import GateScope
from kardinal.promotion.api.promotion_step import PromotionStepSpec
from kardinal.promotion.api.stored import StoredModels
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal.promotion.steps.pins import pinned
from kardinal.promotion.translation.recorded import Untraceable, expected_spec, trace
from kardinal.promotion.translation.topology import Topology, read_topology
from kardinal.runtime import EventRecorder, Informer, KeyMemory, Result, StatusWriter, TerminalError
from kardinal.runtime.timers import remaining

__all__ = ["NOT_OWNED", "OwnedStep", "Ownership", "RequiredGate", "StepRefusals"]

NOT_OWNED = "NotOwned"
"""The condition of a PromotionStep that is not executed."""

_OWNER_SEEN_WITHIN = timedelta(seconds=2)
"""The time after which an untraceable step gets its condition; before it, a cache may only be late."""


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
    """The Bundle; with `update.pinDigest`, the tags of its images are completed by the known digests."""
    graph_uid: str
    gates: Sequence[RequiredGate]
    upstreams: Sequence[str]
    """The upstream environments of its own."""
    dependents: Sequence[str]
    """The environments directly downstream of its own."""


class Ownership:
    """Traces PromotionSteps to the Graphs that made them."""

    def __init__(self, graphs: Informer, bundles: Informer) -> None:
        self._graphs = graphs
        self._bundles = bundles
        self._read_steps = StoredModels(PromotionStep)
        self._read_bundles = StoredModels(Bundle)

    def trace(self, raw: JsonObject) -> OwnedStep:
        """Return the step with its Bundle and Graph; raises Untraceable, and TerminalError if one cannot be read."""
        node, graph, bundle = trace(raw, PROMOTION_STEP, graphs=self._graphs.get, bundles=self._bundles.get)
        try:
            step = self._read_steps.of(raw)
            topology = read_topology(graph)
            environment = step.spec.environment
            upstreams = topology.upstreams
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
    """Writes the condition of steps that are not executed, after they have been untraceable for two seconds."""

    def __init__(self, *, status: StatusWriter, recorder: EventRecorder, clock: Clock, memory: KeyMemory) -> None:
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self._since: dict[Key, float] = memory.map()

    def end(self, key: Key) -> None:
        """Note that a step is traceable: the time until it is refused begins anew."""
        self._since.pop(key, None)

    async def refuse(self, raw: JsonObject, why: str) -> Result:
        """Write the condition, or wait until it is due."""
        since = self._since.setdefault(key_of(raw), self._clock.monotonic())
        if left := remaining(_OWNER_SEEN_WITHIN.total_seconds() - (self._clock.monotonic() - since)):
            return Result(requeue_after=left)
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
    """Return the spec that the node of a step wants; None if the values in the live spec do not fit its expressions."""
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
