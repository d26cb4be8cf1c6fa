"""Compute the status of a Pipeline with one of its Bundles, as `kardinal status` shows it (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.image import bundle_title, bundle_versions
from kardinal.promotion.api.promotion_step import BLOCKED, NOT_ASSIGNED
from kardinal.promotion.steps.pull_request_text import waiting_message
from kardinal.promotion.views.bundles import last_verified
from kardinal.promotion.views.environments import EnvironmentState, promotion_states
from kardinal.promotion.views.gates import GateLine
from kardinal.promotion.views.reading import PipelineObjects
from kardinal.promotion.views.states import phase_of

__all__ = [
    "HoldReason",
    "PullRequestLine",
    "StatusView",
    "bundle_notes",
    "pipeline_problems",
    "running",
    "status_view",
    "unattended",
]

UNATTENDED = timedelta(seconds=10)
"""The age at which an object without a status is taken as a sign that no controller runs."""

_NOTED: Final = {"Outdated": "", "MergedOutOfBand": "MergedOutOfBand: "}
"""The conditions of a Bundle that become notes, each with the prefix of the note."""


@dataclass(frozen=True, slots=True)
class HoldReason:
    """A reason why promotions make no effect: a freeze, a hold of a rollback, or the condition Held of a PromotionStep.

    Note the difference: in `kardinal.promotion.policy.hold_gate`, a hold is only the PolicyGate that a rollback leaves;
    it has the `kind` `hold` here. That of the condition is `gate`, or `problem` where a person has to put something
    right. `environment` is empty for a freeze, which holds all environments. `command` ends or explains the hold, and
    `purpose` says which of these.
    """

    environment: str
    message: str
    command: str
    purpose: str
    kind: Literal["freeze", "hold", "gate", "problem"]


@dataclass(frozen=True, slots=True)
class PullRequestLine:
    """A pull request that waits for its merge.

    `local`: it belongs to provider `local`, so that `kardinal pr merge` can merge it. `why` is the reason why the host
    does not merge it or cannot be reached; empty if it only waits for a person.
    """

    environment: str
    number: int
    url: str
    local: bool
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusView:
    """The status of one Pipeline and of the Bundle that is shown."""

    pipeline: str
    namespace: str
    bundle: Bundle | None
    environments: Sequence[EnvironmentState]
    running: Mapping[str, tuple[datetime, Bundle]]
    """The Bundle that was Verified last in each environment, with the time."""
    all_gates: Sequence[GateLine]
    """The gates before every environment; `gates` are those before environments that are Waiting or Blocked."""
    holds: Sequence[HoldReason]
    pull_requests: Sequence[PullRequestLine]
    others: Sequence[str]
    """A text about each other Bundle that has not ended, newest first: `shop-7f9 (v2): Promoting`."""
    notes: Sequence[str]

    @property
    def runs(self) -> dict[str, str]:
        """Return the version that was Verified last, by environment, for example `{"dev": "v2", "prod": "v1"}`."""
        return {name: bundle_title(found.spec.artifacts) for name, (_, found) in self.running.items()}

    @property
    def gates(self) -> list[GateLine]:
        """Return the gates before environments whose state is Waiting or Blocked."""
        ahead = {each.name for each in self.environments if each.state in ("Waiting", "Blocked")}
        return [gate for gate in self.all_gates if gate.environment in ahead]

    @property
    def version(self) -> str:
        """Return the versions of the Bundle; empty without a Bundle."""
        return bundle_versions(self.bundle.spec.artifacts) if self.bundle is not None else ""

    @property
    def phase(self) -> str:
        """Return the phase of the Bundle; empty without a Bundle."""
        return phase_of(self.bundle) if self.bundle is not None else ""

    @property
    def message(self) -> str:
        """Return the message of the Bundle's condition Ready; empty without it."""
        ready = self.bundle.status.condition("Ready") if self.bundle is not None else None
        return ready.message if ready is not None else ""


def status_view(objects: PipelineObjects, *, now: datetime) -> StatusView:
    """Return the status of the Pipeline at the time `now`."""
    pipeline = objects.pipeline
    bundle = objects.bundle
    environments, gates = promotion_states(objects)
    return StatusView(
        pipeline=pipeline.metadata.name,
        namespace=pipeline.metadata.namespace,
        bundle=bundle,
        environments=environments,
        running=running(objects, environments),
        all_gates=gates,
        holds=list(_holds(objects, environments)),
        pull_requests=list(_pull_requests(pipeline, environments)),
        others=[
            f"{other.metadata.name} ({bundle_versions(other.spec.artifacts)}): {phase_of(other)}"
            for other in objects.bundles
            if bundle is not None and not other.status.has_ended and other.metadata.name != bundle.metadata.name
        ],
        notes=list(_notes(objects, now)),
    )


def running(objects: PipelineObjects, environments: Iterable[EnvironmentState]) -> dict[str, tuple[datetime, Bundle]]:
    """Return the Bundle that was Verified last in each environment, with the time."""
    found: dict[str, tuple[datetime, Bundle]] = {}
    for environment in environments:
        last = last_verified(objects.bundles, environment.name)
        # The controller copies a verification from the PromotionStep to the Bundle, so the Bundle may lag behind.
        if objects.bundle is not None and environment.state == "Verified" and environment.since is not None:
            shown = environment.since, objects.bundle
            last = shown if last is None or shown[0] > last[0] else last
        if last is not None:
            found[environment.name] = last
    return found


def _holds(objects: PipelineObjects, environments: Iterable[EnvironmentState]) -> Iterator[HoldReason]:
    name = objects.pipeline.metadata.name
    if objects.freeze is not None:
        message = objects.freeze.spec.message or f"{name} is paused"
        yield HoldReason("", message, f"kardinal resume {name}", "let it go on", "freeze")
    for held_name, gate in objects.held:
        message = gate["spec"].get("message") or "held since a rollback"
        command = f"kardinal resume {name} --env {held_name}"
        yield HoldReason(held_name, message, command, f"let other Bundles get to {held_name} again", "hold")
    kept = {held_name for held_name, _ in objects.held}
    for environment in environments:
        held = environment.step.status.condition("Held") if environment.step is not None else None
        if held is None or held.status != "True" or (objects.freeze and "freeze" in held.message):
            continue
        if environment.name not in kept or not held.message.startswith("held by a hold"):
            command = f"kardinal explain {name} --env {environment.name}"
            purpose = f"see what holds {environment.name}"
            kind: Literal["gate", "problem"] = "problem" if held.reason == BLOCKED else "gate"
            yield HoldReason(environment.name, held.message, command, purpose, kind)


def _pull_requests(pipeline: Pipeline, environments: Iterable[EnvironmentState]) -> Iterator[PullRequestLine]:
    for environment in environments:
        status = environment.step.status if environment.step is not None else None
        if status is not None and status.state == "WaitingForMerge" and status.pull_request is not None:
            pull = status.pull_request
            local = pipeline.spec.git.provider == "local"
            held = status.condition("Held")
            told = status.message in (waiting_message(pull.url), held.message if held is not None else None)
            why = "" if told else status.message or ""
            yield PullRequestLine(environment.name, pull.number, pull.url, local, why)


def _notes(objects: PipelineObjects, now: datetime) -> Iterator[str]:
    """Yield the problems that are not states of an environment, such as a Pipeline that is not Ready."""
    shown: list[Pipeline | Bundle] = [objects.pipeline, *([objects.bundle] if objects.bundle is not None else [])]
    if missing := unattended(shown, now=now):
        yield missing
        return
    yield from pipeline_problems(objects.pipeline)
    simulated = objects.pipeline.status.condition("Simulated")
    if simulated is not None and simulated.status == "False":
        yield f"The simulator cannot do all of this: {simulated.message}"
    ignored = objects.pipeline.status.condition("Ignored")
    if ignored is not None and ignored.status == "True":
        yield f"Pipeline {objects.pipeline.metadata.name}: {ignored.message}"
    for step in objects.steps:
        lacking = step.status.condition(NOT_ASSIGNED)
        if lacking is not None and lacking.status == "True" and step.status.state == "WaitingForMerge":
            yield f"{step.spec.environment}: {lacking.message}"
    if objects.bundle is not None:
        yield from bundle_notes(objects.bundle)


def pipeline_problems(pipeline: Pipeline) -> Iterator[str]:
    """Yield why a Pipeline cannot be promoted, as a sentence for each condition that says so."""
    for name in ("Ready", "RepositoryReady"):
        condition = pipeline.status.condition(name)
        if condition is not None and condition.status == "False":
            yield f"Pipeline {pipeline.metadata.name} is not {name}: {condition.message}"


def unattended(resources: Sequence[Pipeline | Bundle], *, now: datetime) -> str:
    """Return the note that no controller seems to run, if one of the objects has had no status for 10 s; else empty."""
    for resource in resources:
        created = resource.metadata.creation_timestamp
        if resource.status.observed_generation is None and created is not None and now - created > UNATTENDED:
            return (
                f"No controller has looked at {type(resource).__name__} {resource.metadata.name} yet: is one running? "
                "On this machine: kardinal local up --simulate"
            )
    return ""


def bundle_notes(bundle: Bundle) -> Iterator[str]:
    """Yield the messages of the conditions of a Bundle that concern all environments, such as Outdated."""
    for name in _NOTED:
        condition = bundle.status.condition(name)
        if condition is not None and condition.status == "True":
            yield f"{_NOTED[name]}{condition.message}"
