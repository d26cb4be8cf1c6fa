"""The bytes of a request body: decoded within bounds, before or after authentication (pure).

What a body costs to decode is counted before, and nothing walks what has no meaning. Work on a large body is done in a
thread.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ParamSpec, TypeVar

from kardinal import bounded
from kardinal.api.base import DNS_LABEL_PATTERN
from kardinal.bounded import ForeignBytes, mebibytes
from kardinal_controller.http.problem import FieldError, ProblemError

__all__ = ["DEFAULT_NAMESPACE", "LARGE", "BodyUnreadable", "decode", "is_namespace", "namespace_of", "off_loop"]

LARGE = 64 * 1024
"""Bytes from which a body is large: few are held at once, and it is worked on off the event loop."""

DEFAULT_NAMESPACE = "default"
"""The namespace of a request that names none."""
_LIMITS = bounded.JsonLimits(size=1 << 20, containers=5_000)
"""A body of 64 images has less than a hundred lists and objects."""

FOREIGN = ForeignBytes(
    "bodies of the webhook",
    of="CI token, stranger",
    size=mebibytes(_LIMITS.size),
    unpacked="a compressed one is refused",
    structure=_LIMITS.structure,
    time="30 s",
    held="4 MiB of bodies over 64 KiB for a namespace, 4 MiB for those that are not authenticated yet; one of less for "
    "each connection",
    decoded="on a thread from 64 KiB",
    tests=(
        "attacks/test_webhook.py::test_a_stranger_with_a_megabyte_of_misspelt_fields_is_refused_unread",
        "bounded/test_readers.py::test_a_body_of_the_webhook_that_is_costly_is_refused",
        "attacks/test_connections.py::test_a_compressed_body_is_not_unpacked",
    ),
)

P = ParamSpec("P")
T = TypeVar("T")

_NAMESPACE = re.compile(DNS_LABEL_PATTERN)
_NAMESPACE_LIMIT = 63


class BodyUnreadable(ProblemError):
    """The body would cost more to decode than a request is worth; 422 to who is authenticated."""


def decode(body: bytes) -> dict[str, Any]:
    """Return the document of a body. Raises `ProblemError` 422 without quoting it, and `BodyUnreadable`."""
    try:
        document = bounded.decode(body, _LIMITS)
    except bounded.OverLimit as error:
        raise BodyUnreadable(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"the body is not decoded: {error}; /api/v1/namespaces/<namespace>/bundles tells more",
        ) from None
    except bounded.NotJson as error:
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, f"the body cannot be read: {error}") from None
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
