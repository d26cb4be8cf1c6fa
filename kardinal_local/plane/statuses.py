"""Make the `Status` bodies of the Kubernetes API, and the errors that are worded the same way everywhere.

Clients decide by `reason` and `code`; people read `message`. The wording follows the real server where kubectl or a
controller is known to look at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import ApplyConflict, Cause, StatusError
from kardinal_local.plane.kinds import Kind

__all__ = [
    "already_exists",
    "apply_conflict",
    "bad_request",
    "conflict",
    "failure",
    "forbidden",
    "internal_error",
    "invalid",
    "invalid_options",
    "invalid_request",
    "method_not_allowed",
    "not_found",
    "success",
    "too_deep",
    "too_large",
    "unsupported_media_type",
    "warning",
]


def failure(error: StatusError) -> JsonObject:
    """The body of a refusal."""
    status: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": error.metadata,
        "status": "Failure",
        "message": error.message,
        "code": error.code,
    }
    if error.reason:
        status["reason"] = error.reason
    if error.details is not None or error.retry_after is not None:
        waiting = {} if error.retry_after is None else {"retryAfterSeconds": error.retry_after}
        status["details"] = {**(error.details or {}), **waiting}
    return status


def success(kind: Kind, *, name: str, uid: str) -> JsonObject:
    """The body of a completed deletion."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": _details(kind, name) | {"uid": uid},
    }


def not_found(kind: Kind, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{kind.qualified} "{name}" not found', details=_details(kind, name))


def already_exists(kind: Kind, name: str) -> StatusError:
    return StatusError(409, "AlreadyExists", f'{kind.qualified} "{name}" already exists', details=_details(kind, name))


def conflict(kind: Kind, name: str, explanation: str, *, causes: Sequence[Cause] = ()) -> StatusError:
    message = f'Operation cannot be fulfilled on {kind.qualified} "{name}": {explanation}'
    return StatusError(409, "Conflict", message, details=_details(kind, name) | _causes(causes))


def forbidden(kind: Kind, name: str, explanation: str, *, causes: Sequence[Cause] = ()) -> StatusError:
    message = f'{kind.qualified} "{name}" is forbidden: {explanation}'
    return StatusError(403, "Forbidden", message, details=_details(kind, name) | _causes(causes))


def apply_conflict(error: ApplyConflict) -> StatusError:
    """409 with one cause per field that another manager owns."""
    number = len(error.causes)
    title = f"Apply failed with {number} conflict{'s' if number > 1 else ''}"
    return StatusError(409, "Conflict", f"{title}: {error}", details=_causes(error.causes))


@contextmanager
def warning(*warnings: str) -> Iterator[None]:
    """Whatever is refused meanwhile is refused with these warnings."""
    try:
        yield
    except StatusError as error:
        error.warnings = (*warnings, *error.warnings)
        raise


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def too_deep() -> StatusError:
    """A document that is nested more deeply than it can be written."""
    return bad_request("the object is nested too deeply for this server: more than some 230 levels")


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> StatusError:
    """422 with one cause per field; names the kind, not the resource, as the real server does."""
    return _invalid(kind.group, kind.kind, name, causes)


def invalid_options(options: str, causes: Sequence[Cause]) -> StatusError:
    """422 for the parameters of a request: `options` is ListOptions, CreateOptions or the like."""
    return _invalid("meta.k8s.io", options, "", causes)


def method_not_allowed() -> StatusError:
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, details={})


def unsupported_media_type(*supported: str) -> StatusError:
    """415, naming what the body may be instead."""
    message = "the body of the request was in an unknown format - accepted media types include: "
    return StatusError(415, "UnsupportedMediaType", message + ", ".join(supported))


def internal_error(problem: str) -> StatusError:
    """What the real server blames itself for."""
    details = {"causes": [{"message": problem}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {problem}", details=details)


def invalid_request(cause: Cause) -> StatusError:
    """422 for something that is no object, such as a patch; it names neither kind nor name."""
    return _invalid("", "", "", [cause])


def too_large(limit: int) -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def _invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> StatusError:
    # Each problem is said once, also when two of the server's rules found it.
    listed = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    text = listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]"
    title = f"{kind}.{group}" if group else kind
    details = {"name": name, "group": group, "kind": kind} | _causes(causes)
    return StatusError(
        422, "Invalid", f'{title} "{name}" is invalid: {text}', details={k: v for k, v in details.items() if v}
    )


def _details(kind: Kind, name: str) -> JsonObject:
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in details.items() if value}


def _causes(causes: Sequence[Cause]) -> JsonObject:
    if not causes:
        return {}
    return {"causes": [{"reason": cause.reason, "message": cause.message, "field": cause.field} for cause in causes]}
