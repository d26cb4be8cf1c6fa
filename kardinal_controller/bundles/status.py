"""The status of a Bundle as it follows from the projection and the decision, and when it is written (pure).

A status that differs only in how far the environments have come may wait a second; every other difference is written
at once.
"""

from __future__ import annotations

from kardinal.models.base import Condition
from kardinal.objects import JsonObject
from kardinal.objects.conditions import Truth
from kardinal.promotion.api import set_condition
from kardinal.promotion.api.bundle import BundleStatus, EnvironmentStatus, GraphRecord
from kardinal.promotion.api.image import bundle_versions
from kardinal.promotion.api.names import LABEL_PIPELINE
from kardinal.promotion.translation.errors import InvalidSpec
from kardinal.promotion.translation.recorded import spec_hash
from kardinal.promotion.translation.route import find_route
from kardinal.runtime.timers import remaining
from kardinal_controller.bundles.contenders import Standing
from kardinal_controller.bundles.decisions import Decision, Delete
from kardinal_controller.bundles.notices import notices
from kardinal_controller.bundles.observe import Facts
from kardinal_controller.bundles.progress import left_out_entries
from kardinal_controller.bundles.requests import RequestAnswers
from kardinal_controller.bundles.rules import Projection

__all__ = ["MERGED_OUT_OF_BAND", "WRITTEN_WITHIN", "recorded", "status_of", "write_at"]

MERGED_OUT_OF_BAND = "MergedOutOfBand"
"""The condition of a Bundle whose pull request was merged while a gate was closed; it is never removed."""

WRITTEN_WITHIN = 1.0
"""The most seconds that progress inside a phase waits to be written, so that quick steps are written together."""


def status_of(projection: Projection, decision: Decision) -> BundleStatus:
    """Put the status together; a condition that does not apply is absent.

    The name of a Graph, and that it was created again, stay in the status. Answers to new requests are written alone,
    because everything else follows from them.
    """
    facts = projection.facts
    bundle = facts.bundle
    before = bundle.status
    if projection.answer is not None:
        return _with_answer(facts, projection.answer)
    pipeline = facts.pipeline.metadata.name if facts.pipeline else facts.label
    return BundleStatus(
        observed_generation=bundle.metadata.generation or None,
        conditions=_conditions(projection, decision),
        phase=decision.phase,
        pipeline=pipeline or None,
        version=bundle_versions(bundle.spec.artifacts) or None,
        sequence=before.sequence,
        artifacts=before.artifacts,
        graph_ref=bundle.metadata.name if decision.has_graph else before.graph_ref,
        graph_recreated=True if decision.recreated else before.graph_recreated,
        graph=_record(facts),
        requests=before.requests,
        environments={**_left_out(projection, decision), **projection.environments},
    )


def write_at(projection: Projection, decision: Decision, status: BundleStatus) -> float | None:
    """Return the time at which to write a status, in seconds of the monotonic clock; None if it is stored already."""
    facts = projection.facts
    if status == facts.stored:
        return None
    contended = any(other.is_under_way or other.pending for other in facts.siblings)
    at_once = isinstance(decision.action, Delete) or _essence(facts.stored, contended) != _essence(status, contended)
    until = facts.monotonic + WRITTEN_WITHIN if facts.write_by is None else facts.write_by
    return facts.monotonic if at_once or not remaining(until - facts.monotonic) else until


def recorded(graph: JsonObject) -> GraphRecord:
    """Return the record of a Graph with its present uid and hash."""
    return GraphRecord(uid=graph["metadata"]["uid"], hash=spec_hash(graph))


def _with_answer(facts: Facts, answer: RequestAnswers) -> BundleStatus:
    """Return the stored status with answers to the new requests, and with the entries that follow from them."""
    before = facts.bundle.status
    noted = {"requests": (*(before.requests or ()), *answer.requests), "pipeline": before.pipeline or facts.label}
    if all(request.state == "Refused" for request in answer.requests):
        return facts.stored.model_copy(update=noted)
    phase = "Available" if before.graph_ref is None else "Promoting"
    follows = {"environments": answer.entries, "phase": phase, "graph_recreated": None}
    return facts.stored.model_copy(update=noted | follows)


def _conditions(projection: Projection, decision: Decision) -> tuple[Condition, ...]:
    facts = projection.facts
    phase = decision.phase
    message = decision.message
    ready: Truth = "True" if phase == "Verified" else "False"
    wanted: list[tuple[str, Truth, str, str]] = [("Ready", ready, decision.reason, message)]
    if decision.invalid:
        wanted.append(("InvalidSpec", "True", decision.invalid, message))
    if warning := _label_ignored(facts):
        wanted.append(("Warning", "True", "PipelineLabelChanged", warning))
    if flagged := _merged_out_of_band(facts):
        wanted.append((MERGED_OUT_OF_BAND, "True", MERGED_OUT_OF_BAND, flagged))
    wanted += [(notice.type, "True", notice.reason, notice.message) for notice in notices(projection, phase)]
    # The steps may be gone; what has happened stays.
    names = {MERGED_OUT_OF_BAND, *(name for name, *_ in wanted)}
    found: tuple[Condition, ...] = tuple(each for each in facts.bundle.status.conditions if each.type in names)
    generation = facts.bundle.metadata.generation or None
    for name, truth, why, text in wanted:
        found = set_condition(
            found, name, truth, reason=why, message=text, now=facts.now, observed_generation=generation
        )
    return found


def _left_out(projection: Projection, decision: Decision) -> dict[str, EnvironmentStatus]:
    """Return the entries of environments that the Bundle leaves out, once it has a Graph."""
    facts = projection.facts
    if not decision.has_graph:
        return {}
    route = None
    if facts.pipeline is not None and facts.bundle.status.graph_ref is None:
        try:
            route = find_route(facts.pipeline, facts.bundle)
        except InvalidSpec:
            route = None
    return left_out_entries(route, facts.bundle.status.environments, projection.environments)


def _record(facts: Facts) -> GraphRecord | None:
    """Return the record of the Graph for the status: its uid and hash once it was created or extended."""
    before = facts.bundle.status.graph
    graph = facts.graph
    if graph is None or (before is not None and before.uid is not None and before.next_hash is None):
        return before
    known = before is None or spec_hash(graph) in (before.hash, before.next_hash)
    return recorded(graph) if known and facts.done.refusal is None else before


def _merged_out_of_band(facts: Facts) -> str:
    """Return which environments were merged while a gate was closed, with the reasons; empty for none."""
    flags = ((name, step.status.condition(MERGED_OUT_OF_BAND)) for name, step in sorted(facts.steps.items()))
    return "; ".join(f"{name}: {flag.message}" for name, flag in flags if flag is not None and flag.status == "True")


def _label_ignored(facts: Facts) -> str | None:
    label = facts.bundle.metadata.labels.get(LABEL_PIPELINE)
    if not facts.label or label == facts.label:
        return None
    return (
        f"the Bundle belongs to Pipeline {facts.label} since it was first seen; its label says {label} and is ignored"
    )


def _essence(status: BundleStatus, contended: bool) -> tuple[object, ...]:
    """Return the parts of a status that are written at once: not progress and messages, unless others wait for them.

    `contended`: other Bundles are under way or pending, and wait for this one to prepare, land or end.
    """
    conditions = {condition.type: (condition.status, condition.reason) for condition in status.conditions}
    kept = status.model_copy(update={"environments": {}, "conditions": ()})
    generations = {condition.observed_generation for condition in status.conditions}
    decided = {
        name: (entry.admitted_at, entry.displaced_by, entry.healthy, entry.tags_checked_at)
        for name, entry in status.environments.items()
    }
    standings = {name: Standing.of(entry) for name, entry in status.environments.items()} if contended else {}
    awaited = {name: (each.prepared, each.landed, each.has_ended) for name, each in standings.items()}
    return kept, conditions, generations, decided, awaited
