"""Requests to one host with one credential: budget, deadline, conditional reads, and the meaning of answers.

Redirects are not followed, because another host would get the credential, and another path may be the repository of
others. A request is sent once; the error says whether it may be retried, and the promotion decides when.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from kardinal.bounded import ForeignBytes, Held, JsonLimits, NoRoom, NotJson, OverLimit, decode_held, mebibytes
from kardinal.objects.errors import KardinalError
from kardinal.scm.base import RequestObserver
from kardinal.scm.errors import (
    AccessDenied,
    AnswerTooLarge,
    HostError,
    HostUnavailable,
    RateLimited,
    RequestRefused,
    UnknownAnswer,
)
from kardinal.scm.http import sessions as sessions_of
from kardinal.scm.http.answers import HostAnswer, Outcome, Rule, decide, quota_of, quoted_words, retry_after_of
from kardinal.scm.http.authentication import HostAuthenticator
from kardinal.scm.http.budget import Priority, Rate, RequestBudget
from kardinal.scm.http.sessions import HostSessions

__all__ = ["Host", "HostClient"]

MAX_BODY = 4 * 2**20
MAX_PAGES = 100
_SMALL = 65536
"""An answer of at most this size in bytes is not counted while it is read."""

FOREIGN = ForeignBytes(
    "answers of the API of a host",
    of="Git host",
    size=f"{mebibytes(MAX_BODY)}, {MAX_PAGES} pages of a list",
    unpacked="asked for uncompressed, refused otherwise",
    structure=JsonLimits(size=MAX_BODY).structure,
    time=f"{sessions_of.REQUEST_DEADLINE:g} s a request",
    held=(
        f"of a namespace {mebibytes(sessions_of.READ_SHARE)} read and {mebibytes(sessions_of.DECODED_SHARE)} decoded, "
        f"of all {mebibytes(sessions_of.READ_TOTAL)} and {mebibytes(sessions_of.DECODED_TOTAL)}; one page at a time"
    ),
    decoded="on a thread from 64 KiB",
    tests=("attacks/test_host_answers.py::test_nested_lists_are_not_decoded", "fuzz/test_bounded_json.py"),
)

_PAGE_SIZES = ("per_page", "limit")
"""The names of the query parameter for the number of items per page."""

_HANDLED = frozenset({Outcome.SUCCESS, Outcome.ADOPT, Outcome.REREAD})
_DEFAULT_ERRORS: Mapping[Outcome, type[KardinalError]] = {
    Outcome.TRANSIENT: HostUnavailable,
    Outcome.TERMINAL: RequestRefused,
    Outcome.UNKNOWN: UnknownAnswer,
}


@dataclass(frozen=True, slots=True)
class Host:
    """One API: its base URL, its request rate, the table of its answers and the permissions it requires.

    `permissions`: operation -> the permission that a token needs for it, in the host's words. `resource`: the name of
    this API's quota, if the host has several.
    """

    base: str
    rate: Rate
    table: Sequence[Rule]
    permissions: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    resource: str = ""

    @property
    def name(self) -> str:
        """Return `host[:port]`."""
        return URL(self.base).authority

    @property
    def place(self) -> tuple[str, int]:
        """Return host and port."""
        url = URL(self.base)
        return url.host or "", url.port or 443


class HostClient:
    """Send requests to one host as one user; answers take memory of their namespace until they are dropped."""

    def __init__(
        self,
        host: Host,
        *,
        sessions: HostSessions,
        authenticator: HostAuthenticator,
        authority: str = "",
        namespace: str = "",
        on_request: RequestObserver | None = None,
    ) -> None:
        self.host = host
        self.clock = sessions.clock
        self._sessions = sessions
        self._authenticator = authenticator
        self._authority = authority
        self._namespace = namespace
        self._observer = on_request

    async def request(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        priority: Priority = Priority.OPEN,
        age: float | None = None,
    ) -> HostAnswer:
        """Send one request; `path` starts with a slash and is already URL-encoded.

        Returns answers whose outcome is success, adopt or reread, and raises the errors of the others. `age`: seconds
        since the pull request was first seen, for answers that have another meaning in its first minute.
        """
        url = f"{self.host.base}{path}"
        if query:
            url = f"{url}?{urlencode(query)}"
        answer = await self._attempt(operation, method, url, body, priority)
        if answer.status == 401 and self._authenticator.refused():
            answer = await self._attempt(operation, method, url, body, priority)
        rule = decide(self.host.table, operation, answer, age=age)
        if rule.outcome in _HANDLED:
            return await self._decoded(answer, rule.outcome)
        error = self._error(operation, answer, rule)
        if isinstance(error, RateLimited) and error.retry_after and not _is_used_up(answer, now=self.clock.now()):
            self._budget().block(error.retry_after)
        raise error

    async def pages(
        self,
        operation: str,
        path: str,
        *,
        query: Mapping[str, str],
        priority: Priority = Priority.OPEN,
        age: float | None = None,
    ) -> AsyncIterator[Any]:
        """Yield the items of a list, page after page, as long as the host announces another page.

        Strangers can write long texts, so a page that is too large is requested again in smaller ones.
        """
        name = next((name for name in _PAGE_SIZES if name in query), "")
        size = int(query[name]) if name else 1
        before = 0
        for _ in range(MAX_PAGES):
            numbered = {**query, **({name: str(size)} if name else {}), "page": str(before // size + 1)}
            try:
                answer = await self.request(operation, "GET", path, query=numbered, priority=priority, age=age)
            except AnswerTooLarge:
                if size == 1:
                    raise
                size = _smaller(size)
                continue
            before += size
            items = answer.value
            if not isinstance(items, list):
                raise UnknownAnswer(f"{self.host.name} answered {operation} with something else than a list")
            item = None
            for item in items:
                yield item
            if 'rel="next"' not in answer.headers.get("link", ""):
                return
            del answer, items, item  # released before the next page is read
        raise RequestRefused(f"{self.host.name} has more than {MAX_PAGES} pages of {operation}")

    def age(self, name: str) -> float:
        """Return the seconds since this program first heard of `name` at this host."""
        return self._sessions.first_seen.age(f"{self.host.base} {name}")

    def quoted(self, words: str | None, *, before: str = ": ") -> str:
        """Return a message of the host for an error, after `before`, for example `: checks have failed`.

        It is printable, cut and without the credential. Empty if there is no message, or if the host has a private
        address and is not listed in `--allow-git-hosts`.
        """
        said = quoted_words(words or "", self._authenticator.redact) if self._is_quotable() else ""
        return f"{before}{said}" if said else ""

    def _is_quotable(self) -> bool:
        return self._sessions.names.quotable(*self.host.place)

    async def _decoded(self, answer: HostAnswer, outcome: Outcome) -> HostAnswer:
        """Return an answer with its decoded document in place of its bytes."""
        try:
            value, held = await decode_held(
                answer.body, JsonLimits(size=MAX_BODY), holding=self._sessions.holding, owner=self._namespace
            )
        except NotJson:
            return replace(answer, outcome=outcome, body=b"")
        except OverLimit as error:
            raise AnswerTooLarge(f"an answer of {self.host.name} is not read: {error}") from None
        except NoRoom as error:
            raise _later(error) from None
        decoded = replace(answer, outcome=outcome, body=b"", value=value)
        held.release_with(decoded)
        return decoded

    async def _attempt(self, operation: str, method: str, url: str, body: object, priority: Priority) -> HostAnswer:
        resource = self.host.resource
        await self._budget().take(priority, resource)
        answer = await self._send(operation, method, url, body)
        quota = quota_of(answer.headers, now=self.clock.now())
        # Some requests count for another resource, such as the search, which says nothing about this quota.
        if quota is not None and answer.headers.get("x-ratelimit-resource", resource) == resource:
            self._budget().observe(quota, resource)
            if self._sessions.on_quota is not None:
                counted = self.host.name if resource in ("", "core") else f"{self.host.name}/{resource}"
                self._sessions.on_quota(counted, quota.remaining)
        if method != "GET":
            return answer
        return self._sessions.answers.resolve(self._authenticator.identity, url, answer)

    async def _send(self, operation: str, method: str, url: str, body: object) -> HostAnswer:
        host, port = self.host.place
        self._sessions.names.check(host, port)
        session = await self._sessions.session(self._authority, self._namespace)
        headers = {**self.host.headers, **await self._authenticator.headers()}
        if method == "GET":
            tag = self._sessions.answers.tag(self._authenticator.identity, url)
            headers.update({"If-None-Match": tag} if tag else {})
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        status = "error"
        try:
            async with session.request(
                method, URL(url, encoded=True), data=data, headers=headers, allow_redirects=False
            ) as response:
                status = str(response.status)
                return await self._read(response)
        except NoRoom as error:
            raise _later(error) from None
        except TimeoutError:
            status = "timeout"
            raise HostUnavailable(f"{self.host.name} gave no answer in time") from None
        except aiohttp.ClientConnectorCertificateError:
            raise HostUnavailable(
                f"{self.host.name} shows a certificate that is not trusted",
                remedy="Put the certificate of its authority into the Secret, key ca.crt",
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise HostUnavailable(f"{self.host.name} could not be reached: {type(error).__name__}") from None
        finally:
            if self._observer is not None:
                self._observer(operation, status)

    async def _read(self, response: aiohttp.ClientResponse) -> HostAnswer:
        """Read an answer; its bytes count as memory of the namespace until it is dropped."""
        length = response.content_length
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise UnknownAnswer(f"{self.host.name} answers compressed, though it was asked not to")
        if length is not None and length > MAX_BODY:
            raise self._too_large()
        held: Held | None = None
        content = bytearray()
        try:
            async for chunk in response.content.iter_chunked(_SMALL):
                content += chunk
                if held is None and len(content) > _SMALL:
                    held = await self._sessions.reading.take(self._namespace, length or MAX_BODY)
                if len(content) > MAX_BODY:
                    raise self._too_large()
        except BaseException:
            if held is not None:
                held.release()
            raise
        headers = {name.lower(): value for name, value in response.headers.items()}
        answer = HostAnswer(response.status, headers, bytes(content))
        if held is not None:
            held.release_with(answer)
        return answer

    def _too_large(self) -> AnswerTooLarge:
        return AnswerTooLarge(f"an answer of {self.host.name} is larger than {MAX_BODY // 2**20} MiB")

    def _budget(self) -> RequestBudget:
        return self._sessions.budget(self.host.name, self._authenticator.identity, self.host.rate)

    def _error(self, operation: str, answer: HostAnswer, rule: Rule) -> KardinalError:
        kind = rule.error or _DEFAULT_ERRORS[rule.outcome]
        said = answer.message(self._authenticator.redact) if self._is_quotable() else ""
        message = f"{self.host.name} answered {answer.status} to {operation}" + (f": {said}" if said else "")
        remedy = rule.remedy
        permission = self.host.permissions.get(operation, "")
        if kind is AccessDenied and not remedy:
            remedy = (
                "The token is not valid: put a valid one into the Secret"
                if answer.status == 401
                else f"Give the token, and its user, the permission {permission or 'that this needs'}"
            )
        error = kind(message, remedy=remedy)
        error.transient = rule.outcome is not Outcome.TERMINAL or error.blocked
        if isinstance(error, HostError):
            error.status = answer.status
        error.retry_after = self._retry_after(answer, rule)
        return error

    def _retry_after(self, answer: HostAnswer, rule: Rule) -> float | None:
        if rule.outcome is Outcome.TERMINAL:
            return None
        asked = retry_after_of(answer.headers, now=self.clock.now())
        if asked is None and issubclass(rule.error or HostError, RateLimited):
            quota = quota_of(answer.headers, now=self.clock.now())
            asked = quota.reset if quota is not None and quota.remaining == 0 else None
        return asked if asked is not None else rule.retry_after


def _is_used_up(answer: HostAnswer, *, now: datetime) -> bool:
    """Return whether the request was refused because this quota is used up, which says nothing about other quotas."""
    quota = quota_of(answer.headers, now=now)
    return quota is not None and quota.remaining == 0 and not retry_after_of(answer.headers, now=now)


def _later(error: NoRoom) -> HostUnavailable:
    later = HostUnavailable(error.message)
    later.retry_after = error.retry_after
    return later


def _smaller(size: int) -> int:
    """Return a smaller page size that divides the present one."""
    return next((size // divisor for divisor in (5, 2) if size % divisor == 0), 1)
