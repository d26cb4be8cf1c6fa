"""Apply all rules to the facts about a Bundle, once (pure).

    Facts → project → Projection

`project` is the only place that applies the rules, in this order: an entry follows its step (`progress`), a failure
stops or rolls back (`failures`), other Bundles supersede this one or go first (`supersession`), and requests of people
are decided last (`requests`), on the result of all other rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from kardinal.promotion.api.bundle import EnvironmentStatus, Intent
from kardinal.promotion.translation.errors import InvalidSpec
from kardinal.promotion.translation.route import find_route
from kardinal.promotion.translation.topology import Topology, read_topology
from kardinal.runtime.timers import remaining
from kardinal_controller.bundles.contenders import Contender, Standing
from kardinal_controller.bundles.failures import DueRollback, due_rollback, refused_artifacts, stopped
from kardinal_controller.bundles.observe import Facts
from kardinal_controller.bundles.progress import Progress, environments, graph_trouble, progress
from kardinal_controller.bundles.requests import RequestAnswers, Situation, answered, unseen
from kardinal_controller.bundles.supersession import settled, successor

__all__ = ["HEAD_START", "Projection", "project"]

HEAD_START = 1.0
"""The most seconds for which Bundles wait to start until the Bundle that started last has an edit."""


Entries = dict[str, EnvironmentStatus]
Upstreams = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Projection:
    """The result of all rules on the facts about a Bundle."""

    facts: Facts
    upstreams: Upstreams
    """Environment -> its upstream environments, in the Graph; without a Graph, in the present Pipeline."""
    in_queue: bool
    """Whether the promotion policy is `queue`: no Bundle supersedes another one, except a rollback."""
    environments: Entries
    """The entry of each environment for the status: from its step, changed by the other Bundles."""
    progress: Progress
    """The phase that the entries add up to, with its reason and message."""
    trouble: str | None
    """The problem that keeps the engine from creating the nodes of the Graph of a Bundle under way; None for none."""
    superseded: str
    """Why newer Bundles leave no environment to a Bundle that may still get a Graph; empty if one is left."""
    held_until: float | None
    """The end of the head start of the Bundle that started last, in seconds of the monotonic clock; None for none."""
    newer: Contender | None
    """A newer Bundle that is about to start, so that a start of this one would be pointless."""
    due_rollback: DueRollback | None
    """The rollback that follows from a failure and was not made yet."""
    unchecked: tuple[str, ...]
    """The environments that are about to start and whose tags must be looked up again first."""
    answer: RequestAnswers | None
    """The answers to new requests and the entries that follow from them; None where there are no new requests."""


def project(facts: Facts) -> Projection:
    """Apply all rules to the facts."""
    topology = read_topology(facts.graph) if facts.graph is not None else None
    upstreams = _upstreams(facts, topology)
    entries = _entries(facts, topology, upstreams)
    found = progress(entries, upstreams)
    under_way = facts.graph is not None and found.phase == "Promoting"
    return Projection(
        facts=facts,
        upstreams=upstreams,
        in_queue=_in_queue(facts),
        environments=entries,
        progress=found,
        trouble=graph_trouble(facts.graph) if under_way and facts.graph is not None else None,
        superseded=_superseded(facts, upstreams),
        held_until=_held_until(facts, upstreams),
        newer=successor(facts.own, facts.siblings),
        due_rollback=due_rollback(facts.bundle, facts.current, entries, facts.peers, on_failure=_consequences(facts)),
        unchecked=_unchecked(facts, entries, upstreams),
        answer=_answer(facts, entries, upstreams),
    )


def _upstreams(facts: Facts, topology: Topology | None) -> Upstreams:
    if topology is not None:
        return topology.upstreams
    if facts.pipeline is None:
        return {}
    try:
        return find_route(facts.pipeline, facts.bundle).upstreams
    except InvalidSpec:
        return {}


def _in_queue(facts: Facts) -> bool:
    return facts.pipeline is not None and facts.pipeline.spec.promotion_policy == "queue"


def _consequences(facts: Facts) -> dict[str, str]:
    """Return the consequence of a failure by environment, as the Pipeline has it today, such as `rollback`."""
    listed = facts.pipeline.spec.environments if facts.pipeline is not None else ()
    return {each.name: each.on_health_failure for each in listed}


def _entries(facts: Facts, topology: Topology | None, upstreams: Upstreams) -> Entries:
    status = facts.bundle.status
    entries = environments(topology, facts.steps, status.environments, under_way=not status.has_ended)
    for name, rollback in facts.done.rolled_back.items():
        entries[name] = entries[name].model_copy(update={"rolled_back_by": rollback})
    refused = refused_artifacts(facts.bundle, facts.current, facts.peers)
    entries = stopped(entries, status.environments, on_failure=_consequences(facts), refused=refused)
    return _settled(facts, entries, topology, upstreams) if facts.graph is not None else entries


def _settled(facts: Facts, entries: Entries, topology: Topology | None, upstreams: Upstreams) -> Entries:
    """Return the entries with the changes that the other Bundles bring."""
    has_graph = facts.graph is not None or facts.bundle.status.phase != "Superseded"
    own = replace(facts.own, has_graph=has_graph, read_upstreams=lambda: upstreams).with_standings(entries)
    return settled(
        own,
        entries,
        facts.siblings,
        started=[
            name for name, step in facts.steps.items() if name in entries and step.spec.attempt == entries[name].attempt
        ],
        coming=_coming(facts, entries, topology),
        queue=_in_queue(facts),
        now=facts.now,
        held=facts.held,
    )


def _coming(facts: Facts, entries: Entries, topology: Topology | None) -> set[str]:
    """Return the environments whose step the engine creates at once: without gates, and with all upstreams Verified."""
    if topology is None or facts.graph is None or graph_trouble(facts.graph) is not None:
        return set()
    gated = {gate.environment for gate in topology.gates}
    verified = {name for name, entry in entries.items() if entry.state == "Verified" and entry.healthy is not False}
    return {
        name
        for name, before in topology.upstreams.items()
        if name not in gated and verified.issuperset(topology.steps.keys() & before)
    }


def _superseded(facts: Facts, upstreams: Upstreams) -> str:
    """Return why newer Bundles leave no environment to a Bundle that may still get a Graph; empty for others."""
    status = facts.bundle.status
    if facts.graph is not None or (status.graph_ref is not None and status.phase != "Promoting"):
        return ""
    if upstreams:
        # The entries that it would have with a Graph made now.
        entries = {name: EnvironmentStatus(state="Pending") for name in upstreams} | status.environments
        found = progress(_settled(facts, entries, None, upstreams), upstreams)
        return found.message if found.phase == "Superseded" else ""
    own = facts.own
    if own.pinned or _in_queue(facts):
        return ""
    newer = [other for other in facts.siblings if other.standings and other.created > own.created]
    return f"superseded by {max(newer, key=lambda other: other.created).name}" if newer else ""


def _held_until(facts: Facts, upstreams: Upstreams) -> float | None:
    """Return the end of the head start of the Bundle that started last; None if it needs no head start any more.

    Bundles may be created faster than agents make edits, or no edit can be made because the repository is gone. Without
    the head start each of them would get a Graph, although all but the last are about to be superseded.
    """
    start = facts.latest_start
    if start is None or not remaining(start.at + HEAD_START - facts.monotonic):
        return None
    before = next((other for other in facts.siblings if other.name == start.bundle), None)
    if before is not None and not before.pending:
        first = [name for name, others in upstreams.items() if not others]
        at_work = [name for name in first if before.is_live(name) and not before.standings[name].has_good_edit]
        if not at_work:
            return None
    return start.at + HEAD_START


def _unchecked(facts: Facts, entries: Entries, upstreams: Upstreams) -> tuple[str, ...]:
    status = facts.bundle.status
    if not facts.checks_tags or status.artifacts is None or status.phase not in ("Promoting", "Failed"):
        return ()
    unknown = any(image.digest is None or image.message is not None for image in status.artifacts)
    verified = {name for name, entry in entries.items() if entry.state == "Verified"}
    found = []
    for name, entry in entries.items():
        before = entries.keys() & upstreams.get(name, ())
        asks = entry.tags_checked_at is None and not Standing.of(entry).has_ended and entry.promoted_at is None
        # Environments without upstreams start with the digests that were found when the Bundle started.
        if asks and (before or unknown) and before <= verified:
            found.append(name)
    return tuple(found)


def _answer(facts: Facts, entries: Entries, upstreams: Upstreams) -> RequestAnswers | None:
    """Answer new requests; they may name any environment of the Pipeline, also those beyond the target."""
    if facts.next_order is None:
        return None
    if facts.bundle.spec.intent.graph == "manual":
        # Its Graph says where it goes, and no request goes further.
        upstreams = upstreams if facts.graph is not None else {}
    elif facts.pipeline is not None:
        intent = Intent(skip=facts.bundle.spec.intent.skip, rollback=facts.bundle.spec.intent.rollback)
        whole = facts.bundle.spec.model_copy(update={"intent": intent})
        with suppress(InvalidSpec):
            upstreams = find_route(facts.pipeline, facts.bundle.model_copy(update={"spec": whole})).upstreams
    situation = Situation(
        pipeline=facts.pipeline.metadata.name if facts.pipeline is not None else facts.label,
        upstreams=upstreams,
        entries=entries,
        others=facts.siblings,
        own=facts.own.with_standings(entries),
    )
    return answered(unseen(facts.bundle), situation, first=facts.next_order, now=facts.now)
