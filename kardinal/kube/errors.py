"""The errors of requests to an API server, as one tree.

    KubeError
    ├── ConfigError            the connection cannot be set up; the message has the remedy
    ├── ConnectionFailed       no usable answer: refused, reset, cut short, not the Kubernetes wire format
    ├── DeadlineExceeded       no answer in time; a write may or may not have happened
    └── ApiError               the server answered with a Status
        ├── BadRequest 400   Unauthorized 401   Forbidden 403   NotFound 404
        ├── AlreadyExists 409   Conflict 409   Expired 410   UnsupportedMediaType 415
        └── Invalid 422   TooManyRequests 429   ServerError 5xx

Exceptions of libraries (aiohttp, ssl, the loader of configurations) are converted in this package and never leave it.
The reason in the Status is compared before the code, because 409 has two meanings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardinal.bounded import JsonLimits, NotJson, OverLimit, decode
from kardinal.objects.errors import KardinalError

__all__ = [
    "ERROR_LIMITS",
    "AlreadyExists",
    "ApiError",
    "BadRequest",
    "ConfigError",
    "Conflict",
    "ConnectionFailed",
    "DeadlineExceeded",
    "Expired",
    "Forbidden",
    "Invalid",
    "KubeError",
    "NotFound",
    "ServerError",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
    "error_from_response",
    "error_from_status",
]

MAX_OPAQUE_TEXT = 256
MAX_DETAIL = 1024
ERROR_LIMITS = JsonLimits(size=1 << 20)
_LONGEST_WAIT = 3600.0


class KubeError(KardinalError):
    """Any error that kept a request from succeeding.

    `final`: the same request will always be refused again, whatever else changes.
    """

    final: bool = False


class ConfigError(KubeError):
    """The connection cannot be set up; the message names the file and the remedy."""


class ConnectionFailed(KubeError):
    """The server could not be reached, or closed the connection before its answer was complete."""

    transient = True


class DeadlineExceeded(KubeError):
    """The answer did not come in time."""

    transient = True


class ApiError(KubeError):
    """The server refused the request, and said why."""

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        details: Mapping[str, Any] | None = None,
        *,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message or reason or f"HTTP {status}")
        self.status = status
        self.reason = reason
        self.details: Mapping[str, Any] = details or {}
        self.retry_after = retry_after

    @property
    def fields(self) -> list[str]:
        """The fields that the server complained about: invalid fields, or fields of another manager."""
        return [cause["field"] for cause in self._causes if cause.get("field")]

    @property
    def revision_too_large(self) -> bool:
        """Return whether the server has not reached the requested revision.

        The server was restored from a backup, or its cache is behind.
        """
        return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in self._causes)

    @property
    def _causes(self) -> list[Mapping[str, Any]]:
        causes = self.details.get("causes")
        return [cause for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []


class BadRequest(ApiError):
    """The request itself is invalid."""

    final = True


class Unauthorized(ApiError):
    """The credentials are missing, wrong or expired."""


class Forbidden(ApiError):
    """The credentials are valid, but do not allow the request."""


class NotFound(ApiError):
    """There is no such object, or no such kind."""


class AlreadyExists(ApiError):
    """An object with this name exists already."""


class Conflict(ApiError):
    """Another client has written the object before, or owns the field."""


class Expired(ApiError):
    """The revision or continue token is too old for the server."""


class UnsupportedMediaType(ApiError):
    """The server does not know this type of patch or body."""


class Invalid(ApiError):
    """The object violates its schema."""

    final = True


class TooManyRequests(ApiError):
    """The server asks the client to wait; `retry_after` is the time in seconds."""

    transient = True


class ServerError(ApiError):
    """The server failed."""

    transient = True


BY_REASON: Mapping[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Expired": Expired,
    "Gone": Expired,
    "Invalid": Invalid,
    "NotFound": NotFound,
    "TooManyRequests": TooManyRequests,
}
BY_STATUS: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    415: UnsupportedMediaType,
    422: Invalid,
    429: TooManyRequests,
}


def error_from_response(status: int, body: bytes, *, retry_after: str | None = None) -> ApiError:
    """Return the error for an HTTP answer.

    Of a problem document its detail is the message. Another body, for example from a proxy, is quoted up to
    `MAX_OPAQUE_TEXT` characters.
    """
    try:
        parsed = decode(body, ERROR_LIMITS)
    except (NotJson, OverLimit):
        parsed = None
    if isinstance(parsed, dict) and parsed.get("kind") == "Status":
        return error_from_status(parsed, status=status, retry_after=_seconds(retry_after))
    if isinstance(parsed, dict) and isinstance(parsed.get("detail"), str):
        # A problem document (RFC 9457), as the API of the controller answers.
        return _class_for(status, "")(status, "", parsed["detail"][:MAX_DETAIL], retry_after=_seconds(retry_after))
    text = body.decode("utf-8", "replace").strip()[:MAX_OPAQUE_TEXT]
    return _class_for(status, "")(status, "", text, retry_after=_seconds(retry_after))


def error_from_status(
    status_object: Mapping[str, Any], *, status: int | None = None, retry_after: float | None = None
) -> ApiError:
    """Return the error for a Status object; a watch sends it inside an HTTP 200.

    The fields may have any type, because a tenant may have chosen the server.
    """
    code = status_object.get("code")
    code = status or (code if isinstance(code, int) and 100 <= code < 1000 else 500)
    reason, message, details = (status_object.get(field) for field in ("reason", "message", "details"))
    reason = reason if isinstance(reason, str) else ""
    details = details if isinstance(details, dict) else {}
    wait = details.get("retryAfterSeconds")
    if retry_after is None and isinstance(wait, int) and 0 <= wait <= _LONGEST_WAIT:
        retry_after = float(wait)
    return _class_for(code, reason)(
        code, reason, message if isinstance(message, str) else "", details, retry_after=retry_after
    )


def _class_for(status: int, reason: str) -> type[ApiError]:
    if found := BY_REASON.get(reason) or BY_STATUS.get(status):
        return found
    return ServerError if status >= 500 else ApiError


def _seconds(header: str | None) -> float | None:
    """Return Retry-After in seconds. API servers do not use the form with a date; it counts as absent."""
    return min(float(header[:9]), _LONGEST_WAIT) if header is not None and header.isdecimal() else None
