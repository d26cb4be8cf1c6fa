"""Answers kept for conditional requests, by credential and address.

A host that says 304 neither counts the request nor sends the answer again. The cache is bounded by entries and bytes;
what was used longest ago goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

from kardinal.scm.http.answers import Answer

__all__ = ["AnswerCache"]

MAX_ENTRIES = 512
MAX_BYTES = 16 * 2**20


class AnswerCache:
    """The last answer with an ETag of each address."""

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, str], Answer] = OrderedDict()
        self._bytes = 0

    def tag(self, credential: str, url: str) -> str | None:
        """Return the ETag to ask with."""
        kept = self._answers.get((credential, url))
        return kept.headers["etag"] if kept is not None else None

    def resolve(self, credential: str, url: str, answer: Answer) -> Answer:
        """Return the answer that is meant by `answer`, and keep it when it has an ETag.

        The headers of a 304 are those of today.
        """
        key = (credential, url)
        if answer.status == 304 and key in self._answers:
            self._answers.move_to_end(key)
            kept = self._answers[key]
            return replace(kept, headers={**kept.headers, **answer.headers})
        self._drop(key)
        if answer.status == 200 and answer.headers.get("etag"):
            # As an answer of its own: room for one that is read is given back when it is dropped.
            self._answers[key] = replace(answer)
            self._bytes += len(answer.body)
            while len(self._answers) > MAX_ENTRIES or self._bytes > MAX_BYTES:
                self._drop(next(iter(self._answers)))
        return answer

    def _drop(self, key: tuple[str, str]) -> None:
        dropped = self._answers.pop(key, None)
        if dropped is not None:
            self._bytes -= len(dropped.body)
