"""Pull requests at a host: one workflow over the calls in which hosts differ.

`HostedPullRequests` decides the order of calls, and the meaning of what is read between them: an open pull request is
adopted, a closed one is not closed again, a merge is believed only when the host shows it. A provider implements
`HostCalls` and `MergeCalls`, each call of which is a request or two, and keeps no rule of its own about their order.

Provider `local` has no such calls: its records are in Git, where one transaction reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kardinal.git import BranchSubscription
from kardinal.scm.base import (
    Assignments,
    BranchAccess,
    CommitStatus,
    HostAccess,
    MergeGroup,
    MergeMethod,
    Need,
    NewPullRequest,
    NoSubscription,
    OpenHead,
    PullRequest,
    PullRequestState,
    ReviewApproval,
    Unassigned,
)
from kardinal.scm.comments import marked
from kardinal.scm.errors import HeadMoved, MergeBlocked, PullRequestEnded, UnknownAnswer
from kardinal.scm.http import Priority
from kardinal.scm.values import same_text
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.git_names import is_own_label

__all__ = ["Comment", "HostCalls", "HostedPullRequests", "MergeCalls", "Reported"]


class Reported(Protocol):
    """A pull request as the API of a host reports it."""

    def pull_request(self) -> PullRequest:
        """Return the pull request in kardinal's terms."""
        ...


One = TypeVar("One", bound=Reported)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment at a host, and its text with the marker."""

    id: int
    body: str


class HostCalls(Protocol[One]):
    """The calls about the pull requests of one repository. Where a call says no more, it does as in `PullRequests`."""

    noun: str
    """The host's word for a pull request, such as `merge request`."""

    @property
    def host(self) -> str:
        """Return the name of the host for messages."""
        ...

    async def create(self, new: NewPullRequest) -> PullRequest | None:
        """Open a pull request; return None if the host has an open one of the same branches."""
        ...

    async def adopted(self, found: PullRequest, new: NewPullRequest) -> PullRequest:
        """Return the open pull request of the same branches, with the labels of `new` if the host adds them."""
        ...

    async def get(self, operation: str, number: int) -> One:
        """Return one pull request; `operation` is the one that needs it."""
        ...

    async def listed(self, state: PullRequestState | None) -> Sequence[PullRequest]:
        """Return pull requests in any order, among them all in `state`."""
        ...

    async def heads(self) -> Sequence[OpenHead]:
        """Return the heads of all open pull requests, in any order."""
        ...

    async def find(self, head: str, *, base: str) -> PullRequest | None: ...

    async def change(
        self, found: One, *, texts: Mapping[str, str], add: Sequence[str], remove: Sequence[str]
    ) -> PullRequest:
        """Change `title` and `body`, add labels and remove labels, each where there is something to change."""
        ...

    async def mark_closed(self, number: int) -> None:
        """Close an open pull request."""
        ...

    async def own_comment(self, number: int, *, marker: str) -> Comment | None:
        """Return the comment with `marker` of the credential's own user; None if there is none."""
        ...

    async def add_comment(self, number: int, text: str) -> None: ...

    async def edit_comment(self, number: int, comment: Comment, text: str) -> None: ...

    async def assign(self, number: int, wanted: Assignments) -> Sequence[Unassigned]: ...

    async def merge_groups(self) -> Sequence[MergeGroup]: ...

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None: ...

    async def approvals(self, number: int) -> Sequence[ReviewApproval]: ...

    async def closed_by(self, number: int) -> str | None: ...

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]: ...

    async def set_status(self, commit: str, status: CommitStatus, priority: Priority) -> bool: ...

    async def access(self, needs: Collection[Need] = ()) -> HostAccess: ...

    async def branch_access(self, branch: str) -> BranchAccess: ...


class MergeCalls(Protocol[One]):
    """The calls of a merge, all with the priority of one."""

    async def get(self, number: int) -> One:
        """Return one pull request."""
        ...

    async def prepare(self, found: One, *, method: MergeMethod | None, expected_head: str | None) -> MergeMethod | None:
        """Return the method to merge by; raises what holds the merge before it is asked for."""
        ...

    async def send(
        self, found: One, *, method: MergeMethod | None, expected_head: str | None, message: CommitMessage | None
    ) -> bool:
        """Ask the host to merge; return whether it answers that the head has moved. Raises `MergeBlocked`."""
        ...

    def why_open(self, found: One, *, blocked: MergeBlocked | None, moved: bool) -> Exception | None:
        """Return what a pull request that is still open says about its merge; `blocked` is what the host answered."""
        ...

    async def clean_up(self, merged: PullRequest) -> None:
        """Delete the branch of a merged pull request where the host does not."""
        ...

    async def bring_up_to_date(self, number: int, *, expected_head: str | None) -> None: ...


class HostedPullRequests(Generic[One]):
    """The pull requests of one repository at a host."""

    def __init__(self, calls: HostCalls[One], merges: MergeCalls[One]) -> None:
        self._calls = calls
        self._merges = merges

    async def open(self, new: NewPullRequest) -> PullRequest:
        """Open a pull request, or adopt the open one with the same head."""
        opened = await self._calls.create(new)
        if opened is not None:
            return opened
        found = await self._calls.find(new.head, base=new.base)
        if found is None or found.state != "open":
            raise UnknownAnswer(f"{self._calls.host} has a {self._calls.noun} of {new.head}, and does not show it")
        return await self._calls.adopted(found, new)

    async def get(self, number: int) -> PullRequest:
        """Return one pull request."""
        return (await self._calls.get("get", number)).pull_request()

    async def list(self, state: PullRequestState | None = None) -> list[PullRequest]:
        """Return all pull requests, or those in one state, by number."""
        found = await self._calls.listed(state)
        return sorted((one for one in found if state in (None, one.state)), key=lambda one: one.number)

    async def heads(self) -> Sequence[OpenHead]:
        """Return every open pull request, including those from forks, by number."""
        return sorted((one for one in await self._calls.heads() if one.commit), key=lambda one: one.number)

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return the commits that merge queues are testing."""
        return await self._calls.merge_groups()

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None:
        """Return the paths that a commit proposes to change."""
        return await self._calls.changed_files(commit, base=base, number=number)

    async def find(self, head: str, *, base: str) -> PullRequest | None:
        """Return the newest pull request from branch `head` of this repository to branch `base`."""
        return await self._calls.find(head, base=base)

    async def update(
        self, number: int, *, title: str | None = None, body: str | None = None, labels: Sequence[str] | None = None
    ) -> PullRequest:
        """Change the given fields that differ."""
        found = await self._calls.get("update", number)
        there = found.pull_request()
        texts = {
            name: text
            for name, text, old in (("title", title, there.title), ("body", body, there.body))
            if text is not None and not same_text(text, old)
        }
        wanted = there.labels if labels is None else labels
        add = [name for name in wanted if name not in there.labels]
        remove = [name for name in there.labels if is_own_label(name) and name not in wanted]
        return await self._calls.change(found, texts=texts, add=add, remove=remove)

    async def assign(self, number: int, wanted: Assignments) -> Sequence[Unassigned]:
        """Add people and labels."""
        return await self._calls.assign(number, wanted)

    async def comment(self, number: int, body: str, *, marker: str) -> None:
        """Write the only comment with `marker`, among those of the credential's own user."""
        found = await self._calls.own_comment(number, marker=marker)
        text = marked(body, marker)
        if found is None:
            await self._calls.add_comment(number, text)
        elif not same_text(found.body, text):
            await self._calls.edit_comment(number, found, text)

    async def merge(
        self,
        number: int,
        *,
        by: str,
        method: MergeMethod | None = None,
        expected_head: str | None = None,
        message: CommitMessage | None = None,
    ) -> PullRequest:
        """Merge, unless it is merged already. `by` is ignored, because the credential's user merges."""
        found = await self._merges.get(number)
        shown = found.pull_request()
        if shown.state == "open":
            if expected_head is not None and expected_head != shown.head_commit:
                raise HeadMoved.away_from(expected_head, branch=shown.head, at=shown.head_commit)
            way = await self._merges.prepare(found, method=method, expected_head=expected_head)
            shown = await self._merged(found, method=way, expected_head=expected_head, message=message)
        if shown.state == "closed":
            raise PullRequestEnded.closed(number, noun=self._calls.noun)
        return shown

    async def bring_up_to_date(self, number: int, *, expected_head: str | None = None) -> None:
        """Make the host bring the commits of the base into the head."""
        await self._merges.bring_up_to_date(number, expected_head=expected_head)

    async def close(self, number: int, *, by: str, comment: str) -> PullRequest:
        """Close without merging, unless it is closed already."""
        found = (await self._calls.get("close", number)).pull_request()
        if found.state == "open":
            if comment:
                await self.comment(number, comment, marker="closed")
            await self._calls.mark_closed(number)
            found = (await self._calls.get("close", number)).pull_request()
        if found.state == "merged":
            raise PullRequestEnded.merged(number, noun=self._calls.noun)
        if found.state == "open":
            raise UnknownAnswer(f"{self._calls.host} answered success to close, and did not close")
        return found

    async def approvals(self, number: int) -> Sequence[ReviewApproval]:
        """Return the approvals that count, one per person, by time."""
        return await self._calls.approvals(number)

    async def closed_by(self, number: int) -> str | None:
        """Return the name of the person who last closed a pull request."""
        return await self._calls.closed_by(number)

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return the newest status of each context of a commit."""
        return await self._calls.statuses(commit)

    async def set_status(self, commit: str, status: CommitStatus, *, urgent: bool = True) -> bool:
        """Write a status unless the commit has it already."""
        return await self._calls.set_status(commit, status, Priority.OPEN if urgent else Priority.POLL)

    async def access(self, needs: Collection[Need] = ()) -> HostAccess:
        """Return the rights of the credential on the repository."""
        return await self._calls.access(needs)

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return the rights of the credential on a branch."""
        return await self._calls.branch_access(branch)

    def subscribe(self, callback: Callable[[], None]) -> BranchSubscription:
        """Return a subscription without effect, because hosts send webhooks, and their lists are polled."""
        return NoSubscription()

    async def _merged(
        self, found: One, *, method: MergeMethod | None, expected_head: str | None, message: CommitMessage | None
    ) -> PullRequest:
        """Ask the host to merge, and return what it then shows."""
        before = found.pull_request()
        blocked: MergeBlocked | None = None
        moved = False
        try:
            moved = await self._merges.send(found, method=method, expected_head=expected_head, message=message)
        except MergeBlocked as error:
            blocked = error  # or merged by an earlier request whose answer was lost
        after = await self._merges.get(before.number)
        shown = after.pull_request()
        if shown.state == "open":
            if why := self._merges.why_open(after, blocked=blocked, moved=moved) or blocked:
                raise why
            if moved:
                raise HeadMoved(f"branch {shown.head} moved to {shown.head_commit} while it was to be merged")
            raise UnknownAnswer(f"{self._calls.host} answered success to merge, and did not merge")
        if shown.state == "merged":
            await self._merges.clean_up(shown)
        return shown
