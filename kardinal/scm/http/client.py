"""Requests to one host with one credential: budget, deadline, conditional reads, and what the answer means.

No redirect is followed: another host would get the credential, and another path may be the repository of others. A
request is sent once; whether it is worth another attempt is said by the error, and decided by the promotion.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

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
from kardinal.scm.http.answers import Answer, Outcome, Rule, decide, quota_of, retry_after_of
from kardinal.scm.http.authentication import Authenticator
from kardinal.scm.http.budget import Priority, Rate
from kardinal.scm.http.sessions import HostSessions

__all__ = ["Host", "HostClient"]

MAX_BODY = 8 * 2**20
MAX_PAGES = 100

_PAGE_SIZES = ("per_page", "limit")
"""Names that hosts have for the number of items of a page."""

_HANDLED = frozenset({Outcome.SUCCESS, Outcome.ADOPT, Outcome.REREAD})
_DEFAULT_ERRORS: Mapping[Outcome, type[KardinalError]] = {
    Outcome.TRANSIENT: HostUnavailable,
    Outcome.TERMINAL: RequestRefused,
    Outcome.UNKNOWN: UnknownAnswer,
}


@dataclass(frozen=True, slots=True)
class Host:
    """One API: its base address, how fast it may be asked, what its answers mean and which permissions it wants.

    `permissions`: operation -> the permission of a token that it needs, in the host's own words.
    """

    base: str
    rate: Rate
    table: Sequence[Rule]
    permissions: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return `host[:port]`."""
        return URL(self.base).authority


class HostClient:
    """Sends requests to one host as one user."""

    def __init__(
        self,
        host: Host,
        *,
        sessions: HostSessions,
        authenticator: Authenticator,
        authority: str = "",
        on_request: RequestObserver | None = None,
    ) -> None:
        self.host = host
        self.clock = sessions.clock
        self._sessions = sessions
        self._authenticator = authenticator
        self._authority = authority
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
    ) -> Answer:
        """Send one request; `path` begins with a slash and is encoded already.

        Returns answers whose outcome is success, adopt or reread, and raises the error of the others. `age`: seconds
        since the pull request was first heard of, for answers that are different in its first minute.
        """
        url = f"{self.host.base}{path}"
        if query:
            url = f"{url}?{urlencode(query)}"
        answer = await self._attempt(operation, method, url, body, priority)
        if answer.status == 401 and self._authenticator.refused():
            answer = await self._attempt(operation, method, url, body, priority)
        rule = decide(self.host.table, operation, answer, age=age)
        if rule.outcome in _HANDLED:
            return replace(answer, outcome=rule.outcome)
        raise self._error(operation, answer, rule)

    async def pages(
        self,
        operation: str,
        path: str,
        *,
        query: Mapping[str, str],
        priority: Priority = Priority.OPEN,
        age: float | None = None,
    ) -> AsyncIterator[Any]:
        """Yield the items of a list, page after page, while the host says that there is a next one.

        Strangers write long texts, so a page that is too large is asked for again in smaller ones.
        """
        name = next((name for name in _PAGE_SIZES if name in query), "")
        size, before = int(query[name]) if name else 1, 0
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
            for item in items:
                yield item
            if 'rel="next"' not in answer.headers.get("link", ""):
                return
        raise RequestRefused(f"{self.host.name} has more than {MAX_PAGES} pages of {operation}")

    def age(self, name: str) -> float:
        """Return the seconds since this program first heard of `name` at this host."""
        return self._sessions.first_seen.age(f"{self.host.base} {name}")

    async def _attempt(self, operation: str, method: str, url: str, body: object, priority: Priority) -> Answer:
        budget = self._sessions.budget(self.host.name, self._authenticator.identity, self.host.rate)
        await budget.take(priority)
        answer = await self._send(operation, method, url, body)
        now = self.clock.now()
        quota = quota_of(answer.headers, now=now)
        if quota is not None:
            budget.observe(quota)
            if self._sessions.on_quota is not None:
                self._sessions.on_quota(self.host.name, quota.remaining)
        retry_after = retry_after_of(answer.headers, now=now)
        if retry_after and answer.status in (403, 429):
            budget.block(retry_after)
        if method != "GET":
            return answer
        return self._sessions.answers.resolve(self._authenticator.identity, url, answer)

    async def _send(self, operation: str, method: str, url: str, body: object) -> Answer:
        session = await self._sessions.session(self._authority)
        headers = {**self.host.headers, **await self._authenticator.headers()}
        if method == "GET":
            tag = self._sessions.answers.tag(self._authenticator.identity, url)
            headers.update({"If-None-Match": tag} if tag else {})
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        status = "error"
        try:
            async with session.request(
                method, URL(url, encoded=True), data=data, headers=headers, allow_redirects=False
            ) as response:
                content = await _read(response)
                status = str(response.status)
                return Answer(
                    response.status, {name.lower(): value for name, value in response.headers.items()}, content
                )
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

    def _error(self, operation: str, answer: Answer, rule: Rule) -> KardinalError:
        kind = rule.error or _DEFAULT_ERRORS[rule.outcome]
        said = answer.message(self._authenticator.redact)
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

    def _retry_after(self, answer: Answer, rule: Rule) -> float | None:
        if rule.outcome is Outcome.TERMINAL:
            return None
        asked = retry_after_of(answer.headers, now=self.clock.now())
        if asked is None and issubclass(rule.error or HostError, RateLimited):
            quota = quota_of(answer.headers, now=self.clock.now())
            asked = quota.reset if quota is not None and quota.remaining == 0 else None
        return asked if asked is not None else rule.retry_after


async def _read(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_chunked(65536):
        content += chunk
        if len(content) > MAX_BODY:
            response.close()
            raise AnswerTooLarge(f"an answer of {response.url.host} is larger than {MAX_BODY // 2**20} MiB")
    return bytes(content)


def _smaller(size: int) -> int:
    """Return a smaller size of a page, by which the larger one can be divided."""
    return next((size // divisor for divisor in (5, 2) if size % divisor == 0), 1)
