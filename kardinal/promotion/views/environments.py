"""Compute the state of each environment for one Bundle (pure).

The state comes from the PromotionStep, or from the entry of the Bundle's `status.environments`, which is kept after the
PromotionStep is deleted. Without both, the state is one of `WITHOUT_STEP`: the Bundle skips the environment, does not
target it, has ended before it, or waits; the upstream environments and the gates tell for which of them it waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kardinal.promotion.api import Bundle, Graph, Pipeline, PromotionStep
from kardinal.promotion.api.bundle import AttemptRecord, EnvironmentStatus
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.translation.conditional import left_out
from kardinal.promotion.translation.environment_order import OrderError, topological
from kardinal.promotion.translation.environment_order import upstreams as upstreams_of
from kardinal.promotion.translation.errors import InvalidSpec
from kardinal.promotion.translation.route import find_route
from kardinal.promotion.translation.topology import Topology, read_topology
from kardinal.promotion.views.gates import GateLine, gate_lines, recorded_gates
from kardinal.promotion.views.reading import PipelineObjects
from kardinal.promotion.views.states import SUPERSEDED, UNHEALTHY

__all__ = [
    "NO_BUNDLE",
    "EnvironmentState",
    "drawn_upstreams",
    "environment_states",
    "promotion_states",
    "recorded_state",
    "recorded_states",
]

NO_BUNDLE = "-"
"""The state of each environment of a Pipeline without a Bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentState:
    """The state of one environment for the Bundle that is shown.

    `state` is the state of the PromotionStep, one of `WITHOUT_STEP`, or `NO_BUNDLE`. `since` is
    the time of the verification, else of the start.
    """

    name: str
    state: str
    message: str = ""
    health: str = ""
    """One of `UNHEALTHY` with the reason in `message`, or empty."""
    upstreams: Sequence[str] = ()
    held_by: Sequence[str] = ()
    """Names of the closed gates that the Bundle waits for, once everything before the environment is Verified."""
    step: PromotionStep | None = None
    since: datetime | None = None

    @property
    def progress(self) -> str:
        """Return the step of the sequence that is being executed, such as `git-push (4 of 6)`; empty if none is."""
        status = self.step.status if self.step is not None else None
        if self.step is None or status is None or status.has_ended or status.current_step is None:
            return ""
        uses = [each.uses for each in self.step.spec.steps]
        index = status.current_step
        return f"{uses[index]} ({index + 1} of {len(uses)})" if index < len(uses) else ""


def promotion_states(objects: PipelineObjects) -> tuple[list[EnvironmentState], list[GateLine]]:
    """Return the state of each environment for the Bundle that is shown, and the gates before the environments."""
    pipeline = objects.pipeline
    bundle = objects.bundle
    graph = objects.graph
    if bundle is None:
        return [EnvironmentState(name=each.name, state=NO_BUNDLE) for each in pipeline.spec.environments], []
    topology = read_topology(graph) if graph is not None else None
    gone = set(bundle.status.environments) - set(topology.environments if topology is not None else ())
    gates = gate_lines(Graph.model_validate(graph) if graph is not None else None, objects.gates)
    gates += recorded_gates(bundle, sorted(gone))
    states = environment_states(
        pipeline,
        bundle,
        {step.spec.environment: step for step in objects.steps},
        topology=topology,
        gates=gates,
    )
    return states, gates


def recorded_states(bundle: Bundle) -> dict[str, EnvironmentState]:
    """Return the states in the status of a Bundle, by environment; those whose promotion has not begun are absent."""
    states = {name: _reached(name, bundle, None, {}) for name in bundle.status.environments}
    return {name: state for name, state in states.items() if state is not None}


def recorded_state(bundle: Bundle, record: EnvironmentStatus | AttemptRecord) -> str:
    """Return the state in which an attempt of a Bundle ended, or is."""
    return _given_up(record.state, record.message, bundle, record) or record.state


def drawn_upstreams(objects: PipelineObjects) -> dict[str, tuple[str, ...]]:
    """Return the upstreams of every environment, in the order of promotion.

    They are those of the Bundle that is shown. An environment that it does not go to has those of the Pipeline, as have
    all environments of a Pipeline without a Bundle.
    """
    bundle = objects.bundle
    environments = objects.pipeline.spec.environments
    try:
        today = upstreams_of(environments)
    except OrderError:
        today = {}
    route: Mapping[str, tuple[str, ...]] = {}
    names = dict.fromkeys(each.name for each in environments)
    if bundle is not None:
        route = _edges(objects.pipeline, bundle, read_topology(objects.graph) if objects.graph is not None else None)
        names |= dict.fromkeys((*route, *bundle.status.environments))
    edges = {name: tuple(each for each in route.get(name, today.get(name, ())) if each in names) for name in names}
    return {name: edges[name] for name in topological(edges)}


def environment_states(
    pipeline: Pipeline,
    bundle: Bundle,
    steps: Mapping[str, PromotionStep],
    *,
    topology: Topology | None,
    gates: Iterable[GateLine],
) -> list[EnvironmentState]:
    """Return the states of the environments of the Pipeline, in the order of its spec.

    They are followed by environments that are in the Graph or the status of the Bundle only, because they were removed
    from the Pipeline since. `steps` are the PromotionSteps by environment.
    """
    edges = _edges(pipeline, bundle, topology)
    # With the Graph, the status has the environments that were left out.
    conditions = left_out(pipeline.spec.environments, bundle)[0] if topology is None else {}
    listed = [environment.name for environment in pipeline.spec.environments]
    names = dict.fromkeys((*listed, *edges, *bundle.status.environments))
    closed = [gate for gate in gates if gate.answer != "PASS"]
    found: dict[str, EnvironmentState] = {}
    # Upstream environments first, because `_ahead` reads their states.
    for name in sorted(names, key=lambda name: _depth(name, edges)):
        state = _reached(name, bundle, steps.get(name), edges)
        if state is None and name in conditions and name not in edges:
            message = f"its condition is false: {conditions[name]}"
            state = EnvironmentState(name=name, state="Skipped", message=message)
        state = state or _ahead(name, bundle, edges, found, [gate for gate in closed if gate.environment == name])
        found[name] = state
    return [found[name] for name in names]


def _edges(pipeline: Pipeline, bundle: Bundle, topology: Topology | None) -> Mapping[str, tuple[str, ...]]:
    """Return the upstreams of each environment on the route of the Bundle.

    They are read from the Graph. Without a Graph they are computed from the present spec of the Pipeline, and for a
    Bundle that has ended limited to the environments in its status.
    """
    if topology is not None:
        return topology.upstreams
    if bundle.status.waits_for_graph:
        # Its Graph says where it goes.
        return {}
    try:
        today: Mapping[str, tuple[str, ...]] = find_route(pipeline, bundle).upstreams
    except InvalidSpec:
        today = {}
    went = bundle.status.environments
    if not (bundle.status.has_ended and went):
        return today
    names = [name for name in dict.fromkeys((*today, *went)) if name in went]
    return {name: tuple(each for each in today.get(name, ()) if each in went) for name in names}


def _depth(name: str, edges: Mapping[str, tuple[str, ...]], *, below: int = 64) -> int:
    if not below:
        return 0
    return 1 + max((_depth(each, edges, below=below - 1) for each in edges.get(name, ())), default=-1)


def _reached(
    name: str, bundle: Bundle, step: PromotionStep | None, edges: Mapping[str, tuple[str, ...]]
) -> EnvironmentState | None:
    """Return the state of an environment whose promotion has begun; None if it has not."""
    recorded = bundle.status.environments.get(name)
    upstreams = edges.get(name, ())
    if recorded is not None and recorded.state != "Pending" and (step is None or _stands(recorded, step, bundle)):
        return EnvironmentState(
            name=name,
            state=_given_up(recorded.state, recorded.message, bundle, recorded) or recorded.state,
            message=recorded.message or "",
            health=_health(recorded),
            upstreams=upstreams,
            since=recorded.verified_at or recorded.promoted_at,
        )
    if step is None:
        return None
    status = step.status
    health = _health(status)
    degraded = status.condition("Degraded")
    return EnvironmentState(
        name=name,
        state=_given_up(status.state, status.message, bundle, recorded) or status.state or "Pending",
        message=(degraded.message if health and degraded is not None else status.message) or "",
        health=health,
        upstreams=upstreams,
        step=step,
        since=status.verified_at or status.started_at or step.metadata.creation_timestamp,
    )


def _health(found: PromotionStepStatus | EnvironmentStatus) -> str:
    """Return `Degraded` or `CannotBeSeen` for a Verified environment that is not healthy any more; else empty.

    They are told apart by `healthyFor`, the soak: it is kept only while the health cannot be observed.
    """
    if found.state != "Verified" or found.healthy is not False:
        return ""
    return UNHEALTHY[0] if found.healthy_for is None else UNHEALTHY[1]


def _given_up(
    state: str | None, message: str | None, bundle: Bundle, recorded: EnvironmentStatus | AttemptRecord | None
) -> str:
    """Return `Superseded` for a promotion that its agent gave up in favour of a newer Bundle; else empty.

    The agent sets such a PromotionStep to Failed with a message that begins with "superseded by".
    """
    taken = bundle.status.phase == "Superseded" or (recorded is not None and recorded.displaced_by is not None)
    return SUPERSEDED if taken and state == "Failed" and (message or "").startswith("superseded by") else ""


def _stands(recorded: EnvironmentStatus, step: PromotionStep, bundle: Bundle) -> bool:
    """Return whether the recorded verification is shown in place of the state of the PromotionStep.

    It is, unless the PromotionStep is Verified itself, or has Failed while the Bundle has not ended.
    """
    if recorded.state != "Verified" or step.status.state == "Verified":
        return False
    return bundle.status.has_ended or step.status.state != "Failed"


def _ahead(
    name: str,
    bundle: Bundle,
    edges: Mapping[str, tuple[str, ...]],
    found: Mapping[str, EnvironmentState],
    closed: Sequence[GateLine],
) -> EnvironmentState:
    """Return the state of an environment whose promotion has not begun.

    `found` has the states of its upstreams, `closed` the gates before it that have not answered PASS.
    """
    upstreams = edges.get(name, ())

    def state(name_of_state: str, message: str) -> EnvironmentState:
        return EnvironmentState(name=name, state=name_of_state, message=message, upstreams=upstreams)

    intent = bundle.spec.intent
    if name in intent.skip:
        return state("Skipped", "the Bundle leaves it out (intent.skip)")
    if bundle.status.has_ended and bundle.status.phase != "Verified" and (name in edges or not edges):
        return state("NotReached", f"the Bundle ended before: {bundle.status.phase}")
    if name not in edges:
        if intent.rollback is not None:
            return state("NotTargeted", f"the Bundle rolls back {', '.join(intent.rollback.environments)}")
        if intent.target is not None:
            return state("NotTargeted", f"the Bundle goes up to {intent.target}")
        if edges:
            late = "added to the Pipeline after the Bundle had started"
            return state("NotTargeted", "its Graph does not go there" if intent.graph == "manual" else late)
        return state("Waiting", "the Bundle has not started")
    missing = [found[each] for each in upstreams if each in found and found[each].state != "Verified"]
    if lost := [each.name for each in missing if each.state == SUPERSEDED]:
        return state("NotReached", f"a newer Bundle has taken {' and '.join(lost)} over before it")
    stuck = [each.name for each in missing if each.state in ("Failed", "NotReached")]
    if stuck:
        return state("NotReached", f"{' and '.join(stuck)} failed before it")
    if missing:
        return state("Waiting", f"waits for {' and '.join(each.name for each in missing)}")
    if ill := [each for each in upstreams if each in found and found[each].health]:
        return state("Waiting", f"waits until {' and '.join(ill)} {'is' if len(ill) == 1 else 'are'} healthy again")
    if shut := [gate for gate in closed if gate.answer == "FAIL"]:
        names = [gate.name for gate in shut]
        by_time = all(gate.opens_at is not None for gate in shut)
        found_state = state("Waiting" if by_time else "Blocked", f"held by {', '.join(names)}")
        return replace(found_state, held_by=names)
    if closed:
        return state("Waiting", f"waits for the answer of {', '.join(gate.name for gate in closed)}")
    return state("Waiting", "is about to start")
