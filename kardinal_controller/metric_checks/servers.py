"""Ask the servers of metrics: which of them a namespace may ask, and one request.

The author of a check names a server and a query, and the controller can reach servers that the author cannot. So a
server must be listed by the operator (`--allow-metric-hosts`) for the namespace of the check. A listed host may have
any address, except those of its link and of metadata services, for which it must be listed without `*`. Redirects are
not followed. The implementation of `MetricRequests` checks addresses, and limits time and size.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlencode, urlsplit

from kardinal.git.secret_hosts import host_allowed, host_of
from kardinal.objects import Key
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api.metric_check import MetricServer
from kardinal.promotion.metrics.provider import MetricError, MetricProvider, MetricQuery, MetricRequest, Samples
from kardinal_controller.metric_checks.secrets import NO_CREDENTIALS, MetricCredentials, MetricSecrets

__all__ = ["EVERY_NAMESPACE", "FLAG", "CheckRefused", "MetricHost", "MetricServers", "RequestsTo"]

FLAG = "--allow-metric-hosts"
EVERY_NAMESPACE = "*"


@dataclass(frozen=True, slots=True)
class MetricHost:
    """A host in the operator's list: a pattern, and the namespaces whose checks may ask it."""

    pattern: str
    namespaces: tuple[str, ...]

    def serves(self, namespace: str) -> bool:
        """Return whether checks of `namespace` may ask the host."""
        return EVERY_NAMESPACE in self.namespaces or namespace in self.namespaces


class MetricReply(Protocol):
    """An HTTP answer."""

    @property
    def status(self) -> int: ...
    @property
    def body(self) -> bytes: ...


class MetricRequests(Protocol):
    """Make one request without following redirects, to a checked address, with limits on time and size."""

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> MetricReply: ...


class RequestsTo(Protocol):
    """Return what makes requests to hosts that match `patterns`, each in at most `seconds`."""

    def __call__(self, patterns: Sequence[str], *, tls: ssl.SSLContext | None, seconds: float) -> MetricRequests: ...


class CheckRefused(MetricError):
    """A server that is not asked; `reason` is the word for the condition Ready."""

    def __init__(self, reason: str, message: str, *, remedy: str = "", transient: bool = False) -> None:
        super().__init__(message, remedy=remedy, transient=transient)
        self.reason = reason


class MetricServers:
    """The servers that may be asked, and the providers that know how."""

    def __init__(
        self,
        hosts: Sequence[MetricHost],
        providers: Mapping[str, MetricProvider],
        *,
        secrets: MetricSecrets,
        requests: RequestsTo,
    ) -> None:
        self._hosts = hosts
        self._providers = providers
        self._secrets = secrets
        self._requests = requests

    async def check(self, server: MetricServer, namespace: str) -> None:
        """Raise `CheckRefused` or `SecretRefused` if checks of `namespace` may not ask the server."""
        self._provider(server)
        self._patterns(server, namespace)
        await self._credentials(server, namespace)

    async def query(self, server: MetricServer, namespace: str, query: MetricQuery) -> Samples:
        """Ask one query. Raises `MetricError`."""
        provider = self._provider(server)
        patterns = self._patterns(server, namespace)
        credentials = await self._credentials(server, namespace)
        asked = _asked(provider, query)
        requests = self._requests(patterns, tls=credentials.tls, seconds=query.timeout.total_seconds())
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "kardinal"}
        form = None
        if asked.method == "POST":
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            form = urlencode(asked.form).encode()
        try:
            url = f"{server.address.rstrip('/')}{asked.path}"
            reply = await requests.request(asked.method, url, headers={**headers, **credentials.headers}, body=form)
            _check_status(reply, server)
            # An answer may repeat the credentials, and a provider may quote it.
            body = credentials.redacted(reply.body)
            return await asyncio.to_thread(_samples, provider, reply.status, body)
        except KardinalError as error:
            raise MetricError(credentials.redacted(str(error).encode()).decode()) from None

    def _provider(self, server: MetricServer) -> MetricProvider:
        provider = self._providers.get(server.type)
        if provider is None:
            known = ", ".join(sorted(self._providers))
            raise CheckRefused("UnknownProvider", f"spec.provider.type: there is no {server.type}; there are: {known}")
        return provider

    def _patterns(self, server: MetricServer, namespace: str) -> list[str]:
        """Return the patterns of hosts for a namespace. Raises `CheckRefused` if none of them matches the server."""
        if not _is_address(server.address):
            raise CheckRefused(
                "InvalidAddress",
                "spec.provider.address: write http:// or https:// with a host, and no user, query or fragment",
            )
        host = host_of(server.address)
        patterns = [each.pattern for each in self._hosts if each.serves(namespace)]
        if not patterns or not host_allowed(host, patterns):
            raise CheckRefused(
                "HostNotAllowed",
                f"spec.provider.address: {host} is not asked for namespace {namespace}",
                remedy=f"Ask the operator for {FLAG} {host}={namespace}",
            )
        return patterns

    async def _credentials(self, server: MetricServer, namespace: str) -> MetricCredentials:
        if server.secret_ref is None:
            return NO_CREDENTIALS
        return await self._secrets.read(Key(namespace, server.secret_ref.name), host=host_of(server.address))


def _asked(provider: MetricProvider, query: MetricQuery) -> MetricRequest:
    try:
        asked = provider.asked(query)
        if asked.path.startswith("/"):
            return asked
    except Exception as error:  # code of other packages
        raise MetricError(f"provider {provider.name} fails by a bug: {type(error).__name__}") from error
    raise MetricError(f"provider {provider.name} fails by a bug: its path does not begin with /")


def _samples(provider: MetricProvider, status: int, body: bytes) -> Samples:
    try:
        return provider.read(status, body)
    except KardinalError:
        raise
    except Exception as error:  # code of other packages, on bytes of others
        raise MetricError(f"provider {provider.name} fails by a bug: {type(error).__name__}") from error


def _is_address(address: str) -> bool:
    if not address.isascii() or not address.isprintable() or set(" ?#") & set(address):
        return False
    try:
        parts = urlsplit(address)
        named = bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
    return named and parts.username is None and parts.scheme in ("http", "https")


def _check_status(reply: MetricReply, server: MetricServer) -> None:
    host = host_of(server.address)
    if 300 <= reply.status < 400:
        raise MetricError(f"{host} answers {reply.status}: redirects are not followed; name the final host")
    if reply.status in (401, 403):
        wanted = "correct the credentials of" if server.secret_ref is not None else "name a Secret with credentials in"
        raise MetricError(f"{host} answers {reply.status}: {wanted} spec.provider.secretRef")
