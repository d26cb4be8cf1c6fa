"""Parse resourceVersions as clients send them.

A client should only send back what it was given. For one that is no number the real server blames itself - 500, and no
reason - everywhere but in a list; 0 is a number that asks for nothing.
"""

from __future__ import annotations

import orjson

from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.statuses import bad_request

__all__ = ["parse_list_revision", "parse_precondition", "parse_revision", "revision_too_large"]

_LARGEST = 2**64 - 1


def parse_revision(text: str) -> int | None:
    """The revision to read or watch from; None where the client leaves the choice to the server."""
    try:
        return _parse(text)
    except ValueError as error:
        raise StatusError(500, "", _refusal(text, error)) from None


def parse_list_revision(text: str) -> int | None:
    """The same for a list."""
    try:
        return _parse(text)
    except ValueError as error:
        raise bad_request(f"invalid resource version: {_refusal(text, error)}") from None


def parse_precondition(text: str) -> int | None:
    """The revision that a write expects; None when it expects none."""
    try:
        return _parse(text)
    except ValueError as error:
        raise StatusError(500, "", str(error)) from None


def revision_too_large(revision: int, *, current: int) -> StatusError:
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {revision}, current: {current}",
        details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
        retry_after=1,
    )


def _parse(text: str) -> int | None:
    if not text:
        return None
    problem = ""
    if not text.isascii() or not text.isdigit():
        problem = "invalid syntax"
    # Python refuses to read thousands of digits.
    elif len(text.lstrip("0")) > len(str(_LARGEST)) or int(text) > _LARGEST:
        problem = "value out of range"
    if problem:
        raise ValueError(f"strconv.ParseUint: parsing {_quoted(text)}: {problem}")
    return int(text) or None


def _refusal(text: str, error: ValueError) -> str:
    return f"resourceVersion: Invalid value: {_quoted(text)}: {error}"


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
