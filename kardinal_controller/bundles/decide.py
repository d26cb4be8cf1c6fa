"""Decide the next action for a Bundle (pure).

    observe → project → decide → carry out → observe → … → report

The reconciler carries out one decision, observes again and asks for the next one. `decide` has no memory, so a process
that was killed at any moment comes back to the same question.

The order of the questions guarantees four rules:

1. A superseded Bundle stays superseded, unless a person requests it again. Its Graph is deleted only when every step
   has ended, so that no step is interrupted, and never in the run that writes the phase, because a step that is just
   being created may not be visible before the next run.
2. Whether newer Bundles leave an environment to a Bundle is asked before its Graph is created or extended.
3. A Graph that exists is never created again, whatever the status says. A Graph that was deleted is created again
   once, and only for a Bundle that is being promoted or was refused. One that a person has written is not.
4. A problem that an author can fix becomes a phase and a condition. A failure of the API server or the network is
   raised where it happens; it never gets here, and so never becomes a phase.
"""

from __future__ import annotations

from dataclasses import replace

from kardinal.objects import JsonObject
from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.bundle import BundleStatus
from kardinal.promotion.translation.errors import InvalidSpec
from kardinal.promotion.translation.route import find_route
from kardinal_controller.bundles import decisions
from kardinal_controller.bundles.contenders import Standing
from kardinal_controller.bundles.decisions import (
    Admit,
    Create,
    Decision,
    Delete,
    Extend,
    Leave,
    LookUp,
    Note,
    Report,
    RollBack,
    StartLater,
    effect,
)
from kardinal_controller.bundles.observe import Facts
from kardinal_controller.bundles.progress import all_steps_finished
from kardinal_controller.bundles.rules import Projection

__all__ = ["decide"]


def decide(facts: Facts, projection: Projection) -> Decision:
    """Return the decision: the next action, with the phase, its reason and its message."""
    if facts.bundle.metadata.deletion_timestamp is not None:
        return effect(facts, Leave(), "it is being deleted")
    if projection.answer is not None:
        return effect(facts, Note(), "requests of people were decided about")
    if (due := projection.due_rollback) is not None:
        return effect(facts, RollBack(due), f"{due.environment} failed, and is rolled back by itself")
    found = _graph_or_status(facts, projection)
    if isinstance(found.action, Report) and (deletion := _graph_to_delete(facts, projection)) is not None:
        return replace(found, action=Delete(deletion))
    return found


def _graph_or_status(facts: Facts, projection: Projection) -> Decision:
    """Return the decision for an action on the Graph, or to report the status if the Graph needs no action."""
    done = facts.done
    if done.refusal is not None:
        return decisions.refused(facts, done.refusal)
    if done.graph is not None:
        recreated = done.created and facts.bundle.status.graph_ref is not None
        return decisions.from_steps(projection, recreated=recreated)
    if not facts.label:
        return decisions.label_missing(facts)
    if facts.bundle.status.phase == "Superseded":
        return decisions.phase_kept(facts)
    return _start(facts, projection) if facts.bundle.status.graph_ref is None else _go_on(facts, projection)


def _start(facts: Facts, projection: Projection) -> Decision:
    """Decide about a Bundle whose status names no Graph yet."""
    if facts.graph is not None:
        return _found(facts, facts.graph, projection)
    if projection.superseded:
        return decisions.superseded(projection.superseded)
    if facts.pipeline is None:
        return decisions.waiting_for_pipeline(facts)
    manual = facts.bundle.spec.intent.graph == "manual"
    if manual and facts.offered is None:
        return decisions.waiting_for_author(facts)
    if facts.unresolved:
        begin = effect(facts, LookUp(), "its tags have not been looked up")
    elif manual:
        begin = _admission(facts, facts.pipeline)
    else:
        begin = effect(facts, Create(facts.pipeline), "nothing holds its start, and it has no Graph")
    if projection.in_queue or facts.own.pinned:
        return begin
    if (until := projection.held_until) is not None:
        return effect(facts, StartLater(until), "the Bundle that started last has its head start")
    return begin if projection.newer is None else decisions.waiting_for_newer(projection.newer)


def _found(facts: Facts, graph: JsonObject, projection: Projection) -> Decision:
    """Decide about a Bundle whose Graph was created by a run that died: the intent may have moved since."""
    left_alone = projection.progress.phase == "Superseded" or "deletionTimestamp" in graph["metadata"]
    if facts.pipeline is None or left_alone or _destinations(facts, facts.pipeline) <= set(projection.upstreams):
        return decisions.from_steps(projection)
    return _extension(graph, facts, facts.pipeline)


def _go_on(facts: Facts, projection: Projection) -> Decision:
    """Decide about a Bundle that has, or had, a Graph."""
    if facts.graph is None:
        return _without_graph(facts, projection)
    if "deletionTimestamp" in facts.graph["metadata"] and facts.bundle.status.phase == "Promoting":
        return decisions.waiting_for_graph()
    if projection.progress.phase == "Superseded" or not _graph_may_lack_environments(facts):
        return decisions.from_steps(projection)
    if facts.pipeline is None:
        return decisions.pipeline_lost(facts)
    return _extension(facts.graph, facts, facts.pipeline)


def _extension(graph: JsonObject, facts: Facts, pipeline: Pipeline) -> Decision:
    return effect(facts, Extend(graph, pipeline), "it may be meant for environments that its Graph does not have")


def _without_graph(facts: Facts, projection: Projection) -> Decision:
    """Decide about a Bundle whose Graph was deleted."""
    status = facts.bundle.status
    if status.phase == "Promoting" and projection.superseded:
        return decisions.superseded(projection.superseded)
    unfinished = status.phase == "Promoting" or _was_refused(status)
    if not unfinished and not _wants_more_environments(facts):
        return decisions.phase_kept(facts)
    if not unfinished or status.graph_recreated or facts.pipeline is None:
        return decisions.graph_lost(facts)
    if facts.bundle.spec.intent.graph == "manual":
        return _admission(facts, facts.pipeline) if _is_recorded(facts) else decisions.graph_lost(facts)
    return effect(facts, Create(facts.pipeline), "nothing holds its start, and it has no Graph")


def _admission(facts: Facts, pipeline: Pipeline) -> Decision:
    return effect(facts, Admit(pipeline), "a person has written a Graph for it")


def _is_recorded(facts: Facts) -> bool:
    """Return whether the Graph with which the Bundle has started is there, and has lost its owner reference."""
    record = facts.bundle.status.graph
    return facts.offered is not None and record is not None and facts.offered["metadata"]["uid"] == record.uid


def _graph_to_delete(facts: Facts, projection: Projection) -> JsonObject | None:
    """Return the Graph of a Bundle that was superseded by an earlier run and whose steps have all finished."""
    graph = facts.graph
    if graph is None or "deletionTimestamp" in graph["metadata"]:
        return None
    superseded = facts.bundle.status.phase == "Superseded"
    if not superseded or not all_steps_finished(facts.steps.values()):
        return None
    # The step of an environment to which the Bundle was admitted may not be visible yet.
    admitted = (Standing.of(entry) for entry in projection.environments.values() if entry.admitted_at is not None)
    return graph if all(standing.landed or standing.has_ended for standing in admitted) else None


def _graph_may_lack_environments(facts: Facts) -> bool:
    """Return whether the Bundle may be meant for environments that its Graph does not have."""
    bundle = facts.bundle
    return _was_refused(bundle.status) or bundle.metadata.generation != bundle.status.observed_generation


def _wants_more_environments(facts: Facts) -> bool:
    """Return whether the intent names environments without an entry in the status."""
    if facts.pipeline is None or not _graph_may_lack_environments(facts):
        return False
    return not _destinations(facts, facts.pipeline) <= set(facts.bundle.status.environments)


def _destinations(facts: Facts, pipeline: Pipeline) -> set[str]:
    """Return the environments that the intent leads to; none where it is invalid, or where a person wrote the Graph."""
    if facts.bundle.spec.intent.graph == "manual":
        return set()
    try:
        return set(find_route(pipeline, facts.bundle).upstreams)
    except InvalidSpec:
        return set()


def _was_refused(status: BundleStatus) -> bool:
    """Return whether the status reports a problem that the author can fix."""
    return status.condition("InvalidSpec") is not None or status.phase == "SkipDenied"
