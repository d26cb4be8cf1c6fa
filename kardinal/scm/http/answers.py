"""Decide the meaning of a host's answer, by tables.

Every provider has a table, and `COMMON` follows it. The first rule that matches (operation, status, a header, the body,
and the age of the pull request) decides. An answer that matches no rule is retried a few times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Any

from kardinal.bounded import JsonLimits, NotJson, OverLimit, decode
from kardinal.objects.errors import KardinalError
from kardinal.scm.errors import AccessDenied, HostUnavailable, RateLimited, RequestRefused, UnknownAnswer
from kardinal.scm.http.first_seen import NEW_SECONDS

__all__ = [
    "COMMON",
    "HostAnswer",
    "Outcome",
    "Quota",
    "Rule",
    "decide",
    "quota_of",
    "quoted_words",
    "retry_after_of",
    "unknown_at_first",
]

MAX_WAIT = 3600.0
"""The longest wait in seconds that a host can request; afterwards the request is repeated."""

_QUOTED = 200
_ERRORS = JsonLimits(size=65536, depth=16, containers=1_000, pieces=5_000)
"""The limits for an error body whose message is read."""


class Outcome(Enum):
    """The consequence of an answer. The caller handles the first three; the others are raised as errors."""

    SUCCESS = "success"
    ADOPT = "adopt"
    """The object to create exists already, and must be looked up."""
    REREAD = "reread"
    """The state differs from the assumption of the request, and must be read again."""
    TRANSIENT = "transient"
    TERMINAL = "terminal"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class HostAnswer:
    """One answer of a host, with header names in lower case.

    `value`: the JSON document of the body, which a client decodes if the answer is not an error; None if it is not
    JSON.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    outcome: Outcome = Outcome.SUCCESS
    value: Any = None

    @property
    def text(self) -> str:
        """Return the body as text, cut, for rules and messages."""
        return self.body[:65536].decode(errors="replace")

    def message(self, redact: Callable[[str], str] = str) -> str:
        """Return the host's message from the fields that hosts document for it; empty if the answer has another shape.

        GitHub sends `{"message": …, "errors": [{"message": …}]}`, and Gitea and Forgejo the same without `errors`.
        GitLab sends `message`, which may contain lists by field, or `error` and `error_description`.
        """
        try:
            value = decode(self.body, _ERRORS)
        except (OverLimit, NotJson):
            return ""
        return quoted_words("; ".join(dict.fromkeys(_said(value))), redact) if isinstance(value, dict) else ""


def quoted_words(text: str, redact: Callable[[str], str] = str) -> str:
    """Return a message of a host on one line and cut.

    It is redacted before it is cut, so that no part of a secret is left.
    """
    plain = " ".join("".join(letter if letter.isprintable() else " " for letter in redact(text)).split())
    return plain if len(plain) <= _QUOTED else f"{plain[: _QUOTED - 1]}…"


def _said(value: Mapping[str, Any]) -> Iterator[str]:
    for name in ("message", "error", "error_description"):
        yield from _texts(value.get(name))
    errors = value.get("errors")
    for each in errors if isinstance(errors, list) else ():
        yield from _texts(each.get("message") if isinstance(each, dict) else None)


def _texts(value: object, field: str = "") -> Iterator[str]:
    """Yield the texts of a message: `{"source_branch": ["does not exist"]}` becomes `source_branch does not exist`."""
    if isinstance(value, str) and value:
        yield f"{field} {value}".strip()
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, field)
    elif isinstance(value, dict) and not field:
        for name, each in value.items():
            yield from _texts(each, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One row of a table.

    `operations`: defaults to every operation. `header`: the name of a header and a pattern to find in its value.
    `body`: a pattern to find in the body. `within`: seconds since the pull request was first seen. `error` is raised
    for a transient or terminal outcome; `remedy` tells the reader how to mend it.
    """

    status: int | range
    outcome: Outcome
    operations: frozenset[str] = frozenset()
    header: tuple[str, str] | None = None
    body: str = ""
    within: float | None = None
    error: type[KardinalError] | None = None
    remedy: str = ""
    retry_after: float | None = None

    def matches(self, operation: str, answer: HostAnswer, age: float | None) -> bool:
        statuses = self.status if isinstance(self.status, range) else (self.status,)
        return (
            answer.status in statuses
            and (not self.operations or operation in self.operations)
            and (self.within is None or (age is not None and age < self.within))
            and (self.header is None or _contains(self.header[1], answer.headers.get(self.header[0], "")))
            and (not self.body or _contains(self.body, answer.text))
        )


def unknown_at_first(
    operations: frozenset[str],
    error: type[KardinalError],
    *,
    status: int = 404,
    body: str = "",
    at_first: type[KardinalError] = HostUnavailable,
    remedy: str = "",
) -> tuple[Rule, Rule]:
    """Return the rules for objects that a host may not know yet: retry for a minute, then raise `error`.

    A new object, commit or token is not known to all parts of a host immediately.
    """
    new = Rule(
        status=status,
        outcome=Outcome.TRANSIENT,
        operations=operations,
        body=body,
        within=NEW_SECONDS,
        error=at_first,
        remedy=remedy,
        retry_after=1.0,
    )
    old = Rule(status=status, outcome=Outcome.TERMINAL, operations=operations, body=body, error=error, remedy=remedy)
    return new, old


COMMON: Sequence[Rule] = (
    Rule(status=range(200, 300), outcome=Outcome.SUCCESS),
    Rule(
        status=range(300, 400),
        outcome=Outcome.TERMINAL,
        error=RequestRefused,
        remedy="Redirects are not followed: put the address of the repository as it is today into git.url",
    ),
    Rule(status=401, outcome=Outcome.TERMINAL, error=AccessDenied),
    Rule(status=403, outcome=Outcome.TERMINAL, error=AccessDenied),
    Rule(status=429, outcome=Outcome.TRANSIENT, error=RateLimited),
    Rule(status=408, outcome=Outcome.TRANSIENT, error=HostUnavailable),
    Rule(status=425, outcome=Outcome.TRANSIENT, error=HostUnavailable),
    Rule(status=range(500, 600), outcome=Outcome.TRANSIENT, error=HostUnavailable),
)
"""The rules that follow those of each provider."""

UNKNOWN = Rule(status=range(1000), outcome=Outcome.UNKNOWN, error=UnknownAnswer)


def decide(table: Sequence[Rule], operation: str, answer: HostAnswer, *, age: float | None = None) -> Rule:
    """Return the first rule that matches an answer, or `UNKNOWN`."""
    for rule in (*table, *COMMON):
        if rule.matches(operation, answer, age):
            return rule
    return UNKNOWN


@dataclass(frozen=True, slots=True)
class Quota:
    """The number of remaining requests, the limit, and the seconds until the count is reset."""

    remaining: int
    limit: int
    reset: float


def quota_of(headers: Mapping[str, str], *, now: datetime) -> Quota | None:
    """Return the quota in the headers of an answer, by the names that GitHub, GitLab and Forgejo use."""
    for prefix in ("x-ratelimit-", "ratelimit-"):
        remaining = _number(headers.get(f"{prefix}remaining"))
        if remaining is not None:
            reset = _number(headers.get(f"{prefix}reset"))
            seconds = 60.0 if reset is None else reset - now.timestamp()
            limit = _number(headers.get(f"{prefix}limit")) or remaining
            return Quota(int(remaining), int(limit), min(max(seconds, 1.0), MAX_WAIT))
    return None


def retry_after_of(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return Retry-After, which is a number or a date, in seconds; at most `MAX_WAIT`."""
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is None and text:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return None if seconds is None else min(max(seconds, 0.0), MAX_WAIT)


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,6})?", text.strip(), re.ASCII):
        return None
    return float(text)


def _contains(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None
