"""Remember what hosts were told lately, so that nothing is told twice: commit statuses, and texts of pull requests.

Remembered as well is how often a merge was put off in a row: each time it is asked for later. And which proposal of a
base is brought up to date now, where the host wants that before a merge.

It is a memory and no record: a process that starts asks the host what it has, and writes nothing that it has already.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import timedelta

import structlog

from kardinal.objects import Key
from kardinal.runtime import Backoff, Clock
from kardinal.runtime.retry import Failures
from kardinal.scm import CommitStatus, PullRequests, StatusesFull

__all__ = ["HostMemory"]

log = structlog.get_logger(__name__)

MAX_STATUSES = 10_000
TEXT_INTERVAL = 60.0
"""Seconds between two writes of the text of one pull request."""
TURN = 1800.0
"""Seconds that a proposal has to be merged before another one of its base is brought up to date as well."""


class HostMemory:
    """The memory of one agent about its hosts."""

    def __init__(self, clock: Clock, *, backoff: Backoff) -> None:
        self._clock = clock
        self._put_off: Failures[Key] = Failures(backoff)
        self._statuses: OrderedDict[tuple[str, str, str], CommitStatus] = OrderedDict()
        self._full: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._texts: dict[Key, float] = {}
        self._turns: dict[tuple[str, str], tuple[Key, float]] = {}

    def told(self, url: str, commit: str, status: CommitStatus) -> bool:
        """Return whether the host is known to have a status, or to take no further one."""
        key = (url, commit, status.context)
        return key in self._full or self._statuses.get(key) == status

    async def status(
        self, url: str, pull_requests: PullRequests, commit: str, status: CommitStatus, *, urgent: bool = True
    ) -> None:
        """Have a commit of the repository `url` carry a status."""
        if self.told(url, commit, status):
            return
        key = (url, commit, status.context)
        self._statuses.pop(key, None)
        try:
            await pull_requests.set_status(commit, status, urgent=urgent)
        except StatusesFull as error:
            # No promotion depends on the statuses of a commit; the host holds a merge that does.
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
        """Remember that the text of a promotion is written now."""
        self._texts[key] = self._clock.monotonic()

    def merge_delay(self, key: Key) -> timedelta:
        """Return how long to wait before a merge that the host has put off once more is asked for again."""
        return timedelta(seconds=self._put_off.next_delay(key))

    def forget_merge(self, key: Key) -> None:
        """Begin anew to count how often the merge of a promotion is put off."""
        self._put_off.forget(key)

    def take_turn(self, base: tuple[str, str], key: Key) -> bool:
        """Return whether a promotion is the one whose proposal is brought up to date now; it is from then on.

        `base`: the URL of the repository and the branch.
        """
        now = self._clock.monotonic()
        holder, since = self._turns.get(base, (key, now))
        if holder != key and now - since < TURN:
            return False
        self._turns[base] = key, since if holder == key else now
        return True

    def end_turn(self, key: Key) -> None:
        """Let another proposal be brought up to date: that of this promotion is merged, or waits for something else."""
        self._turns = {base: turn for base, turn in self._turns.items() if turn[0] != key}

    def forget(self, key: Key) -> None:
        """Drop what is known of a promotion that has ended."""
        self.end_turn(key)
        self._texts.pop(key, None)
        self._put_off.forget(key)
