"""One blocking request on a connection that is kept; one that was interrupted is not used again."""

from __future__ import annotations

import http.client
from collections.abc import Mapping

__all__ = ["exchange"]


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | None,
    headers: Mapping[str, str],
) -> bytes:
    """The body of the answer, which must be a success."""
    try:
        connection.request(method, path, body, dict(headers))
        with connection.getresponse() as answer:
            content = answer.read()
    except BaseException:
        # Whatever interrupted it, a timeout of the test included: the answer may still arrive, to another request.
        connection.close()
        raise
    if answer.status >= 300:
        raise RuntimeError(f"{method} {path}: {answer.status} {content.decode()}")
    return content
