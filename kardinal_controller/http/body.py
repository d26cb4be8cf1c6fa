"""The bytes of a request body: decoded within bounds, before or after authentication (pure).

Decoding is quick for text and numbers; what costs is to allocate lists and maps, so their number is counted before.
orjson bounds the nesting at 1,024 levels, and nothing walks what has no meaning. Work on a large body is done in a
thread.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ParamSpec, TypeVar

import orjson

from kardinal.api.base import DNS_LABEL_PATTERN
from kardinal_controller.http.problem import FieldError, ProblemError

__all__ = ["DEFAULT_NAMESPACE", "LARGE", "BodyUnreadable", "decode", "is_namespace", "namespace_of", "off_loop"]

LARGE = 64 * 1024
"""Bytes from which a body is large: few are held at once, and it is worked on off the event loop."""

DEFAULT_NAMESPACE = "default"
"""The namespace of a request that names none."""
CONTAINERS = 5_000
"""Opening brackets in a body; one of 64 images has less than a hundred."""

P = ParamSpec("P")
T = TypeVar("T")

_NAMESPACE = re.compile(DNS_LABEL_PATTERN)
_NAMESPACE_LIMIT = 63


class BodyUnreadable(ProblemError):
    """The body would cost more to decode than a request is worth; 422 to who is authenticated."""


def decode(body: bytes) -> dict[str, Any]:
    """Return the document of a body. Raises `ProblemError` 422 without quoting it, and `BodyUnreadable`."""
    if body.count(b"[") + body.count(b"{") > CONTAINERS:
        raise BodyUnreadable(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"the body has more than {CONTAINERS} lists and objects and is not decoded; "
            "/api/v1/namespaces/<namespace>/bundles tells more",
        )
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"the body is not JSON (line {error.lineno}, column {error.colno})"
        ) from None
    if not isinstance(document, dict):
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "the body must be a JSON object")
    return document


def namespace_of(document: dict[str, Any]) -> str:
    """Return the namespace that a document names. Raises `ProblemError` 422."""
    namespace = document.get("namespace", DEFAULT_NAMESPACE)
    if not is_namespace(namespace):
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            "the body does not name a namespace",
            [FieldError("namespace", "must be the name of a namespace")],
        )
    return str(namespace)


def is_namespace(name: object) -> bool:
    """Return whether `name` could be that of a namespace."""
    return isinstance(name, str) and len(name) <= _NAMESPACE_LIMIT and _NAMESPACE.fullmatch(name) is not None


async def off_loop(body: bytes, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `work` returns, done in a thread where `body` is large."""
    return await asyncio.to_thread(work, *args, **kwargs) if len(body) > LARGE else work(*args, **kwargs)
