"""One blocking request on a connection that is kept for a while.

One that was interrupted is not used again, and one that its server gave up for idleness is opened again: whatever is
asked here may be asked twice.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from http import HTTPStatus

__all__ = ["RefusedRequest", "exchange"]

_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.02


class RefusedRequest(RuntimeError):
    """An answer that is no success; the text holds it."""


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None,
    headers: Mapping[str, str],
) -> bytes:
    """Return the body of the answer, which must be a success."""
    give_up = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            status, content = _ask(connection, method, path, body, headers)
        except ConnectionError:
            status, content = _ask(connection, method, path, body, headers)
        if status != HTTPStatus.TOO_MANY_REQUESTS or time.monotonic() > give_up:
            break
        # What a server says of a kind whose definition has just changed, until it has read its objects anew.
        time.sleep(_PAUSE_SECONDS)
    if status >= 300:
        raise RefusedRequest(f"{method} {path}: {status} {content.decode()}")
    return content


def _ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    try:
        connection.request(method, path, body, dict(headers))
        with connection.getresponse() as answer:
            return answer.status, answer.read()
    except BaseException:
        # Whatever interrupted it, a timeout of the test included: the answer may still arrive, to another request.
        connection.close()
        raise
