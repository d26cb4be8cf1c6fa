"""Explain why an environment has not been promoted to, with the values that its gates have read (pure).

The explanation is composed of statuses that the controllers wrote: the Graph has the gates and PromotionSteps, the
gate instances have the values they read, and the PromotionStep has its progress. No gate is evaluated here. The values
belong to the present spec of the gate template; if the template was deleted, or the instance was changed by hand, the
reason in the status of the instance says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kardinal.objects import JsonObject
from kardinal.objects.conditions import find_condition
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.image import bundle_versions
from kardinal.promotion.api.names import WAITING_FOR_GRAPH
from kardinal.promotion.api.promotion_step import ENDED_STATES
from kardinal.promotion.policy.hold_gate import why_held
from kardinal.promotion.views.environments import EnvironmentState, promotion_states
from kardinal.promotion.views.gates import GateLine
from kardinal.promotion.views.missing import no_bundle, unknown_environment
from kardinal.promotion.views.reading import PipelineObjects
from kardinal.promotion.views.render_failures import render_failure
from kardinal.promotion.views.states import WITHOUT_STEP, no_longer_healthy, title_of
from kardinal.promotion.views.status import bundle_notes

__all__ = ["Explanation", "explanation_of", "result_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The state of one environment for one Bundle, with its reasons."""

    pipeline: str
    environment: str
    bundle: str
    versions: str
    gates: Sequence[GateLine]
    """The gates before the environment."""
    failure: str | None
    """The error of the simulator if it cannot render the environment, else None."""
    result: str
    """The conclusion, which begins with a word in capitals: `BLOCKED by no-weekend-deploys`."""
    notes: Sequence[str]


def explanation_of(objects: PipelineObjects, environment: str, *, failures: Mapping[str, str]) -> Explanation:
    """Return the explanation of an environment for the Bundle that is shown.

    `failures` is the result of `render_failures`. Raises `Missing` if the Pipeline has no such environment or no
    Bundle.
    """
    pipeline = objects.pipeline
    bundle = objects.bundle
    known = [each.name for each in pipeline.spec.environments]
    if environment not in known:
        raise unknown_environment(pipeline.metadata.name, environment, known)
    if bundle is None:
        raise no_bundle(pipeline.metadata.name)
    states, gates = promotion_states(objects)
    found = next(state for state in states if state.name == environment)
    step = next((each for each in objects.steps if each.spec.environment == environment), None)
    before = [gate for gate in gates if gate.environment == environment]
    return Explanation(
        pipeline=pipeline.metadata.name,
        environment=environment,
        bundle=bundle.metadata.name,
        versions=bundle_versions(bundle.spec.artifacts),
        gates=before,
        failure=render_failure(step, failures),
        result=result_of(objects, bundle, found, states=states, gates=before),
        notes=tuple(bundle_notes(bundle)),
    )


def result_of(
    objects: PipelineObjects,
    bundle: Bundle,
    found: EnvironmentState,
    *,
    states: Sequence[EnvironmentState],
    gates: Sequence[GateLine],
) -> str:
    """Return the conclusion about the environment `found`; `gates` are those before it."""
    step = next((each for each in objects.steps if each.spec.environment == found.name), None)
    return _refused(objects.graph, step) or _unhealthy(found, states) or _result(objects, bundle, found, gates)


def _refused(graph: JsonObject | None, step: PromotionStep | None) -> str | None:
    """Return why the engine refuses the Graph or the agent refuses the PromotionStep; None if neither does."""
    accepted = find_condition(graph.get("status") or {}, "Accepted") if graph is not None else None
    if accepted is not None and accepted["status"] == "False":
        return f"REFUSED: {accepted.get('message') or ''}"
    not_owned = step.status.condition("NotOwned") if step is not None else None
    if not_owned is not None and not_owned.status == "True":
        return f"REFUSED: {not_owned.message}"
    return None


def _unhealthy(found: EnvironmentState, states: Sequence[EnvironmentState]) -> str | None:
    """Return the sentence about lost health of this environment, else of upstreams that it waits for; else None."""
    if found.health:
        return f"{title_of(found.health)}: {no_longer_healthy(found.message)}"
    ill = [each for each in states if each.name in found.upstreams and each.health]
    if not ill or found.state not in ("Waiting", "Blocked"):
        return None
    return f"HELD: {'; '.join(f'{each.name} is no longer healthy: {each.message}' for each in ill)}"


def _result(objects: PipelineObjects, bundle: Bundle, found: EnvironmentState, gates: Sequence[GateLine]) -> str:
    if bundle.status.waits_for_graph:
        ready = bundle.status.condition("Ready")
        return f"{title_of(WAITING_FOR_GRAPH)}: {ready.message if ready else found.message}"
    if found.state in ENDED_STATES:
        return f"{found.state.upper()}: {found.message}" if found.message else found.state.upper()
    if found.state in ("Skipped", "NotTargeted"):
        return f"{title_of(found.state)}: {found.message}"
    if bundle.status.phase is not None and bundle.status.has_ended and bundle.status.phase != "Verified":
        ready = bundle.status.condition("Ready")
        return f"{bundle.status.phase.upper()}: {ready.message if ready else found.message}"
    if objects.freeze is not None:
        why = objects.freeze.spec.message
        return "PAUSED: the Pipeline is frozen until kardinal resume" + (f" ({why})" if why else "")
    if hold := _hold(objects, bundle, found.name):
        return hold
    failing = [gate.name for gate in gates if gate.answer == "FAIL"]
    if failing:
        return f"BLOCKED by {', '.join(failing)}"
    if found.state in WITHOUT_STEP:
        return f"{title_of(found.state)}: {found.message}"
    return f"{found.state}: {found.message}" if found.message else found.state


def _hold(objects: PipelineObjects, bundle: Bundle, environment: str) -> str:
    """Return the sentence about the hold that a rollback left before an environment.

    Empty if there is no hold, or if it lets this Bundle through.
    """
    gate = dict(objects.held).get(environment)
    if gate is None or gate["spec"].get("exceptBundle") == bundle.metadata.name:
        return ""
    return why_held(gate, objects.pipeline.metadata.name, environment).replace("held", "HELD", 1)
