"""Provider `local`: pull requests inside the bare repository itself.

    refs/kardinal/pull/<n>/head    the commit proposed
    refs/kardinal/pull/<n>/meta    a blob: the `Record`

Any number of processes use them at once, for example the controller and `kardinal pr merge`, coordinated only by the
locks of Git's references. A number belongs to the process that creates its head reference. A record changes only while
its reference is held, so a merge and a close cannot both happen. A killed process leaves something that the next one
completes: a number without a record is taken over by the next process that opens the same commit, and a merge whose
record was not written is found on the base branch by the next merge.

A clone does not fetch these references; `git fetch origin 'refs/kardinal/*:refs/kardinal/*'` does.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import NamedTuple

from kardinal.clock import Clock
from kardinal.git import (
    BranchNotFound,
    BranchSubscription,
    GitError,
    HeldRecord,
    RefMoved,
    Repository,
    TransientGitError,
)
from kardinal.objects.capabilities import Capabilities
from kardinal.scm.base import (
    Assignments,
    BranchAccess,
    CommitStatus,
    HostAccess,
    MergeGroup,
    MergeMethod,
    Need,
    NewPullRequest,
    OpenHead,
    PullRequest,
    PullRequests,
    PullRequestState,
    RequestObserver,
    ReviewApproval,
    Unassigned,
)
from kardinal.scm.comments import is_marked, marked
from kardinal.scm.errors import (
    HeadMoved,
    MergeBlocked,
    PullRequestEnded,
    PullRequestError,
    PullRequestNotFound,
    UnsupportedProvider,
)
from kardinal.scm.provider import Provider, RepositoryHost
from kardinal.scm.record import Record
from kardinal.scm.values import has_draft_title
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.git_names import is_own_label

__all__ = ["LOCAL", "local_pull_requests"]

_PREFIX = "refs/kardinal/pull/"
_BRANCHES = "refs/heads/"
_REF = re.compile(r"refs/kardinal/pull/([1-9][0-9]{0,8})/(head|meta)")
_ATTEMPTS = 100


class _Entry(NamedTuple):
    """One number: the proposed commit, and the record, which is missing if its opener has not written it yet."""

    head: str | None
    meta: str | None


def local_pull_requests(
    repository: Repository, *, clock: Clock, on_request: RequestObserver | None = None
) -> PullRequests:
    """Return the pull requests kept in a local repository."""
    try:
        repository.references  # noqa: B018 - asks whether there are any
    except GitError:
        raise UnsupportedProvider(
            f"provider local keeps pull requests in a repository on this machine, and {repository.url} is not",
            remedy="Use a local repository, or approval: auto without pr",
        ) from None
    return LocalPullRequests(repository, clock=clock, on_request=on_request)


class LocalPullRequests:
    """The pull requests of one repository on this machine."""

    def __init__(self, repository: Repository, *, clock: Clock, on_request: RequestObserver | None) -> None:
        self._repository = repository
        self._references = repository.references
        self._clock = clock
        self._observer = on_request
        self._records: dict[str, Record] = {}

    async def open(self, new: NewPullRequest) -> PullRequest:
        """Open a pull request, or adopt the open one with the same head."""
        async with self._observed("open"):
            if new.head == new.base:
                raise PullRequestError(f"branch {new.head} can not be merged into itself")
            proposed = await self._branch(new.head)
            record = Record.of(new, now=self._clock.now())
            meta = await self._references.store(record.encode())
            for _ in range(_ATTEMPTS):
                entries = await self._entries()
                for number, record_there in (await self._read(entries)).items():
                    if record_there.head == new.head and record_there.state == "open":
                        return await self._with_head(number, record_there)
                unfinished = self._unfinished(entries, proposed)
                claimed = unfinished or max(entries, default=0) + 1
                try:
                    if unfinished is None:
                        await self._references.update(_ref(claimed, "head"), old=None, new=proposed)
                    await self._references.update(_ref(claimed, "meta"), old=None, new=meta)
                except RefMoved:
                    continue  # another process took the number, or completed this one
                return self._shown(claimed, record, proposed)
            raise TransientGitError(f"{_ATTEMPTS} pull requests were opened by others in the meantime")

    async def get(self, number: int) -> PullRequest:
        """Return the pull request with this number."""
        async with self._observed("get"):
            return await self._with_head(number, await self._record(number))

    async def list(self, state: PullRequestState | None = None) -> list[PullRequest]:
        """Return all pull requests, or those in one state, by number."""
        async with self._observed("list"):
            records = await self._read(await self._entries())
            wanted = {number: record for number, record in records.items() if state in (None, record.state)}
            return [await self._with_head(number, record) for number, record in wanted.items()]

    async def find(self, head: str, *, base: str) -> PullRequest | None:
        """Return the newest pull request from branch `head` to branch `base`, in any state."""
        async with self._observed("find"):
            records = await self._read(await self._entries())
            numbers = [number for number, record in records.items() if (record.head, record.base) == (head, base)]
            return await self._with_head(numbers[-1], records[numbers[-1]]) if numbers else None

    async def update(
        self, number: int, *, title: str | None = None, body: str | None = None, labels: Sequence[str] | None = None
    ) -> PullRequest:
        """Change the given fields that differ."""
        async with self._observed("update"), self._held(number) as (held, record):
            given = {"title": title, "body": body, "labels": None if labels is None else _labels(record.labels, labels)}
            updated = record.changed(**{name: value for name, value in given.items() if value is not None})
            if updated != record:
                await held.write(updated.encode())
            return await self._with_head(number, updated)

    async def merge(
        self,
        number: int,
        *,
        by: str,
        method: MergeMethod | None = None,
        expected_head: str | None = None,
        message: CommitMessage | None = None,
    ) -> PullRequest:
        """Merge, unless it is merged already, and delete the proposal's branch; its commit keeps its own message."""
        if method is not None:
            raise UnsupportedProvider(
                "provider local merges by moving the branch forward, or as one commit",
                remedy="Leave git.mergeMethod out",
            )
        async with self._observed("merge"), self._held(number) as (held, record):
            if record.state == "closed":
                raise PullRequestEnded.closed(number)
            proposed = await self._proposed(number, record)
            if record.state == "open":
                if has_draft_title(record.title):
                    raise MergeBlocked(f"pull request {number} is a draft", remedy="Take the prefix off its title")
                if expected_head is not None and expected_head != proposed:
                    raise HeadMoved.away_from(expected_head, branch=record.head, at=proposed)
                landed = await self._repository.merge(record.base, proposed)
                merged = record.changed(
                    state="merged", merged_by=by, merge_commit=landed.commit, merged_at=self._clock.now()
                )
                await held.write(merged.encode())
            else:
                merged = record
            await self._drop_branch(merged.head, at=proposed)
            return self._shown(number, merged, proposed)

    async def bring_up_to_date(self, number: int, *, expected_head: str | None = None) -> None:
        """Refuse, because a base with other commits does not prevent a merge here."""
        raise UnsupportedProvider("provider local merges pull requests that are behind their base")

    async def close(self, number: int, *, by: str, comment: str) -> PullRequest:
        """Close without merging, unless it is closed already; the branch is kept."""
        async with self._observed("close"), self._held(number) as (held, record):
            if record.state == "closed":
                return await self._with_head(number, record)
            if record.state == "merged":
                raise PullRequestEnded.merged(number)
            comments = (*record.comments, comment) if comment else record.comments
            closed = record.changed(state="closed", closed_by=by, comments=comments)
            await held.write(closed.encode())
            return await self._with_head(number, closed)

    async def comment(self, number: int, body: str, *, marker: str) -> None:
        """Write the only comment with `marker`."""
        async with self._observed("comment"), self._held(number) as (held, record):
            text = marked(body, marker)
            others = [one for one in record.comments if not is_marked(one, marker)]
            if text not in record.comments:
                await held.write(record.changed(comments=(*others, text)).encode())

    async def assign(self, number: int, wanted: Assignments) -> Sequence[Unassigned]:
        """Add labels; a local repository has no users."""
        if wanted.reviewers or wanted.team_reviewers or wanted.assignees:
            raise UnsupportedProvider("provider local knows no users", remedy="Leave the people out of git.pullRequest")
        async with self._observed("labels"), self._held(number) as (held, record):
            labelled = record.changed(labels=tuple(dict.fromkeys((*record.labels, *wanted.labels))))
            if labelled != record:
                await held.write(labelled.encode())
        return ()

    async def approvals(self, number: int) -> Sequence[ReviewApproval]:
        """Return an empty list: a local repository has no reviews, and merging is the approval."""
        return ()

    async def closed_by(self, number: int) -> str | None:
        """Return the name given by the person who closed it."""
        return (await self._record(number)).closed_by

    async def heads(self) -> Sequence[OpenHead]:
        """Return every open pull request; all belong to this repository."""
        return [
            OpenHead(one.number, one.head_commit, one.head, one.base, own=True)
            for one in await self.list("open")
            if one.head_commit
        ]

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return an empty list, because a local repository has no merge queues."""
        return ()

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None:
        """Refuse, because files are requested only where there are commit statuses."""
        raise UnsupportedProvider("provider local keeps no commit statuses")

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return an empty mapping, because a local repository has no statuses."""
        return {}

    async def set_status(self, commit: str, status: CommitStatus, *, urgent: bool = True) -> bool:
        """Refuse, because a local repository has no statuses."""
        raise UnsupportedProvider("provider local keeps no commit statuses")

    async def access(self, needs: Collection[Need] = ()) -> HostAccess:
        """Return every right, because the permissions of the repository's files decide."""
        return HostAccess(read=True, push=True, merge_methods=frozenset())

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return no rights, because the permissions of the repository's files decide."""
        return BranchAccess()

    def subscribe(self, callback: Callable[[], None]) -> BranchSubscription:
        """Call `callback` when any reference of the repository may have moved."""
        return self._repository.watch(callback)

    async def _branch(self, branch: str) -> str:
        return (await self._repository.head(branch)).commit

    async def _entries(self) -> dict[int, _Entry]:
        """Return every number that is taken, in order."""
        found: dict[int, dict[str, str]] = {}
        for name, value in (await self._references.below(_PREFIX)).items():
            if match := _REF.fullmatch(name):
                found.setdefault(int(match[1]), {})[match[2]] = value
        return {number: _Entry(found[number].get("head"), found[number].get("meta")) for number in sorted(found)}

    async def _read(self, entries: dict[int, _Entry]) -> dict[int, Record]:
        """Return the records; each content is decoded once."""
        metas = {entry.meta: number for number, entry in entries.items() if entry.meta is not None}
        unknown = [meta for meta in metas if meta not in self._records]
        known = {meta: record for meta, record in self._records.items() if meta in metas}
        if unknown:
            contents = await self._references.contents(unknown)
            for meta, content in contents.items():
                # One damaged record must not hide the others; `get` with its number reports the damage.
                with suppress(PullRequestError):
                    known[meta] = Record.decode(content, number=metas[meta])
        self._records = known
        return {number: known[entry.meta] for number, entry in entries.items() if entry.meta in known}

    async def _record(self, number: int) -> Record:
        meta = await self._references.read(_ref(number, "meta"))
        if meta is None:
            raise self._unknown(number)
        return Record.decode((await self._references.contents([meta]))[meta], number=number)

    @asynccontextmanager
    async def _held(self, number: int) -> AsyncIterator[tuple[HeldRecord, Record]]:
        await self._record(number)
        async with self._references.hold(_ref(number, "meta")) as held:
            if held.content is None:
                raise self._unknown(number)
            yield held, Record.decode(held.content, number=number)

    async def _proposed(self, number: int, record: Record) -> str:
        """Return the commit that a pull request proposes.

        An open pull request follows its branch, to which a reviewer may have added.
        """
        name = _ref(number, "head")
        kept = await self._references.read(name)
        if kept is not None and record.state != "open":
            return kept
        try:
            current = await self._branch(record.head)
        except BranchNotFound:
            if kept is None:
                raise
            return kept
        if current != kept:
            await self._references.update(name, old=kept, new=current)
        return current

    async def _drop_branch(self, branch: str, *, at: str) -> None:
        try:
            await self._references.update(f"{_BRANCHES}{branch}", old=at, new=None)
        except RefMoved:
            return  # deleted already, or another process works on it

    def _unfinished(self, entries: dict[int, _Entry], proposed: str) -> int | None:
        unfinished = (number for number, entry in entries.items() if entry.meta is None and entry.head == proposed)
        return next(unfinished, None)

    async def _with_head(self, number: int, record: Record) -> PullRequest:
        kept = await self._references.read(_ref(number, "head"))
        if record.state == "open":
            kept = await self._references.read(f"{_BRANCHES}{record.head}") or kept
        return self._shown(number, record, kept)

    def _shown(self, number: int, record: Record, head: str | None) -> PullRequest:
        shown = record.pull_request(number, repository=self._repository.url)
        return replace(shown, head_commit=head)

    def _unknown(self, number: int) -> PullRequestNotFound:
        return PullRequestNotFound(
            f"{self._repository.url} has no pull request {number}", remedy="List them: kardinal pr list --all"
        )

    @asynccontextmanager
    async def _observed(self, endpoint: str) -> AsyncIterator[None]:
        status = "ok"
        try:
            yield
        except Exception as error:
            status = type(error).__name__
            raise
        finally:
            if self._observer is not None:
                self._observer(endpoint, status)


def _ref(number: int, part: str) -> str:
    return f"{_PREFIX}{number}/{part}"


def _labels(there: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of people, and `wanted`."""
    return tuple(dict.fromkeys([*(label for label in there if not is_own_label(label)), *wanted]))


def _connect(target: RepositoryHost) -> PullRequests:
    if target.repository is None:
        raise UnsupportedProvider(f"provider local needs the repository {target.url} itself")
    return local_pull_requests(target.repository, clock=target.clock, on_request=target.on_request)


LOCAL = Provider(
    name="local",
    capabilities=Capabilities(pull_requests=True, local=True, pull_request_fields=frozenset({"labels", "draft"})),
    connect=_connect,
)
