"""Tell a host about the pull requests that no promotion has opened, for branches that require the status `kardinal`.

A pull request that reaches no environment gets success; one that does gets the answer of the gates of today, which the
controller writes into the status of the Pipelines. The same holds for the commits that a merge queue tests. A commit is
compared with every environment of the repository, on whatever branch: a pull request can be sent to another branch
after its commit was told about.

Strangers open pull requests from forks, so nothing is taken from their texts or the names of their branches, and the
files of a commit decide, not those that a pull request shows at the moment. A commit that several pull requests propose
gets one answer for all of them. A commit that is the head of a proposal of kardinal's is left to its promotion,
whatever else it is the head of: a pull request that goes elsewhere could call it success.

Work is bounded: a look does at most `WORK` requests besides its list, newest pull requests first, and what is told or
known already costs none. Files that cannot be listed count as all files.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import structlog

from kardinal.api import Pipeline
from kardinal.api.names import PROPOSALS
from kardinal.objects import JsonObject, Key
from kardinal.objects.naming import short_hash
from kardinal.policy.binding import Place
from kardinal.runtime import Clock
from kardinal.scm import (
    AccessDenied,
    CommitStatus,
    HostUnavailable,
    MergeGroup,
    OpenHead,
    PullRequestError,
    RateLimited,
)
from kardinal_agent.hosts.included import Included, IncludedDirectories
from kardinal_agent.hosts.memory import HostMemory
from kardinal_agent.hosts.statuses import Subject, statuses_of
from kardinal_agent.hosts.touched import touched
from kardinal_agent.remotes import Remote

__all__ = ["Group", "OtherPullRequests", "StepHolds", "answers"]

WORK = 100
"""Requests of one look for files and statuses; a status is one, though it is read before it is written."""
AGAIN = 60.0
"""Seconds until more is done where a look was not enough, a commit had a failure, or a merge queue waits."""
FAILURES = 3
"""Failures of one commit after which its files count as all, and requests without an answer that end a look."""
REFUSED = 3600.0
"""Seconds for which a commit is left alone, or its files are not asked for, after that."""
MAX_COMMITS = 20_000
"""Commits that are remembered."""

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_UNKNOWN = "the host does not list all changed files, so every environment counts"

K = TypeVar("K")
V = TypeVar("V")

StepHolds = Callable[[JsonObject], Sequence[str]]
"""Return what holds a promotion now."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Group:
    """The Pipelines of one namespace on one repository that ask for statuses; `waiting` are PromotionSteps there."""

    repository: Key
    pipelines: Sequence[Pipeline]
    waiting: Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit to tell something about, and the branches it goes to, each with the number of a pull request."""

    name: str
    bases: Mapping[str, int]
    group: MergeGroup | None = None


@dataclass(frozen=True, slots=True)
class _Reached:
    """The environments that a commit reaches on one branch; `shape` is of all that were compared."""

    shape: str
    subjects: tuple[Subject, ...]
    unknown: bool


@dataclass(frozen=True, slots=True)
class _Failed:
    """Failures of one commit, and when it is looked at again; `listing`: its files could not be listed."""

    until: float
    count: int
    listing: bool


@dataclass(slots=True)
class _Look:
    """One look: where, at what, what it has done, and whether something is left.

    `branches`: those of the environments. `shape`: of all that commits are compared with.
    """

    remote: Remote
    repository: Key
    places: Mapping[Place, Included]
    branches: Sequence[str]
    shape: str
    work: int = 0
    silent: int = 0
    more: bool = False

    def may_work(self) -> bool:
        """Take one request of the budget; where none is left, something is."""
        self.more = self.more or self.work >= WORK
        self.work += 1
        return self.work <= WORK


class OtherPullRequests:
    """The memory of one agent about the pull requests of others."""

    def __init__(self, memory: HostMemory, *, holds: StepHolds, clock: Clock) -> None:
        self._memory = memory
        self._holds = holds
        self._clock = clock
        self._included = IncludedDirectories()
        self._files: OrderedDict[tuple[Key, str, str], _Reached] = OrderedDict()
        self._failed: OrderedDict[tuple[Key, str], _Failed] = OrderedDict()

    async def tell(self, remote: Remote, group: Group, heads: Sequence[OpenHead]) -> bool:
        """Bring statuses up to date; return whether another look is worth it in `AGAIN` seconds.

        Nothing is told while the gates of a Pipeline have not answered since it changed.
        """
        held = answers(group.pipelines, now=self._clock.now())
        if held is None:
            return False
        places = await self._included.of(group.repository, remote.repository, group.pipelines)
        branches = sorted({place.branch for place in places})
        look = _Look(remote, group.repository, places, branches, short_hash(repr(places)))
        queue = await remote.proposals.merge_groups()
        own = {head.commit for head in heads if head.own and head.branch.casefold().startswith(PROPOSALS)}
        queued = {(one.base, one.number) for one in queue}
        for commit in (*_in_queue(queue, heads), *_proposed(heads)):
            if commit.name in own or not _COMMIT.fullmatch(commit.name):
                continue
            promoted = self._promoted(group, queued) if commit.group is not None else {}
            await self._tell_one(look, commit, {**held, **promoted})
        return look.more or bool(queue)

    def _promoted(self, group: Group, queued: set[tuple[str, int]]) -> Mapping[Subject, Sequence[str]]:
        """Return the answer for environments whose own proposal is in the queue: that of its promotion."""
        found = {}
        for step in group.waiting:
            spec, noted = step["spec"], step["status"].get("pullRequest") or {}
            if (spec["git"].get("branch"), noted.get("number")) in queued:
                found[Subject(spec["pipeline"], spec["environment"])] = self._holds(step)
        return found

    async def _tell_one(self, look: _Look, commit: _Commit, held: Mapping[Subject, Sequence[str]]) -> None:
        failed = self._failed.get((look.repository, commit.name))
        waits = failed is not None and failed.until > self._clock.monotonic()
        given_up = waits and failed is not None and failed.listing and failed.count >= FAILURES
        if waits and not given_up:
            look.more = True
            return
        listing, before = True, look.work
        try:
            reached = await self._reached(look, commit, given_up=given_up)
            listing = False
            if reached is not None:
                holds = {subject: held.get(subject, ()) for subject in reached.subjects}
                statuses = statuses_of(holds, unknown=_UNKNOWN if reached.unknown else "")
                await self._write(look, commit.name, statuses)
        except PullRequestError as error:
            self._note_failure(look, commit.name, error, listing=listing)
        else:
            look.silent = look.silent if look.work == before else 0
            if not given_up:
                self._failed.pop((look.repository, commit.name), None)

    async def _write(self, look: _Look, commit: str, statuses: Sequence[CommitStatus]) -> None:
        url = look.remote.repository.url
        # The one that branches require is the last of them, and the first to be right.
        for status in reversed(statuses):
            if not self._memory.told(url, commit, status) and look.may_work():
                await self._memory.status(url, look.remote.proposals, commit, status, urgent=False)

    async def _reached(self, look: _Look, commit: _Commit, *, given_up: bool) -> _Reached | None:
        """Return the environments that a commit reaches; None when the look is over."""
        subjects, unknown = dict[Subject, None](), False
        for base, number in _compared_with(look, commit).items():
            key = (look.repository, commit.name, base)
            reached = self._files.get(key)
            if reached is None or reached.shape != look.shape:
                if given_up:
                    reached = _compared(look, None)
                elif look.may_work():
                    files = await look.remote.proposals.changed_files(commit.name, base=base, number=number)
                    reached = _compared(look, files)
                    _keep(self._files, key, reached)
                else:
                    return None
            subjects.update(dict.fromkeys(reached.subjects))
            unknown = unknown or reached.unknown
        return _Reached(look.shape, tuple(subjects), unknown)

    def _note_failure(self, look: _Look, commit: str, error: PullRequestError, *, listing: bool) -> None:
        """Leave a commit alone for a while; raise what is about the credential or the host."""
        status = getattr(error, "status", None)
        look.silent += isinstance(error, HostUnavailable) and status is None
        key = (look.repository, commit)
        before = self._failed.get(key)
        count = before.count + 1 if before is not None else 1
        passing = error.transient and not error.blocked
        short = passing and count < FAILURES
        failed = _Failed(self._clock.monotonic() + (AGAIN if short else REFUSED), count, listing)
        if isinstance(error, RateLimited | AccessDenied):
            raise error
        _keep(self._failed, key, failed)
        look.more = look.more or passing
        log.warning("a pull request was not told about", commit=commit, error=str(error))
        if look.silent >= FAILURES:
            raise error


def answers(pipelines: Iterable[Pipeline], *, now: datetime) -> dict[Subject, Sequence[str]] | None:
    """Return what holds changes to each environment that is held; None while it is not known of all Pipelines."""
    found: dict[Subject, Sequence[str]] = {}
    for pipeline in pipelines:
        answer = pipeline.status.other_changes
        if answer is None or answer.observed_generation != pipeline.metadata.generation:
            return None
        if answer.until is not None and answer.until <= now:
            return None
        for one in answer.held:
            found[Subject(pipeline.metadata.name, one.environment)] = (f"{one.environment}: {one.reason}",)
    return found


def _proposed(heads: Sequence[OpenHead]) -> Iterator[_Commit]:
    """Yield the heads of pull requests, newest first, with all the branches that each is to be merged into."""
    bases: dict[str, dict[str, int]] = {}
    for head in sorted(heads, key=lambda one: one.number, reverse=True):
        bases.setdefault(head.commit, {}).setdefault(head.base, head.number)
    return (_Commit(commit, found) for commit, found in bases.items())


def _in_queue(queue: Sequence[MergeGroup], heads: Sequence[OpenHead]) -> Iterator[_Commit]:
    """Yield the commits that merge queues test; one that is the head of a pull request is told as such."""
    proposed = {head.commit for head in heads}
    return (_Commit(one.commit, {one.base: one.number}, one) for one in queue if one.commit not in proposed)


def _compared_with(look: _Look, commit: _Commit) -> Mapping[str, int]:
    """Return the branches from which the files of a commit are listed, each with the number of a pull request.

    To the branches that it goes to come those of the environments where it goes elsewhere: what that branch already
    has of changes to an environment would come along if the pull request were sent there.
    """
    strange = [number for base, number in commit.bases.items() if base not in look.branches]
    if not strange or not look.remote.capabilities.compares_branches:
        return commit.bases
    return {**dict.fromkeys(look.branches, strange[0]), **commit.bases}


def _compared(look: _Look, files: Sequence[str] | None) -> _Reached:
    subjects = (Subject(place.pipeline, place.environment) for place in touched(look.places, files))
    return _Reached(look.shape, tuple(subjects), files is None)


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    """Keep a value, and forget the oldest beyond `MAX_COMMITS`."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > MAX_COMMITS:
        kept.popitem(last=False)
