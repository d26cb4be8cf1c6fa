"""A cache of answers for conditional requests, by credential and URL.

A host that answers 304 neither counts the request nor sends the answer again. The cache is limited in entries and
bytes; the least recently used answer is dropped first.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from kardinal.scm.http.answers import HostAnswer

__all__ = ["AnswerCache"]

MAX_ENTRIES = 512
MAX_BYTES = 16 * 2**20


class AnswerCache:
    """The last answer with an ETag for each URL."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, str], HostAnswer] = OrderedDict()
        self._bytes = 0

    def tag(self, credential: str, url: str) -> str | None:
        """Return the ETag for a conditional request; None without a cached answer."""
        kept = self._answers.get((credential, url))
        return kept.headers["etag"] if kept is not None else None

    def resolve(self, credential: str, url: str, answer: HostAnswer) -> HostAnswer:
        """Return the cached answer for a 304, and otherwise `answer`, which is cached if it has an ETag.

        The headers of a 304 replace the cached ones.
        """
        key = (credential, url)
        if answer.status == 304 and key in self._answers:
            self._answers.move_to_end(key)
            kept = self._answers[key]
            return replace(kept, headers={**kept.headers, **answer.headers})
        self._drop(key)
        if answer.status == 200 and answer.headers.get("etag"):
            # A copy, because the memory that is reserved for `answer` is released when `answer` is dropped.
            self._answers[key] = replace(answer)
            self._bytes += len(answer.body)
            while len(self._answers) > MAX_ENTRIES or self._bytes > MAX_BYTES:
                self._drop(next(iter(self._answers)))
        return answer

    def _drop(self, key: tuple[str, str]) -> None:
        dropped = self._answers.pop(key, None)
        if dropped is not None:
            self._bytes -= len(dropped.body)
