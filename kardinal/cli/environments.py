"""The state of each environment for one Bundle (pure).

A step that exists says where it is, and the Bundle keeps what its steps reached after they are gone. An environment
without either is not simply "not started": the Bundle may leave it out, not go as far, have ended before, or wait; and
what it waits for is told by the environments and gates before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kardinal.api import Bundle, Pipeline, PromotionStep
from kardinal.api.bundle import EnvironmentStatus
from kardinal.api.promotion_step import PromotionStepStatus
from kardinal.cli.gates import GateLine
from kardinal.translation.errors import InvalidSpec
from kardinal.translation.route import find_route
from kardinal.translation.topology import Topology

__all__ = ["SUPERSEDED", "UNHEALTHY", "WITHOUT_STEP", "EnvironmentState", "environment_states"]

SUPERSEDED = "Superseded"
"""The state of an environment whose step was given up for a newer Bundle; it has not failed."""

WITHOUT_STEP = ("Skipped", "NotTargeted", "NotReached", "Waiting", "Blocked")
"""States of an environment in which the Bundle has no step."""

UNHEALTHY = ("Degraded", "CannotBeSeen")
"""The health of an environment that is Verified and no longer healthy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentState:
    """One environment; `state` is that of its step, or one of `WITHOUT_STEP`."""

    name: str
    state: str
    message: str = ""
    health: str = ""
    """One of `UNHEALTHY`, or empty; `message` says why."""
    upstreams: Sequence[str] = ()
    step: PromotionStep | None = None
    since: datetime | None = None

    @property
    def progress(self) -> str:
        """Return the step of the sequence that is under way, as `git-push (4 of 6)`; empty where none is."""
        status = self.step.status if self.step is not None else None
        if self.step is None or status is None or status.has_ended or status.current_step is None:
            return ""
        uses = [each.uses for each in self.step.spec.steps]
        index = status.current_step
        return f"{uses[index]} ({index + 1} of {len(uses)})" if index < len(uses) else ""


def environment_states(
    pipeline: Pipeline,
    bundle: Bundle,
    steps: Mapping[str, PromotionStep],
    *,
    topology: Topology | None,
    gates: Iterable[GateLine],
) -> list[EnvironmentState]:
    """Return the environments of the Pipeline in its order, then those it had when the Bundle went there."""
    edges = _edges(pipeline, bundle, topology)
    listed = [environment.name for environment in pipeline.spec.environments]
    names = dict.fromkeys((*listed, *edges, *bundle.status.environments))
    closed = [gate for gate in gates if gate.answer != "PASS"]
    found: dict[str, EnvironmentState] = {}
    # Upstream first, so that each finds those before it.
    for name in sorted(names, key=lambda name: _depth(name, edges)):
        state = _reached(name, bundle, steps.get(name), edges) or _ahead(
            name, bundle, edges, found, [gate for gate in closed if gate.environment == name]
        )
        found[name] = state
    return [found[name] for name in names]


def _edges(pipeline: Pipeline, bundle: Bundle, topology: Topology | None) -> Mapping[str, tuple[str, ...]]:
    """Return the upstreams of each environment that the Bundle goes to: those of its Graph where it has one.

    Of a Bundle whose Graph is gone, the environments are those that it has entries of, in today's order.
    """
    if topology is not None:
        return topology.upstreams
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
    """Return the state of an environment that the Bundle has come to; None where it has not."""
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
    health, degraded = _health(status), status.condition("Degraded")
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
    """Return how what is Verified is no longer healthy; empty where it is. Only what cannot be seen keeps its soak."""
    if found.state != "Verified" or found.healthy is not False:
        return ""
    return UNHEALTHY[0] if found.healthy_for is None else UNHEALTHY[1]


def _given_up(state: str | None, message: str | None, bundle: Bundle, recorded: EnvironmentStatus | None) -> str:
    """Return the state of a step that its agent gave up because a newer Bundle goes there; empty for another one.

    The step is Failed, because nothing more is done for it, and says so by the words of the agent.
    """
    taken = bundle.status.phase == "Superseded" or (recorded is not None and recorded.displaced_by is not None)
    return SUPERSEDED if taken and state == "Failed" and (message or "").startswith("superseded by") else ""


def _stands(recorded: EnvironmentStatus, step: PromotionStep, bundle: Bundle) -> bool:
    """Return whether a verification outlives its step: only a failure in a Bundle under way takes it back."""
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
    """Return the state of an environment that the Bundle has not come to."""
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
            return state("NotTargeted", "added to the Pipeline after the Bundle had started")
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
        names = ", ".join(gate.name for gate in shut)
        by_time = all(gate.opens_at is not None for gate in shut)
        return state("Waiting" if by_time else "Blocked", f"held by {names}")
    if closed:
        return state("Waiting", f"waits for the answer of {', '.join(gate.name for gate in closed)}")
    return state("Waiting", "is about to start")
