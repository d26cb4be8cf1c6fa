"""Write commit statuses to pull requests of others, for branches that require the status `kardinal`.

A pull request that reaches no environment gets `success`. A pull request that reaches environments gets the answer of
their current gates, which the controller writes to the status of the Pipelines. The same applies to the commits that a
merge queue tests. A commit is compared with every environment of the repository on every branch, because the base of a
pull request can be changed after its commit has got a status.

Strangers open pull requests from forks. The texts of a pull request and the names of its branches are therefore
ignored, and the files of the commit decide, not the ones that the pull request shows at the moment. A commit that
several pull requests propose gets one status for all of them. The head of one of kardinal's own proposals is left to
its promotion even if it is the head of another pull request, too: otherwise that one, with a different base, could get
it `success`.

The work is bounded: one look makes at most `WORK` requests besides its list, newest pull requests first; a status that
is written or known already costs none. If the files of a commit cannot be listed, it counts as touching all files.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import structlog

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key
from kardinal.objects.naming import short_hash
from kardinal.promotion.api import Pipeline
from kardinal.promotion.policy.binding import Place
from kardinal.scm import (
    AccessDenied,
    CommitStatus,
    HostUnavailable,
    MergeGroup,
    OpenHead,
    PullRequestError,
    RateLimited,
)
from kardinal.tree.git_names import PROPOSALS
from kardinal_agent.hosts.included import Included, IncludedDirectories
from kardinal_agent.hosts.memory import HostMemory
from kardinal_agent.hosts.statuses import EnvironmentSubject, statuses_of
from kardinal_agent.hosts.touched import touched
from kardinal_agent.remotes import Remote

__all__ = ["Group", "OtherPullRequests", "StepHolds", "answers"]

WORK = 100
"""The most requests of one look for files and statuses; a status counts as one, though it is read before its write."""
AGAIN = 60.0
"""Seconds until the next look if this one left work, a commit had a failure, or a merge queue waits."""
FAILURES = 3
"""The failures of one commit after which it counts as touching all files; unanswered requests that end a look."""
REFUSED = 3600.0
"""Seconds for which no more requests are made for such a commit, or for its files."""
MAX_COMMITS = 20_000
"""The most commits that are remembered."""

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_UNKNOWN = "the host does not list all changed files, so every environment counts"

K = TypeVar("K")
V = TypeVar("V")

StepHolds = Callable[[JsonObject], Sequence[str]]
"""Returns the reasons for which a promotion is held now; empty if it is not."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Group:
    """The Pipelines of one namespace with `statusOnOthers` on one repository; `waiting` are their PromotionSteps."""

    repository: Key
    pipelines: Sequence[Pipeline]
    waiting: Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit that gets statuses, and the base branches of its pull requests, each with the number of one of them."""

    name: str
    bases: Mapping[str, int]
    group: MergeGroup | None = None


@dataclass(frozen=True, slots=True)
class _Reached:
    """The environments that a commit reaches, compared with one branch; `shape` is a hash of the compared places."""

    shape: str
    subjects: tuple[EnvironmentSubject, ...]
    unknown: bool


@dataclass(frozen=True, slots=True)
class _Failed:
    """The failures of one commit, and the time of the next try; `listing` if its files could not be listed."""

    until: float
    count: int
    listing: bool


@dataclass(slots=True)
class _Look:
    """One look at a repository, with its remaining budget of requests.

    `branches` are those of the environments. `shape` is a hash of the places that commits are compared with.
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
        """Take one request from the budget and return True; without budget, note that work is left."""
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
        """Write the missing statuses; return whether another look is needed in `AGAIN` seconds.

        No status is written until the gates of every Pipeline have been asked since its last change.
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

    def _promoted(self, group: Group, queued: set[tuple[str, int]]) -> Mapping[EnvironmentSubject, Sequence[str]]:
        """Return the environments whose own proposal is in the merge queue, with the holds of its promotion."""
        found = {}
        for step in group.waiting:
            spec = step["spec"]
            noted = step["status"].get("pullRequest") or {}
            if (spec["git"].get("branch"), noted.get("number")) in queued:
                found[EnvironmentSubject(spec["pipeline"], spec["environment"])] = self._holds(step)
        return found

    async def _tell_one(self, look: _Look, commit: _Commit, held: Mapping[EnvironmentSubject, Sequence[str]]) -> None:
        failed = self._failed.get((look.repository, commit.name))
        waits = failed is not None and failed.until > self._clock.monotonic()
        given_up = waits and failed is not None and failed.listing and failed.count >= FAILURES
        if waits and not given_up:
            look.more = True
            return
        listing = True
        before = look.work
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
        # The last status is the aggregate that branches require: it is written first.
        for status in reversed(statuses):
            if not self._memory.told(url, commit, status) and look.may_work():
                await self._memory.status(url, look.remote.proposals, commit, status, urgent=False)

    async def _reached(self, look: _Look, commit: _Commit, *, given_up: bool) -> _Reached | None:
        """Return the environments that a commit reaches; None if the budget of the look is used up."""
        subjects = dict[EnvironmentSubject, None]()
        unknown = False
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
        """Note a failure of a commit; raise the error if it is about the credential or the host."""
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


def answers(pipelines: Iterable[Pipeline], *, now: datetime) -> dict[EnvironmentSubject, Sequence[str]] | None:
    """Return the reasons by held environment; None until the gates of all Pipelines have been asked."""
    found: dict[EnvironmentSubject, Sequence[str]] = {}
    for pipeline in pipelines:
        answer = pipeline.status.other_changes
        if answer is None or answer.observed_generation != pipeline.metadata.generation:
            return None
        if answer.until is not None and answer.until <= now:
            return None
        for one in answer.held:
            found[EnvironmentSubject(pipeline.metadata.name, one.environment)] = (f"{one.environment}: {one.reason}",)
    return found


def _proposed(heads: Sequence[OpenHead]) -> Iterator[_Commit]:
    """Yield the heads of pull requests, newest first, each with all of its base branches."""
    bases: dict[str, dict[str, int]] = {}
    for head in sorted(heads, key=lambda one: one.number, reverse=True):
        bases.setdefault(head.commit, {}).setdefault(head.base, head.number)
    return (_Commit(commit, found) for commit, found in bases.items())


def _in_queue(queue: Sequence[MergeGroup], heads: Sequence[OpenHead]) -> Iterator[_Commit]:
    """Yield the commits that merge queues test, except those that are the head of a pull request as well."""
    proposed = {head.commit for head in heads}
    return (_Commit(one.commit, {one.base: one.number}, one) for one in queue if one.commit not in proposed)


def _compared_with(look: _Look, commit: _Commit) -> Mapping[str, int]:
    """Return the branches with which a commit is compared, each with the number of a pull request.

    These are its base branches and, if one of them is not the branch of an environment, the branches of all
    environments: when the pull request is sent there later, it brings along all changes of its present base.
    """
    strange = [number for base, number in commit.bases.items() if base not in look.branches]
    if not strange or not look.remote.capabilities.compares_branches:
        return commit.bases
    return {**dict.fromkeys(look.branches, strange[0]), **commit.bases}


def _compared(look: _Look, files: Sequence[str] | None) -> _Reached:
    subjects = (EnvironmentSubject(place.pipeline, place.environment) for place in touched(look.places, files))
    return _Reached(look.shape, tuple(subjects), files is None)


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    """Keep a value, and drop the oldest ones beyond `MAX_COMMITS`."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > MAX_COMMITS:
        kept.popitem(last=False)
