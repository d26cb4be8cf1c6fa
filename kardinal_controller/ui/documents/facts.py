"""The facts of one Pipeline that several parts of a document need, computed once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kardinal.promotion.api import Bundle, PolicyGate
from kardinal.promotion.api.promotion_step import NO_AGENT
from kardinal.promotion.policy.soak import Soak
from kardinal.promotion.translation.environment_order import OrderError, upstreams
from kardinal.promotion.translation.rollback import soak_of
from kardinal.promotion.views.bundles import last_verified
from kardinal.promotion.views.environments import EnvironmentState, drawn_upstreams, recorded_states
from kardinal.promotion.views.gates import GateLine, reads_soak
from kardinal.promotion.views.reading import PipelineObjects
from kardinal.promotion.views.status import PullRequestLine, StatusView, status_view

__all__ = ["PipelineFacts", "facts_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineFacts:
    """The views of a Pipeline and the Bundle that is shown."""

    objects: PipelineObjects
    view: StatusView
    states: Mapping[str, EnvironmentState]
    gates: Mapping[str, Sequence[GateLine]]
    """The gates before each environment."""
    upstreams: Mapping[str, tuple[str, ...]]
    """The upstreams of each environment, in the order of promotion."""
    now: datetime
    running: Mapping[str, tuple[datetime, Bundle]]
    """The Bundle that was Verified last in each environment, with the time."""
    by_type: Sequence[Sequence[Bundle]]
    """The Bundles of each type, newest first."""
    arrived: Collection[str]
    """The names of Bundles, except rollbacks, that were Verified in a first environment of the Pipeline."""

    @property
    def pipeline(self) -> str:
        return self.objects.pipeline.metadata.name

    @property
    def bundle(self) -> Bundle | None:
        return self.objects.bundle

    def pull_request(self, environment: str) -> PullRequestLine | None:
        """Return the pull request of an environment that waits for its merge."""
        return next((pull for pull in self.view.pull_requests if pull.environment == environment), None)

    def needs_merge(self, environment: str) -> bool:
        """Return whether a person has to merge the pull request of an environment, or to find out why it cannot be.

        The pull request of an environment with the approval `auto` is merged by its agent.
        """
        pull = self.pull_request(environment)
        step = self.states[environment].step
        return pull is not None and (bool(pull.why) or step is None or step.spec.approval == "pr-review")

    def no_agent_since(self, environment: str) -> datetime | None:
        """Return the time since which no agent has taken the PromotionStep of an environment."""
        step = self.states[environment].step
        lacking = step.status.condition(NO_AGENT) if step is not None else None
        return lacking.last_transition_time if lacking is not None and lacking.status == "True" else None

    def instance(self, gate: GateLine) -> PolicyGate | None:
        """Return the gate instance that the Graph names; the origin that an instance claims is not believed."""
        found = (each for each in self.objects.gates if each.metadata.name == gate.instance)
        return next(found, None) if gate.instance else None

    def soak(self, gate: GateLine) -> Soak | None:
        """Return the soak before a gate; None if its answer does not rest on one."""
        instance = self.instance(gate)
        if self.bundle is None or instance is None or not reads_soak(instance):
            return None
        return soak_of(
            self.bundle,
            gate.environment,
            self.upstreams[gate.environment],
            steps={step.spec.environment: step for step in self.objects.steps},
            others=lambda: [other.to_json() for other in self.objects.bundles],
        )

    def running_state(self, environment: str) -> EnvironmentState | None:
        """Return the state of what runs in an environment, which may be that of an older Bundle; None if none does."""
        found = self.running.get(environment)
        if found is None:
            return None
        _, bundle = found
        if self.bundle is not None and bundle.metadata.name == self.bundle.metadata.name:
            return self.states[environment]
        return recorded_states(bundle).get(environment)

    def behind(self, environment: str) -> int:
        """Return how many newer Bundles than what runs in an environment were Verified in a first environment.

        Bundles of images and of configuration are counted apart, because neither takes the place of the other. A
        rollback runs the version of the Bundle that it restores, and brings none of its own.
        """
        return sum(_newer(bundles, environment, self.arrived) for bundles in self.by_type)


def facts_of(objects: PipelineObjects, *, now: datetime) -> PipelineFacts:
    """Return the facts of a Pipeline at the time `now`."""
    view = status_view(objects, now=now)
    order = drawn_upstreams(objects)
    return PipelineFacts(
        objects=objects,
        view=view,
        states={state.name: state for state in view.environments},
        gates={name: [gate for gate in view.all_gates if gate.environment == name] for name in order},
        upstreams=order,
        now=now,
        running=view.running,
        by_type=_by_type(objects.bundles),
        arrived=_arrived(objects),
    )


def _by_type(bundles: Iterable[Bundle]) -> list[list[Bundle]]:
    found: dict[str, list[Bundle]] = {}
    for bundle in bundles:
        found.setdefault(bundle.spec.type, []).append(bundle)
    return list(found.values())


def _arrived(objects: PipelineObjects) -> set[str]:
    environments = objects.pipeline.spec.environments
    try:
        firsts = {name for name, before in upstreams(environments).items() if not before}
    except OrderError:
        firsts = {each.name for each in environments[:1]}
    return {
        bundle.metadata.name
        for bundle in objects.bundles
        if bundle.spec.intent.rollback is None
        and any(name in firsts and entry.state == "Verified" for name, entry in bundle.status.environments.items())
    }


def _newer(bundles: Sequence[Bundle], environment: str, arrived: Collection[str]) -> int:
    """Return how many of `bundles`, which are newest first, have arrived after what runs in an environment."""
    last = last_verified(bundles, environment)
    if last is None:
        return 0
    _, runs = last
    rollback = runs.spec.intent.rollback
    names = [bundle.metadata.name for bundle in bundles]
    own = rollback.restores.name if rollback is not None else runs.metadata.name
    place = names.index(own) if own in names else len(names)
    return sum(name in arrived for name in names[:place])
