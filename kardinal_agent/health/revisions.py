"""Know which revisions of a repository contain which commits.

A GitOps tool says which revision it has applied; whether our commit is in it is asked of the mirror. The answer is a
fact that never changes, so it is kept. That a revision is not known is no answer: it may be one that is fetched later,
and the question is asked again, but not at every change of the object that named it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from datetime import timedelta
from typing import NamedTuple

from kardinal.git import Repository
from kardinal.runtime import Clock

__all__ = ["ASK_AGAIN", "Revisions"]

ASK_AGAIN = timedelta(seconds=30)
"""How long a revision that the repository does not have is not asked for again."""

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
    """The answers so far, the oldest of which are forgotten."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: OrderedDict[_Question, _Answer] = OrderedDict()

    def contains(self, repository: str, revision: str, commit: str) -> bool | None:
        """Return whether `commit` is `revision` or before it, as far as is known."""
        if revision == commit:
            return True
        found = self._answers.get(_Question(repository, revision, commit))
        return found.contains if found is not None else None

    def is_due(self, repository: str, revision: str, commit: str) -> bool:
        """Return whether it is worth asking the repository: text that is no id of a commit never is."""
        found = self._answers.get(_Question(repository, revision, commit))
        if found is None:
            return bool(_COMMIT.fullmatch(revision)) and revision != commit
        return found.contains is None and self._clock.monotonic() - found.asked >= ASK_AGAIN.total_seconds()

    async def ask(self, repository: Repository, url: str, *, branch: str, revision: str, commit: str) -> None:
        """Ask the repository, and keep its answer."""
        question = _Question(url, revision, commit)
        # Noted before, so that a repository that cannot be read is not asked at every change either.
        self._note(question, None)
        self._note(question, await repository.includes(branch, revision, commit))

    def _note(self, question: _Question, contains: bool | None) -> None:
        self._answers[question] = _Answer(contains, self._clock.monotonic())
        self._answers.move_to_end(question)
        if len(self._answers) > _KEPT:
            self._answers.popitem(last=False)
