"""Remember which revisions of a repository contain which commits.

A GitOps tool reports the revision that it has applied; the mirror knows whether that revision contains our commit. Such
an answer never changes, so it is kept. A revision that the mirror does not have may be fetched later, so the mirror is
asked again, but not at every change of the object that reports the revision.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from datetime import timedelta
from typing import NamedTuple

from kardinal.clock import Clock
from kardinal.git import Repository

__all__ = ["ASK_AGAIN", "Revisions"]

ASK_AGAIN = timedelta(seconds=30)
"""The interval between two questions for a revision that the repository does not have."""

_KEPT = 2_000
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class _Question(NamedTuple):
    repository: str
    revision: str
    commit: str


class _Answer(NamedTuple):
    contains: bool | None
    asked: float


class Revisions:
    """The answers so far; the oldest are dropped beyond a bound."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: OrderedDict[_Question, _Answer] = OrderedDict()

    def contains(self, repository: str, revision: str, commit: str) -> bool | None:
        """Return whether `revision` is `commit` or a descendant of it; None if that is unknown so far."""
        if revision == commit:
            return True
        found = self._answers.get(_Question(repository, revision, commit))
        return found.contains if found is not None else None

    def is_due(self, repository: str, revision: str, commit: str) -> bool:
        """Return whether to ask the repository now; never for a text that is no id of a commit."""
        found = self._answers.get(_Question(repository, revision, commit))
        if found is None:
            return bool(_COMMIT.fullmatch(revision)) and revision != commit
        return found.contains is None and self._clock.monotonic() - found.asked >= ASK_AGAIN.total_seconds()

    async def ask(self, repository: Repository, url: str, *, branch: str, revision: str, commit: str) -> None:
        """Ask the repository, and keep its answer."""
        question = _Question(url, revision, commit)
        # Noted before the question, so that a repository that cannot be read is not asked at every change either.
        self._note(question, None)
        self._note(question, await repository.includes(branch, revision, commit))

    def _note(self, question: _Question, contains: bool | None) -> None:
        self._answers[question] = _Answer(contains, self._clock.monotonic())
        self._answers.move_to_end(question)
        if len(self._answers) > _KEPT:
            self._answers.popitem(last=False)
