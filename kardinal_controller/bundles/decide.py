"""Decide what to do next for a Bundle, from values alone.

    observe → decide → do → decide → … → Wait or Delete

The reconciler carries out one decision, notes in the observation what came of it, and asks again. `decide` has no
memory, so a process that dies anywhere comes back to the same question.

The order of the questions is what is guaranteed:

1. A superseded Bundle stays superseded, unless a person asks for it again. Its Graph is deleted when every step has
   finished, because deleting it earlier would take a step away half way; and never in the run that writes the phase,
   because by the next run every step has had the chance to appear.
2. A Bundle to which newer ones have left nothing comes before everything that would create or extend a Graph.
3. A Graph that exists is never created again, whatever the status says. One that was deleted is created again once,
   and only for a Bundle that is being promoted or was refused.
4. What an author must fix becomes a phase and a condition. What the API server or the network does wrong is raised
   where it happens, never comes here, and so never becomes a phase.
5. A status that differs only in how far the environments have come may wait a second; every other difference is
   written at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kardinal.api import Pipeline
from kardinal.api.bundle import BundleStatus
from kardinal.objects import JsonObject
from kardinal.translation.errors import InvalidSpec, PromotionError
from kardinal.translation.route import find_route
from kardinal_controller.bundles import statuses
from kardinal_controller.bundles.contenders import Standing
from kardinal_controller.bundles.failures import DueRollback
from kardinal_controller.bundles.observation import Observation
from kardinal_controller.bundles.progress import all_steps_finished, progress
from kardinal_controller.bundles.supersession import successor

__all__ = [
    "PATIENCE",
    "Create",
    "Decision",
    "Delete",
    "Extend",
    "Hold",
    "LookUp",
    "Note",
    "RollBack",
    "Wait",
    "WriteStatus",
    "decide",
]

PATIENCE = 1.0
"""Seconds that progress inside a phase may wait, so that quick steps are written together."""

HEAD_START = 1.0
"""Seconds for which Bundles that have not started wait for the edit of the one that started last."""

_INSTANT = 0.001
"""Seconds below which a timer has fired: sums of floats do not meet exactly."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create the Graph of the Bundle."""

    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class LookUp:
    """Have the tags of the Bundle looked up and end the run; the next comes with the answer."""


@dataclass(frozen=True, slots=True)
class Extend:
    """Add to the Graph what the intent of the Bundle needs besides, if anything."""

    graph: JsonObject
    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Note:
    """Write down what was decided about new requests, and look again: everything else follows from it."""

    status: BundleStatus


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """Write the status, and tell what changed with it."""

    status: BundleStatus


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the Graph and end the run."""

    graph: JsonObject


@dataclass(frozen=True, slots=True)
class Wait:
    """End the run. The next comes with a change, or at `until` in seconds of the monotonic clock."""

    until: float | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """End the run without a start of the Bundle before `until` in seconds of the monotonic clock."""

    until: float


@dataclass(frozen=True, slots=True)
class RollBack:
    """Create the rollback that follows from a failure, and note it in the entry of the environment."""

    due: DueRollback


Decision = Note | LookUp | Create | Extend | RollBack | WriteStatus | Delete | Wait | Hold


def decide(observation: Observation) -> Decision:
    """Return the one thing to do next."""
    if observation.bundle.metadata.deletion_timestamp is not None:
        return Wait()
    if observation.next_order is not None:
        return Note(statuses.requests_noted(observation, observation.next_order))
    if (due := observation.due_rollback) is not None:
        return RollBack(due)
    found = _graph_or_status(observation)
    return found if isinstance(found, LookUp | Create | Extend | Hold) else _write_or_end(observation, found)


def _graph_or_status(observation: Observation) -> LookUp | Create | Extend | Hold | BundleStatus:
    """Return what to do about the Graph, or the status where there is nothing to do about it."""
    before = observation.bundle.status
    if isinstance(observation.outcome, PromotionError):
        return statuses.refused(observation, observation.outcome)
    if observation.outcome is not None:
        recreated = observation.graph is None and before.graph_ref is not None
        return statuses.from_steps(replace(observation, graph=observation.outcome), recreated=recreated)
    if not observation.label:
        return statuses.label_missing(observation)
    if before.phase == "Superseded":
        return statuses.phase_kept(observation)
    return _start(observation) if before.graph_ref is None else _go_on(observation)


def _start(observation: Observation) -> LookUp | Create | Hold | BundleStatus:
    """Decide about a Bundle that, as its status says, has no Graph yet."""
    if observation.graph is not None:
        return statuses.from_steps(observation)
    if why := _superseded_without_graph(observation):
        return statuses.superseded(observation, why)
    if observation.pipeline is None:
        return statuses.waiting_for_pipeline(observation)
    begin = LookUp() if observation.unresolved else Create(observation.pipeline)
    if observation.in_queue or observation.own.pinned:
        return begin
    if (until := _held_until(observation)) is not None:
        return Hold(until)
    newer = successor(observation.own, observation.siblings)
    return begin if newer is None else statuses.waiting_for_newer(observation, newer)


def _held_until(observation: Observation) -> float | None:
    """Return until when the Bundle that started last has its head start; None where it needs none any more.

    Bundles may be created faster than agents make edits, or no edit can be made because the repository is gone. Each
    of them would get a Graph, although all but the last are about to be taken over.
    """
    start = observation.latest_start
    if start is None or start.at + HEAD_START - observation.monotonic <= _INSTANT:
        return None
    before = next((other for other in observation.siblings if other.name == start.bundle), None)
    if before is not None and not before.pending:
        first = [name for name, upstreams in observation.upstreams.items() if not upstreams]
        at_work = [name for name in first if before.is_live(name) and not before.standings[name].has_good_edit]
        if not at_work:
            return None
    return start.at + HEAD_START


def _go_on(observation: Observation) -> Create | Extend | BundleStatus:
    """Decide about a Bundle that has, or had, a Graph."""
    if observation.graph is None:
        return _without_graph(observation)
    if "deletionTimestamp" in observation.graph["metadata"] and observation.bundle.status.phase == "Promoting":
        return statuses.waiting_for_graph(observation)
    if progress(observation.environments, observation.upstreams).phase == "Superseded":
        return statuses.from_steps(observation)
    if not _graph_may_lack_environments(observation):
        return statuses.from_steps(observation)
    if observation.pipeline is None:
        return statuses.pipeline_lost(observation)
    return Extend(observation.graph, observation.pipeline)


def _without_graph(observation: Observation) -> Create | BundleStatus:
    """Decide about a Bundle whose Graph was deleted."""
    status = observation.bundle.status
    if status.phase == "Promoting" and (why := _superseded_without_graph(observation)):
        return statuses.superseded(observation, why)
    unfinished = status.phase == "Promoting" or _was_refused(status)
    if not unfinished and not _wants_more_environments(observation):
        return statuses.phase_kept(observation)
    if not unfinished or status.graph_recreated or observation.pipeline is None:
        return statuses.graph_lost(observation)
    return Create(observation.pipeline)


def _write_or_end(observation: Observation, status: BundleStatus) -> Decision:
    """Write `status` if it is another one than is stored; then end the run."""
    deletion = _graph_to_delete(observation)
    if status != observation.stored:
        contended = any(other.is_under_way or other.pending for other in observation.siblings)
        if deletion is not None or _essence(observation.stored, contended) != _essence(status, contended):
            return WriteStatus(status)
        until = observation.monotonic + PATIENCE if observation.write_by is None else observation.write_by
        return Wait(until) if until - observation.monotonic > _INSTANT else WriteStatus(status)
    return Delete(deletion) if deletion is not None else Wait()


def _graph_to_delete(observation: Observation) -> JsonObject | None:
    """Return the Graph of a Bundle that was superseded by an earlier run and whose steps have all finished."""
    graph = observation.graph
    if graph is None or "deletionTimestamp" in graph["metadata"]:
        return None
    superseded = observation.bundle.status.phase == "Superseded"
    if not superseded or not all_steps_finished(observation.steps.values()):
        return None
    # The step of an environment that it was admitted to may only be about to appear.
    admitted = (Standing.of(entry) for entry in observation.environments.values() if entry.admitted_at is not None)
    return graph if all(standing.landed or standing.has_ended for standing in admitted) else None


def _superseded_without_graph(observation: Observation) -> str:
    """Return why newer Bundles have left nothing to one without a Graph; empty where they have."""
    if observation.prospect:
        found = progress(observation.prospect, observation.upstreams)
        return found.message if found.phase == "Superseded" else ""
    own = observation.own
    if own.pinned or observation.in_queue:
        return ""
    newer = [other for other in observation.siblings if other.standings and other.created > own.created]
    return f"superseded by {max(newer, key=lambda other: other.created).name}" if newer else ""


def _graph_may_lack_environments(observation: Observation) -> bool:
    """Return whether the Bundle may be meant for environments that its Graph does not have."""
    bundle = observation.bundle
    return _was_refused(bundle.status) or bundle.metadata.generation != bundle.status.observed_generation


def _wants_more_environments(observation: Observation) -> bool:
    """Return whether the intent leads to environments that the Bundle has not been promoted to before."""
    if observation.pipeline is None or not _graph_may_lack_environments(observation):
        return False
    try:
        route = find_route(observation.pipeline, observation.bundle)
    except InvalidSpec:
        return False
    return not set(route.upstreams) <= set(observation.bundle.status.environments)


def _was_refused(status: BundleStatus) -> bool:
    """Return whether the status asks the author to fix something."""
    return status.condition("InvalidSpec") is not None or status.phase == "SkipDenied"


def _essence(status: BundleStatus, contended: bool) -> tuple[object, ...]:
    """Return what may not wait to be written: all but progress and messages, and what other Bundles wait for."""
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
