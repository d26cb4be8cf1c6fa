"""The standing of a Pipeline: one value of what its objects say, for a terminal, a log and a program (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from kardinal.api import Bundle, Graph, Pipeline, PolicyGate, PromotionStep
from kardinal.api.image import bundle_title, bundle_versions
from kardinal.cli.environments import EnvironmentState, environment_states
from kardinal.cli.gates import GateLine, gate_lines, recorded_gates
from kardinal.cli.output import one_line
from kardinal.objects import JsonObject
from kardinal.steps.pull_request_text import waiting_message
from kardinal.translation.topology import read_topology

__all__ = ["Hold", "Objects", "PullRequestLine", "View", "bundle_notes", "make_view", "promotion_states", "unattended"]

UNATTENDED = timedelta(seconds=10)
"""How long a new object may be without a status before no controller seems to run."""

_NOTED: Final = {"Outdated": "", "MergedOutOfBand": "MergedOutOfBand: "}
"""Conditions of a Bundle -> what their message begins with in a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """The objects of one Pipeline; `bundles` newest first, of which `bundle` is the one that is shown."""

    pipeline: Pipeline
    bundles: Sequence[Bundle]
    bundle: Bundle | None = None
    steps: Sequence[PromotionStep] = ()
    gates: Sequence[PolicyGate] = ()
    graph: JsonObject | None = None
    freeze: PolicyGate | None = None
    held: Sequence[tuple[str, JsonObject]] = ()
    """The environments that are held since a rollback, with their gates."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Something that keeps an environment, or all of them, from the next effect."""

    environment: str
    message: str
    command: str
    purpose: str


@dataclass(frozen=True, slots=True)
class PullRequestLine:
    """A pull request that waits for its merge; `local` can be merged by `kardinal pr`.

    `why` is the reason for which its host puts the merge off or cannot be asked; empty where only the merge is missing.
    """

    environment: str
    number: int
    url: str
    local: bool
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One Pipeline with the Bundle that is shown."""

    pipeline: str
    namespace: str
    bundle: Bundle | None
    environments: Sequence[EnvironmentState]
    runs: dict[str, str]
    """Environment -> the version that was verified there last."""
    gates: Sequence[GateLine]
    """Those before environments that the Bundle has not come to."""
    holds: Sequence[Hold]
    pull_requests: Sequence[PullRequestLine]
    others: Sequence[str]
    """The other Bundles that are under way, newest first."""
    notes: Sequence[str]

    @property
    def version(self) -> str:
        """Return the versions of the Bundle; empty without one."""
        return bundle_versions(self.bundle.spec.artifacts) if self.bundle is not None else ""

    @property
    def phase(self) -> str:
        """Return the phase of the Bundle; empty without one."""
        return (self.bundle.status.phase or "Available") if self.bundle is not None else ""

    @property
    def message(self) -> str:
        """Return the sentence of the Bundle's condition Ready."""
        ready = self.bundle.status.condition("Ready") if self.bundle is not None else None
        return ready.message if ready is not None else ""

    def to_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "namespace": self.namespace,
            "bundle": self.bundle.metadata.name if self.bundle is not None else None,
            "version": self.version or None,
            "phase": self.phase or None,
            "message": self.message,
            "environments": [_environment(each, self.runs) for each in self.environments],
            "gates": [_gate(gate) for gate in self.gates],
            "holds": [{"environment": hold.environment or None, "message": hold.message} for hold in self.holds],
            "pullRequests": [
                {"environment": each.environment, "number": each.number, "url": each.url, "why": each.why or None}
                for each in self.pull_requests
            ],
            "otherBundles": list(self.others),
            "notes": list(self.notes),
        }


def make_view(objects: Objects, *, now: datetime) -> View:
    """Return where the Pipeline stands."""
    pipeline, bundle = objects.pipeline, objects.bundle
    environments, gates = promotion_states(objects)
    ahead = {each.name for each in environments if each.state in ("Waiting", "Blocked")}
    return View(
        pipeline=pipeline.metadata.name,
        namespace=pipeline.metadata.namespace,
        bundle=bundle,
        environments=environments,
        runs={each.name: found for each in environments if (found := _runs(each, objects))},
        gates=[gate for gate in gates if gate.environment in ahead],
        holds=list(_holds(objects, environments)),
        pull_requests=list(_pull_requests(pipeline, environments)),
        others=[
            f"{other.metadata.name} ({bundle_versions(other.spec.artifacts)}): {other.status.phase or 'Available'}"
            for other in objects.bundles
            if bundle is not None and not other.status.has_ended and other.metadata.name != bundle.metadata.name
        ],
        notes=list(_notes(objects, now)),
    )


def unattended(resources: Sequence[Pipeline | Bundle], *, now: datetime) -> str:
    """Return that no controller seems to run, where one of these objects was never looked at; else nothing."""
    for resource in resources:
        created = resource.metadata.creation_timestamp
        if resource.status.observed_generation is None and created is not None and now - created > UNATTENDED:
            return (
                f"No controller has looked at {type(resource).__name__} {resource.metadata.name} yet: is one running? "
                "On this machine: kardinal local up --simulate"
            )
    return ""


def promotion_states(objects: Objects) -> tuple[list[EnvironmentState], list[GateLine]]:
    """Return the state of each environment for the Bundle, and the gates of its Graph."""
    pipeline, bundle, graph = objects.pipeline, objects.bundle, objects.graph
    if bundle is None:
        return [EnvironmentState(name=each.name, state="-") for each in pipeline.spec.environments], []
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


def _runs(environment: EnvironmentState, objects: Objects) -> str:
    """Return the version that was verified last in an environment; empty where none was."""
    verified = [
        (entry.verified_at, bundle)
        for bundle in objects.bundles
        if (entry := bundle.status.environments.get(environment.name))
        and entry.state == "Verified"
        and entry.verified_at
    ]
    # A step is a moment ahead of what its Bundle says.
    if objects.bundle is not None and environment.state == "Verified" and environment.since is not None:
        verified.append((environment.since, objects.bundle))
    return bundle_title(max(verified, key=lambda pair: pair[0])[1].spec.artifacts) if verified else ""


def _holds(objects: Objects, environments: Iterable[EnvironmentState]) -> Iterator[Hold]:
    name = objects.pipeline.metadata.name
    if objects.freeze is not None:
        message = objects.freeze.spec.message or f"{name} is paused"
        yield Hold("", one_line(message), f"kardinal resume {name}", "let it go on")
    for held_name, gate in objects.held:
        message = one_line(gate["spec"].get("message") or "held since a rollback")
        command = f"kardinal resume {name} --env {held_name}"
        yield Hold(held_name, message, command, f"let other Bundles get to {held_name} again")
    kept = {held_name for held_name, _ in objects.held}
    for environment in environments:
        held = environment.step.status.condition("Held") if environment.step is not None else None
        if held is None or held.status != "True" or (objects.freeze and "freeze" in held.message):
            continue
        if environment.name not in kept or not held.message.startswith("held by a hold"):
            command = f"kardinal explain {name} --env {environment.name}"
            yield Hold(environment.name, one_line(held.message), command, f"see what holds {environment.name}")


def _pull_requests(pipeline: Pipeline, environments: Iterable[EnvironmentState]) -> Iterator[PullRequestLine]:
    for environment in environments:
        status = environment.step.status if environment.step is not None else None
        if status is not None and status.state == "WaitingForMerge" and status.pull_request is not None:
            pull, local = status.pull_request, pipeline.spec.git.provider == "local"
            held = status.condition("Held")
            told = status.message in (waiting_message(pull.url), held.message if held is not None else None)
            why = "" if told else one_line(status.message or "")
            yield PullRequestLine(environment.name, pull.number, pull.url, local, why)


def _notes(objects: Objects, now: datetime) -> Iterator[str]:
    """Yield what keeps everything from going on, and is no state of an environment."""
    shown: list[Pipeline | Bundle] = [objects.pipeline, *([objects.bundle] if objects.bundle is not None else [])]
    if missing := unattended(shown, now=now):
        yield missing
        return
    for name in ("Ready", "RepositoryReady"):
        condition = objects.pipeline.status.condition(name)
        if condition is not None and condition.status == "False":
            yield one_line(f"Pipeline {objects.pipeline.metadata.name} is not {name}: {condition.message}")
    simulated = objects.pipeline.status.condition("Simulated")
    if simulated is not None and simulated.status == "False":
        yield one_line(f"The simulator cannot do all of this: {simulated.message}")
    ignored = objects.pipeline.status.condition("Ignored")
    if ignored is not None and ignored.status == "True":
        yield one_line(f"Pipeline {objects.pipeline.metadata.name}: {ignored.message}")
    if objects.bundle is not None:
        yield from bundle_notes(objects.bundle)


def bundle_notes(bundle: Bundle) -> Iterator[str]:
    """Yield what a person should know of a Bundle whatever the environment."""
    for name in _NOTED:
        condition = bundle.status.condition(name)
        if condition is not None and condition.status == "True":
            yield one_line(f"{_NOTED[name]}{condition.message}")


def _environment(environment: EnvironmentState, runs: dict[str, str]) -> dict[str, Any]:
    return {
        "name": environment.name,
        "state": environment.state,
        "health": environment.health or None,
        "message": environment.message,
        "runs": runs.get(environment.name),
        "step": environment.progress or None,
        "since": environment.since.isoformat() if environment.since else None,
    }


def _gate(gate: GateLine) -> dict[str, Any]:
    return {
        "name": gate.name,
        "namespace": gate.namespace,
        "scope": gate.scope,
        "environment": gate.environment,
        "result": gate.answer,
        "detail": gate.detail,
        "message": gate.message,
        "opensAt": gate.opens_at.isoformat() if gate.opens_at else None,
    }
