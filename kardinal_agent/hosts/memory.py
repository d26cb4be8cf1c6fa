"""Remember the recent writes to hosts, so that none is repeated: commit statuses, and texts of pull requests.

It also remembers how often a host has put off the merge of a promotion, since each further delay is longer, and which
proposal of a base branch is being brought up to date, for hosts that demand that before a merge.

A restart loses nothing: a new process reads from the host which statuses and texts are there, and writes only others.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import timedelta

import structlog

from kardinal.clock import Clock
from kardinal.objects import Key
from kardinal.runtime import Backoff, KeyMemory
from kardinal.runtime.retry import Failures
from kardinal.scm import CommitStatus, PullRequests, StatusesFull

__all__ = ["HostMemory"]

log = structlog.get_logger(__name__)

MAX_STATUSES = 10_000
TEXT_INTERVAL = 60.0
"""Seconds between two writes of the text of one pull request."""
TURN = 1800.0
"""Seconds for which a proposal keeps its turn: then another proposal of the base may be brought up to date, too."""


class HostMemory:
    """The memory of one agent about its hosts: failures, written statuses and texts, and turns of proposals."""

    def __init__(self, clock: Clock, *, backoff: Backoff, memory: KeyMemory) -> None:
        self._clock = clock
        self._put_off: Failures[Key] = Failures(backoff)
        self._statuses: OrderedDict[tuple[str, str, str], CommitStatus] = OrderedDict()
        self._full: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._texts: dict[Key, float] = memory.map()
        self._turns: dict[tuple[str, str], tuple[Key, float]] = {}
        memory.on_drop(self.end_turn)
        memory.on_drop(self.forget_merge)

    def told(self, url: str, commit: str, status: CommitStatus) -> bool:
        """Return whether the commit is known to have the status, or to accept no further one."""
        key = (url, commit, status.context)
        return key in self._full or self._statuses.get(key) == status

    async def status(
        self, url: str, pull_requests: PullRequests, commit: str, status: CommitStatus, *, urgent: bool = True
    ) -> None:
        """Write a status to a commit of the repository `url`, unless it is known to have it."""
        if self.told(url, commit, status):
            return
        key = (url, commit, status.context)
        self._statuses.pop(key, None)
        try:
            await pull_requests.set_status(commit, status, urgent=urgent)
        except StatusesFull as error:
            # A promotion does not depend on it: where a branch requires the status, the host refuses the merge.
            log.warning("a commit takes no further status", url=url, commit=commit, error=str(error))
            self._full[key] = None
        self._statuses[key] = status
        while len(self._full) > MAX_STATUSES:
            self._full.popitem(last=False)
        while len(self._statuses) > MAX_STATUSES:
            self._statuses.popitem(last=False)

    def text_delay(self, key: Key) -> timedelta:
        """Return how long the next write of the text of a promotion must wait; zero when it may happen now."""
        left = self._texts.get(key, -TEXT_INTERVAL) + TEXT_INTERVAL - self._clock.monotonic()
        return timedelta(seconds=max(left, 0.0))

    def note_text(self, key: Key) -> None:
        """Note that the text of a promotion's pull request is written now."""
        self._texts[key] = self._clock.monotonic()

    def merge_delay(self, key: Key) -> timedelta:
        """Note that the host has put off a merge once more, and return the time until the next try."""
        return timedelta(seconds=self._put_off.next_delay(key))

    def forget_merge(self, key: Key) -> None:
        """Reset the count of delays of a promotion's merge."""
        self._put_off.forget(key)

    def take_turn(self, base: tuple[str, str], key: Key) -> bool:
        """Give a promotion the turn to be brought up to date if no other one has it; return whether it has the turn.

        `base` is the URL of the repository and the branch.
        """
        now = self._clock.monotonic()
        holder, since = self._turns.get(base, (key, now))
        if holder != key and now - since < TURN:
            return False
        self._turns[base] = key, since if holder == key else now
        return True

    def end_turn(self, key: Key) -> None:
        """End the turn of a promotion, whose proposal is merged or waits for another reason."""
        self._turns = {base: turn for base, turn in self._turns.items() if turn[0] != key}
