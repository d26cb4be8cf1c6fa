"""The statuses that a Bundle can get (pure).

`Ready` is True only when every environment that the Bundle is meant for *now* is Verified. It carries the generation it
was computed from, which `kubectl wait` compares, so a target that moves forward makes it False until the new
environments are Verified too.
"""

from __future__ import annotations

from kardinal.api import Condition, set_condition
from kardinal.api.bundle import BundlePhase, BundleStatus, GraphRecord
from kardinal.api.commands import create_command
from kardinal.api.image import bundle_versions
from kardinal.api.names import LABEL_PIPELINE
from kardinal.objects import JsonObject
from kardinal.objects.conditions import Truth
from kardinal.translation.errors import GraphChanged, InvalidSpec, Problem, PromotionError, SkipDenied
from kardinal.translation.recorded import spec_hash
from kardinal_controller.bundles.contenders import Contender, Order
from kardinal_controller.bundles.notices import notices
from kardinal_controller.bundles.observation import Observation
from kardinal_controller.bundles.progress import graph_trouble, is_displaced, progress
from kardinal_controller.bundles.requests import answered, unseen

__all__ = [
    "MERGED_OUT_OF_BAND",
    "from_steps",
    "graph_lost",
    "label_missing",
    "phase_kept",
    "pipeline_lost",
    "recorded",
    "refused",
    "requests_noted",
    "superseded",
    "waiting_for_graph",
    "waiting_for_newer",
    "waiting_for_pipeline",
]

MERGED_OUT_OF_BAND = "MergedOutOfBand"
"""The condition of a Bundle of which something was merged while a gate was closed; it never goes."""


def from_steps(observation: Observation, *, recreated: bool = False) -> BundleStatus:
    """Return what the Graph and the steps say; `recreated` notes that the Graph was created a second time."""
    found = progress(observation.environments, observation.upstreams)
    trouble = None
    if observation.graph is not None and found.phase == "Promoting":
        trouble = graph_trouble(observation.graph)
    return _status(
        observation,
        phase=found.phase,
        reason="GraphTrouble" if trouble else found.reason,
        message=trouble or found.message + _what_to_do(observation, found.phase),
        has_graph=True,
        recreated=recreated,
    )


def _what_to_do(observation: Observation, phase: BundlePhase) -> str:
    """Return the command that goes on from a phase in which nothing more happens; empty in others."""
    name, entries = observation.bundle.metadata.name, observation.environments
    ended = sorted((entry.stopped is not None, each) for each, entry in entries.items() if entry.state == "Failed")
    failed = ended[0][1] if ended else None
    if phase == "Failed" and failed in observation.drift.fields:
        again = create_command(observation.bundle, observation.label) or "create another Bundle of these artifacts"
        return f"; the Pipeline has changed since; to try with today's: {again}"
    if phase == "Failed" and failed is not None:
        back = entries[failed].rolled_back_by
        told = f"; Bundle {back} rolls {failed} back" if back else ""
        return f"{told}; to try again: kardinal retry {name} --env {failed}"
    lost = next((each for each, entry in entries.items() if is_displaced(entry)), None)
    if phase == "Superseded" and lost is not None:
        return f"; to have it all the same: kardinal promote {observation.label} --bundle {name} --env {lost}"
    return ""


def phase_kept(observation: Observation) -> BundleStatus:
    """Return the status of a Bundle whose phase nothing changes any more; its environments may still change."""
    ready = observation.bundle.status.condition("Ready")
    return _status(
        observation,
        phase=observation.bundle.status.phase or "Available",
        reason=ready.reason if ready else "Unknown",
        message=ready.message if ready else "",
    )


def superseded(observation: Observation, message: str) -> BundleStatus:
    """Return the status of a Bundle without a Graph to which newer ones have left nothing."""
    return _status(observation, phase="Superseded", reason="Superseded", message=message)


def waiting_for_newer(observation: Observation, newer: Contender) -> BundleStatus:
    """Return the status of a Bundle that does not start before `newer` has tried to."""
    message = f"Bundle {newer.name} is newer and about to start"
    return _status(observation, phase="Available", reason="Waiting", message=message)


def waiting_for_pipeline(observation: Observation) -> BundleStatus:
    """Return the status of a Bundle that has not started and whose Pipeline is not there."""
    problem = _pipeline_not_found(observation)
    message = f"{problem.message}: {problem.remedy}"
    return _status(observation, phase="Available", reason=problem.reason, message=message)


def waiting_for_graph(observation: Observation) -> BundleStatus:
    """Return the status of a Bundle that was asked for again while its Graph is being deleted."""
    message = "it goes on as soon as its earlier Graph is gone"
    return _status(observation, phase="Promoting", reason="GraphLeaving", message=message)


def requests_noted(observation: Observation, first: Order) -> BundleStatus:
    """Return the status with answers to the new requests, and with what follows from them for the environments."""
    before = observation.bundle.status
    answer = answered(unseen(observation.bundle), observation.situation, first=first, now=observation.now)
    noted = {"requests": (*(before.requests or ()), *answer.requests), "pipeline": before.pipeline or observation.label}
    if all(request.state == "Refused" for request in answer.requests):
        return observation.stored.model_copy(update=noted)
    phase = "Available" if before.graph_ref is None else "Promoting"
    follows = {"environments": answer.entries, "phase": phase, "graph_recreated": None}
    return observation.stored.model_copy(update=noted | follows)


def pipeline_lost(observation: Observation) -> BundleStatus:
    """Return the status of a Bundle whose intent has changed and whose Pipeline is no longer there."""
    return refused(observation, InvalidSpec([_pipeline_not_found(observation)]))


def label_missing(observation: Observation) -> BundleStatus:
    """Return the status of a Bundle that names no Pipeline."""
    problem = Problem(
        f"Bundle/{observation.bundle.metadata.name}",
        f"metadata.labels[{LABEL_PIPELINE}]",
        "NoPipeline",
        "the Bundle does not say which Pipeline it is for",
        "set the label to the name of a Pipeline",
    )
    return refused(observation, InvalidSpec([problem]))


def graph_lost(observation: Observation) -> BundleStatus:
    """Return the status of a Bundle whose Graph was deleted and is not created again."""
    again = create_command(observation.bundle, observation.label) or "create another Bundle"
    message = f"its Graph was deleted; to promote these artifacts: {again}"
    return _status(observation, phase="Failed", reason="GraphDeleted", message=message)


def refused(observation: Observation, error: PromotionError) -> BundleStatus:
    """Return what the author has to fix; a Graph that exists goes on meanwhile."""
    if isinstance(error, SkipDenied):
        return _status(observation, phase="SkipDenied", reason="SkipDenied", message=str(error))
    if isinstance(error, InvalidSpec):
        return _status(
            observation,
            phase="Failed",
            reason="InvalidSpec",
            message=str(error),
            invalid=error.problems[0].reason,
        )
    under_way = observation.bundle.status.phase == "Promoting"
    return _status(
        observation,
        phase="Promoting" if under_way else "Available",
        reason=type(error).__name__,
        message=str(error),
        # Noted as something to fix, so that the intent is tried again and not taken for done.
        invalid="GraphChanged" if isinstance(error, GraphChanged) else None,
    )


def recorded(graph: JsonObject) -> GraphRecord:
    """Return the record of a Graph as it stands."""
    return GraphRecord(uid=graph["metadata"]["uid"], hash=spec_hash(graph))


def _pipeline_not_found(observation: Observation) -> Problem:
    metadata = observation.bundle.metadata
    return Problem(
        f"Bundle/{metadata.name}",
        f"metadata.labels[{LABEL_PIPELINE}]",
        "PipelineNotFound",
        f"there is no Pipeline {observation.label} in namespace {metadata.namespace}",
        "the Bundle goes on as soon as there is one",
    )


def _status(
    observation: Observation,
    *,
    phase: BundlePhase,
    reason: str,
    message: str,
    invalid: str | None = None,
    has_graph: bool = False,
    recreated: bool = False,
) -> BundleStatus:
    """Put a status together; `reason` and `message` are those of Ready, `invalid` is the reason of InvalidSpec.

    A condition that does not apply is absent. What a Bundle once had (a Graph, a Graph created again) stays noted.
    """
    bundle, before = observation.bundle, observation.bundle.status
    generation = bundle.metadata.generation or None
    wanted: list[tuple[str, Truth, str, str]] = [("Ready", "True" if phase == "Verified" else "False", reason, message)]
    if invalid:
        wanted.append(("InvalidSpec", "True", invalid, message))
    if warning := _label_ignored(observation):
        wanted.append(("Warning", "True", "PipelineLabelChanged", warning))
    if flagged := _merged_out_of_band(observation):
        wanted.append((MERGED_OUT_OF_BAND, "True", MERGED_OUT_OF_BAND, flagged))
    wanted += [(notice.type, "True", notice.reason, notice.message) for notice in notices(observation, phase)]
    # The steps may be gone; what has happened stays.
    names = {MERGED_OUT_OF_BAND, *(name for name, *_ in wanted)}
    conditions: tuple[Condition, ...] = tuple(each for each in before.conditions if each.type in names)
    for name, truth, why, text in wanted:
        conditions = set_condition(
            conditions, name, truth, reason=why, message=text, now=observation.now, observed_generation=generation
        )
    pipeline = observation.pipeline.metadata.name if observation.pipeline else observation.label
    return BundleStatus(
        observed_generation=generation,
        conditions=conditions,
        phase=phase,
        pipeline=pipeline or None,
        version=bundle_versions(bundle.spec.artifacts) or None,
        sequence=before.sequence,
        artifacts=before.artifacts,
        graph_ref=bundle.metadata.name if has_graph else before.graph_ref,
        graph_recreated=True if recreated else before.graph_recreated,
        graph=_record(observation),
        requests=before.requests,
        environments=observation.environments,
    )


def _record(observation: Observation) -> GraphRecord | None:
    """Return what the status says of the Graph: its uid and hash once it was created or extended."""
    before, graph = observation.bundle.status.graph, observation.graph
    if isinstance(observation.outcome, dict):
        graph = observation.outcome
    if graph is None or (before is not None and before.uid is not None and before.next_hash is None):
        return before
    known = before is None or spec_hash(graph) in (before.hash, before.next_hash)
    return recorded(graph) if known and not isinstance(observation.outcome, PromotionError) else before


def _merged_out_of_band(observation: Observation) -> str:
    """Return which environments were merged while a gate was closed, with the reasons; empty for none."""
    flags = ((name, step.status.condition(MERGED_OUT_OF_BAND)) for name, step in sorted(observation.steps.items()))
    return "; ".join(f"{name}: {flag.message}" for name, flag in flags if flag is not None and flag.status == "True")


def _label_ignored(observation: Observation) -> str | None:
    label = observation.bundle.metadata.labels.get(LABEL_PIPELINE)
    if not observation.label or label == observation.label:
        return None
    return (
        f"the Bundle belongs to Pipeline {observation.label} since it was first seen; "
        f"its label says {label} and is ignored"
    )
