"""The protocol of pull requests.

One protocol stands for all providers. It says only what promotion needs: open or adopt, look, merge, close, comment, be
woken. Every operation is safe to repeat after a crash: opening adopts the open pull request of the same head, merging
what is merged and closing what is closed changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from kardinal.git import Subscription

__all__ = ["NewPullRequest", "PullRequest", "PullRequestState", "PullRequests", "RequestObserver"]

PullRequestState = Literal["open", "merged", "closed"]

RequestObserver = Callable[[str, str], None]
"""Called as (endpoint, status) after each request; status is `ok` or the name of the error."""


@dataclass(frozen=True, slots=True)
class NewPullRequest:
    """A proposal to merge branch `head` into branch `base`, and the promotion it belongs to."""

    title: str
    body: str
    head: str
    base: str
    labels: tuple[str, ...] = ()
    environment: str = ""
    bundle: str = ""
    pipeline: str = ""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as its provider knows it at one moment."""

    number: int
    url: str
    title: str
    body: str
    head: str
    base: str
    state: PullRequestState
    created_at: datetime
    labels: tuple[str, ...] = ()
    comments: tuple[str, ...] = ()
    merged_by: str | None = None
    merge_commit: str | None = None
    closed_by: str | None = None
    environment: str = ""
    bundle: str = ""
    pipeline: str = ""


class PullRequests(Protocol):
    """The pull requests of one repository."""

    async def open(self, new: NewPullRequest) -> PullRequest:
        """Open a pull request, or adopt the open one with the same head."""
        ...

    async def get(self, number: int) -> PullRequest: ...

    async def list(self, state: PullRequestState | None = None) -> list[PullRequest]:
        """All pull requests, or those in one state, by number."""
        ...

    async def find(self, head: str) -> PullRequest | None:
        """Return the newest pull request of branch `head`, in whatever state."""
        ...

    async def merge(self, number: int, *, by: str) -> PullRequest: ...

    async def close(self, number: int, *, by: str, comment: str) -> PullRequest: ...

    async def comment(self, number: int, body: str) -> PullRequest: ...

    def subscribe(self, callback: Callable[[], None]) -> Subscription:
        """Call back when something may have changed; it says only that another look is worth it."""
        ...
