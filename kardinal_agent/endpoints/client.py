"""One request to an endpoint: to a checked address, without redirects, in bounded time and memory.

Proxies from environment variables are not used: a proxy resolves the name itself, and might contact another address
than the checked one.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientError,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    InvalidURL,
)
from aiohttp.abc import AbstractResolver
from aiohttp.resolver import ThreadedResolver

from kardinal.bounded.connections import BoundedConnector
from kardinal.git.secret_hosts import host_of
from kardinal_agent.endpoints.addresses import CheckedResolver, StepHosts
from kardinal_agent.endpoints.errors import EndpointFailed, EndpointUnavailable

__all__ = ["BODY_LIMIT", "REQUEST_TIME", "EndpointClient", "EndpointReply"]

REQUEST_TIME = 60.0
"""The most seconds for one whole request; an endpoint with longer work answers with 202."""

BODY_LIMIT = 64 << 10
"""The most bytes of an answer of a step."""


@dataclass(frozen=True, slots=True)
class EndpointReply:
    """An HTTP answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


class EndpointClient:
    """Makes requests to permitted hosts. Raises `HostRefused`, `EndpointUnavailable`, `EndpointFailed`.

    `body_limit` is the most bytes of an answer. `tls` has the trusted certificate authorities. Defaults to those of the
    machine.
    """

    def __init__(
        self,
        hosts: StepHosts,
        *,
        resolver: Callable[[], AbstractResolver] = ThreadedResolver,
        request_time: float = REQUEST_TIME,
        body_limit: int = BODY_LIMIT,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._hosts = hosts
        self._resolver = resolver
        self._tls = tls or True
        self._request_time = request_time
        self._body_limit = body_limit

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes | None = None
    ) -> EndpointReply:
        """Make one request on a new connection and return the answer, with any status code."""
        self._hosts.check_url(url)
        host = host_of(url)
        try:
            return await self._request(method, url, host, headers=headers, body=body)
        except InvalidURL:
            raise EndpointFailed(f"the URL of {host} cannot be asked for") from None
        except ClientConnectorCertificateError:
            raise EndpointUnavailable(f"{host} has a certificate that is not trusted here") from None
        except ClientConnectorError as error:
            raise EndpointUnavailable(
                f"{host} cannot be reached: {error.os_error.strerror or 'no connection'}"
            ) from None
        except TimeoutError:
            raise EndpointUnavailable(f"{host} has not answered within {self._request_time:g} s") from None
        except (ClientError, OSError) as error:
            raise EndpointUnavailable(f"{host} has not answered: {type(error).__name__}") from None

    async def _request(
        self, method: str, url: str, host: str, *, headers: Mapping[str, str], body: bytes | None
    ) -> EndpointReply:
        resolver = CheckedResolver(self._hosts, host, self._resolver())
        connector = BoundedConnector(resolver=resolver, use_dns_cache=False, force_close=True, ssl=self._tls)
        session = ClientSession(
            connector=connector,
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=ClientTimeout(total=self._request_time),
        )
        try:
            async with session.request(method, url, headers=headers, data=body, allow_redirects=False) as answer:
                content = bytearray()
                async for chunk in answer.content.iter_any():
                    content += chunk
                    if len(content) > self._body_limit:
                        raise EndpointFailed(f"{host} answers with more than {self._body_limit:,} bytes")
                found = {name.lower(): value for name, value in answer.headers.items()}
                return EndpointReply(answer.status, found, bytes(content))
        finally:
            await session.close()
            await resolver.close()
