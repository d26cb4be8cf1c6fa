"""Decode the bytes of a request body within limits, before or after authentication (pure).

The cost of decoding is measured first, and content without a meaning is not walked. A large body is processed on a
thread.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

from kardinal import bounded
from kardinal.bounded import ForeignBytes, mebibytes
from kardinal.models.base import DNS_LABEL_PATTERN
from kardinal_controller.http.problem import FieldError, ProblemError

__all__ = ["DEFAULT_NAMESPACE", "LARGE", "BodyUnreadable", "decode", "is_namespace", "namespace_of"]

LARGE = 64 * 1024
"""A body of more than this size in bytes is large: few are kept at once, and it is processed off the event loop."""

DEFAULT_NAMESPACE = "default"
"""The namespace of a request that names none."""
_LIMITS = bounded.JsonLimits(size=1 << 20, containers=5_000, pieces=20_000)
"""The limits of a body. The largest possible Bundle has about 150 lists and objects, and 2,000 values."""

FOREIGN = ForeignBytes(
    "bodies of the webhook",
    of="CI token, stranger",
    size=mebibytes(_LIMITS.size),
    unpacked="a compressed one is refused",
    structure=_LIMITS.structure,
    time="30 s",
    held="of bodies over 64 KiB 16 MiB in all, 4 MiB for a namespace and for those that are not authenticated yet; one "
    "of less for each connection",
    decoded="on a thread from 64 KiB, two at once",
    tests=(
        "attacks/test_webhook.py::test_a_stranger_with_a_megabyte_of_misspelt_fields_is_refused_unread",
        "bounded/test_readers.py::test_a_body_of_the_webhook_that_is_costly_is_refused",
        "attacks/test_connections.py::test_a_compressed_body_is_not_unpacked",
    ),
)

_NAMESPACE = re.compile(DNS_LABEL_PATTERN)
_NAMESPACE_LIMIT = 63


class BodyUnreadable(ProblemError):
    """The body would be too expensive to decode; answered with 422 for an authenticated client."""


def decode(body: bytes) -> dict[str, Any]:
    """Return the document in a body. Raises `ProblemError` 422 without quoting it, and `BodyUnreadable`."""
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
    """Return whether `name` is valid as the name of a namespace."""
    return isinstance(name, str) and len(name) <= _NAMESPACE_LIMIT and _NAMESPACE.fullmatch(name) is not None
