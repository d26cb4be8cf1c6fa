"""One HTTP session with one API server: deadlines, retries, credentials, errors.

Every request except a watch ends within `REQUEST_DEADLINE` seconds, including its retries. Only safe requests are
retried: after an answer 429 or 5xx with Retry-After, for any verb, because the server asks for it; after a broken
connection, if the verb is GET; and once, with fresh credentials, after a 401. A write is not repeated after a broken
connection, because it may have happened: the reconciler reads the present state and decides again. Waits between
retries use real time, because virtual time stands still while a request is in flight.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import aiohttp
import orjson
from yarl import URL

from kardinal.bounded import OverLimit
from kardinal.bounded.connections import BoundedConnector
from kardinal.kube.backoff import Backoff
from kardinal.kube.bounds import HUB, Bounds, Decoded, decode_body, read_body
from kardinal.kube.connection import ClusterAccess, Connection
from kardinal.kube.errors import (
    ERROR_LIMITS,
    ApiError,
    ConnectionFailed,
    DeadlineExceeded,
    Unauthorized,
    error_from_response,
)

__all__ = ["Transport"]

REQUEST_DEADLINE = 30.0
CONNECT_TIMEOUT = 10.0
# API servers send a bookmark every 60 s, so a longer silence means a dead connection.
WATCH_SILENCE = 75.0
MAX_TRIES = 10
RECONNECT = Backoff(base=0.05, cap=1.0, jitter=0.5)
MAX_CONNECTIONS = 256

Sleep = Callable[[float], Awaitable[None]]
Observer = Callable[[str, int], None]

_OTHER_IN_YAML = re.compile(b"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbb\xbf|\xef\xbf[\xbe\xbf]")
"""Characters, in UTF-8, that JSON allows unescaped, while YAML refuses them or reads them as ends of lines."""


class Transport:
    """Send HTTP requests; the meaning of the requests belongs to `Client`."""

    def __init__(
        self, connection: Connection, *, user_agent: str, sleep: Sleep = asyncio.sleep, bounds: Bounds = HUB
    ) -> None:
        self.connection = connection
        self.bounds = bounds
        self.in_flight = 0
        self.observers: list[Observer] = []
        self._sleep = sleep
        self._headers = {
            "Accept": "application/json",
            # On a loopback or a cluster network, compression costs both sides time and gains nothing.
            "Accept-Encoding": "identity",
            "User-Agent": user_agent,
        }
        self._session: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = self._new_session(MAX_CONNECTIONS)
        # Watches have a pool of their own; in a shared pool, many watches would leave no connection for requests.
        self._streams = self._new_session(0)
        return self

    def _new_session(self, limit: int) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=BoundedConnector(limit=limit),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
            auto_decompress=False,
        )

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for session in (self._session, self._streams):
            if session is not None:
                await session.close()
        self._session = self._streams = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        user: str | None = None,
    ) -> Decoded:
        """Send a request, retry it where that is safe, and decode the answer, which is a JSON object.

        `user`: the user to act as; defaults to the owner of the credentials.
        """
        data = None if body is None else _encoded(body, as_yaml=content_type.endswith("+yaml"))
        deadline = asyncio.timeout(REQUEST_DEADLINE)
        self.in_flight += 1
        try:
            async with deadline:
                headers = _acting_as(user) | ({} if data is None else {"Content-Type": content_type})
                return await self._with_retries(method, self._url(path, query), data, headers, deadline)
        except TimeoutError:
            raise DeadlineExceeded(f"{method} {path}: no answer within {REQUEST_DEADLINE:.0f} s") from None
        finally:
            self.in_flight -= 1

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], user: str | None = None
    ) -> AsyncIterator[aiohttp.StreamReader]:
        """Open a long answer. Only a 401 is retried here, because the caller knows from where to resume."""
        url = self._url(path, query)
        access = await self.connection.access()
        try:
            response = await self._open_stream(url, access, user)
        except Unauthorized:
            response = await self._open_stream(url, await self.connection.renew(access), user)
        try:
            yield response.content
        finally:
            # The connection is not returned to the pool, so the next watch may reach another server.
            response.close()

    async def _with_retries(
        self, method: str, url: URL, data: bytes | None, headers: Mapping[str, str], deadline: asyncio.Timeout
    ) -> Decoded:
        access = await self.connection.access()
        renewed = False
        tries = 0
        while True:
            try:
                return await self._once(method, url, data, headers, access)
            except Unauthorized:
                if renewed:
                    raise
                renewed = True
                access = await self.connection.renew(access)
            except ApiError as error:
                tries += 1
                if tries >= MAX_TRIES or not _asks_to_retry(error):
                    raise
                await self._pause(error, error.retry_after or 0.0, deadline)
            except ConnectionFailed as error:
                tries += 1
                if tries >= MAX_TRIES or method != "GET" or not _broke(error.__cause__):
                    raise
                await self._pause(error, RECONNECT.delay(tries - 1), deadline)

    async def _pause(self, error: Exception, seconds: float, deadline: asyncio.Timeout) -> None:
        """Wait before the next try; if the deadline would pass, raise `error`, which says more than a timeout."""
        ends = deadline.when()
        if ends is not None and asyncio.get_running_loop().time() + seconds >= ends:
            raise error
        await self._sleep(seconds)

    async def _once(
        self, method: str, url: URL, data: bytes | None, headers: Mapping[str, str], access: ClusterAccess
    ) -> Decoded:
        try:
            async with _opened(self._session).request(
                method,
                url,
                data=data,
                headers={**headers, **_authorization(access)},
                ssl=access.tls or True,
                server_hostname=access.tls_server_name,
                proxy=access.proxy,
                allow_redirects=False,
            ) as response:
                size = (ERROR_LIMITS if response.status >= 300 else self.bounds.answer).size
                body = await read_body(response, size)
        except TimeoutError as error:
            raise ConnectionFailed(f"{method} {url.path}: the server did not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionFailed(f"{method} {url.path}: {_said(error)}") from error
        self._observe(method, response.status)
        if response.status >= 300:
            raise error_from_response(response.status, body or b"", retry_after=response.headers.get("Retry-After"))
        if body is None:
            raise ConnectionFailed(f"{method} {url.path}: the answer has more than {self.bounds.answer.size:,} bytes")
        return await self._decode(method, url, body)

    async def _open_stream(self, url: URL, access: ClusterAccess, user: str | None) -> aiohttp.ClientResponse:
        try:
            async with asyncio.timeout(WATCH_SILENCE):
                response = await _opened(self._streams).get(
                    url,
                    headers={**_acting_as(user), **_authorization(access)},
                    ssl=access.tls or True,
                    server_hostname=access.tls_server_name,
                    proxy=access.proxy,
                    allow_redirects=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=WATCH_SILENCE),
                )
        except TimeoutError as error:
            raise ConnectionFailed(f"WATCH {url.path}: the server did not answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionFailed(f"WATCH {url.path}: {_said(error)}") from error
        self._observe("WATCH", response.status)
        if response.status == 200 and response.headers.get("Content-Encoding", "identity").lower() == "identity":
            return response
        try:
            async with asyncio.timeout(REQUEST_DEADLINE):
                body = await read_body(response, ERROR_LIMITS.size) or b""
        except (aiohttp.ClientError, OSError):
            body = b""
        finally:
            response.close()
        raise error_from_response(response.status, body, retry_after=response.headers.get("Retry-After"))

    async def _decode(self, method: str, url: URL, body: bytes) -> Decoded:
        try:
            decoded = await decode_body(body, self.bounds.answer, trusted=self.bounds.trusted)
        except OverLimit as error:
            raise ConnectionFailed(f"{method} {url.path}: the answer cannot be read: {error}") from None
        except orjson.JSONDecodeError:
            decoded = Decoded(None, 0)
        if not isinstance(decoded.value, dict):
            raise ConnectionFailed(f"{method} {url.path}: the answer is not a JSON object; is this an API server?")
        return decoded

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        suffix = f"?{urlencode(query)}" if query else ""
        return URL(f"{self.connection.server}{path}{suffix}", encoded=True)

    def _observe(self, method: str, status: int) -> None:
        for observer in self.observers:
            observer(method, status)


def _opened(session: aiohttp.ClientSession | None) -> aiohttp.ClientSession:
    if session is None:
        raise RuntimeError("the client is not open: use it inside `async with`")
    return session


def _asks_to_retry(error: ApiError) -> bool:
    # The server will not reach an unknown revision within a request; the caller of a list then asks for the newest one.
    return (
        error.retry_after is not None and (error.status == 429 or error.status >= 500) and not error.revision_too_large
    )


def _broke(cause: BaseException | None) -> bool:
    """Return whether a connection broke during a request. A refused connection did not."""
    broken = (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientOSError, ConnectionResetError)
    return isinstance(cause, broken) and not isinstance(cause, aiohttp.ClientConnectorError)


def _acting_as(user: str | None) -> dict[str, str]:
    """Return the header by which a request is made with the rights of another user.

    Groups are not named: the API server adds those of a ServiceAccount, and to name any takes a right on all groups.
    """
    return {} if user is None else {"Impersonate-User": user}


def _authorization(access: ClusterAccess) -> dict[str, str]:
    return {} if access.authorization is None else {"Authorization": access.authorization}


def _said(error: BaseException) -> str:
    """Return the message of an error, without the TLS object that aiohttp adds to it."""
    return re.sub(r" ssl:(<[^<>]*+>|\S+)", "", str(error)) or type(error).__name__


def _encoded(body: object, *, as_yaml: bool) -> bytes:
    """Return a body as JSON; the server reads what is applied as YAML, of which JSON is nearly a part."""
    encoded = orjson.dumps(body)
    return _OTHER_IN_YAML.sub(_escaped, encoded) if as_yaml else encoded


def _escaped(character: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(character[0].decode())
