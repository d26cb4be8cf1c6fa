"""Read the answers of endpoints (pure).

2xx with     `{"success": …, "message": …, "outputs": …}`     the result
202 with `Location`                                           the next request goes there, on the same host
429, 5xx                                                      tried again
any other status, also 3xx                                    a final failure
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from kardinal.bounded import ForeignBytes, JsonLimits, NotJson, OverLimit, decode, mebibytes
from kardinal.git.secret_hosts import host_of
from kardinal.objects.text import cut, printable
from kardinal_agent.endpoints.client import BODY_LIMIT, REQUEST_TIME, EndpointReply
from kardinal_agent.endpoints.errors import EndpointFailed, EndpointUnavailable

__all__ = ["Accepted", "Completed", "checked_location", "read_answer"]

_MESSAGE_LIMIT = 512
_LOCATION_LIMIT = 2048
_POLL_DEFAULT = 10.0
_POLL_LEAST = 1.0
_POLL_MOST = 300.0
_LONGEST_WAIT = 3600.0
_HIDDEN = "[redacted]"
_ANSWER = JsonLimits(size=BODY_LIMIT, containers=2_000, pieces=10_000)

FOREIGN = ForeignBytes(
    "answers of custom steps",
    of="tenant",
    size=mebibytes(BODY_LIMIT),
    unpacked="asked for uncompressed, never unpacked",
    structure=_ANSWER.structure,
    time=f"{REQUEST_TIME:g} s a request",
    held="one for each promotion that runs",
    decoded="on the event loop",
    tests=(
        "attacks/test_custom_steps.py::test_a_body_without_an_end_is_cut_off",
        "attacks/test_custom_steps.py::test_a_compressed_body_is_not_unpacked",
        "bounded/test_readers.py::test_an_answer_of_an_endpoint_that_is_costly_is_not_quoted",
    ),
)


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of an endpoint that has finished."""

    success: bool
    message: str
    outputs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The endpoint is still working: the next request goes to `location` after `wait` seconds."""

    location: str
    wait: float
    message: str


def read_answer(
    reply: EndpointReply, *, url: str, polled: str | None, secrets: Sequence[str], now: datetime
) -> Completed | Accepted:
    """Return the parsed reply. `polled` is the URL that was asked; `secrets` are removed from all texts.

    Raises `EndpointFailed` or `EndpointUnavailable`.
    """
    host = host_of(url)
    after = _retry_after(reply, now)
    if reply.status == 429 or reply.status >= 500:
        raise EndpointUnavailable(f"{host} answers {_said(reply, secrets)}", retry_after=after)
    if 300 <= reply.status < 400:
        raise EndpointFailed(f"{host} answers {reply.status}: redirects are not followed; name the final URL")
    if reply.status >= 400:
        raise EndpointFailed(f"{host} answers {_said(reply, secrets)}")
    if reply.status == 202:
        wait = min(max(after if after is not None else _POLL_DEFAULT, _POLL_LEAST), _POLL_MOST)
        return Accepted(_location(reply, url, polled, secrets), wait, _message(_json(reply), secrets))
    return _verdict(reply, host, secrets)


def checked_location(location: str, url: str) -> str:
    """Return `location` as an absolute URL; raises `EndpointFailed` if its host is not that of `url`."""
    host = host_of(url)
    if len(location) > _LOCATION_LIMIT or not location.isascii() or not location.isprintable() or "\\" in location:
        raise EndpointFailed(f"{host} answers with a Location that cannot be used")
    try:
        found = urlsplit(joined := urljoin(url, location))
        same = found.scheme == urlsplit(url).scheme and found.username is None and host_of(joined) == host
    except ValueError:
        same = False
    if not same or len(joined) > _LOCATION_LIMIT:
        raise EndpointFailed(f"{host} answers with a Location on another host, which is not asked")
    return joined


def _location(reply: EndpointReply, url: str, polled: str | None, secrets: Sequence[str]) -> str:
    if polled is not None:
        return polled
    location = reply.headers.get("location")
    if not location:
        raise EndpointFailed(f"{host_of(url)} answers 202 without a Location to ask at")
    if any(secret in location for secret in secrets):
        raise EndpointFailed(f"{host_of(url)} answers with a Location that holds a credential")
    return checked_location(location, url)


def _verdict(reply: EndpointReply, host: str, secrets: Sequence[str]) -> Completed:
    answer = _json(reply)
    if not isinstance(answer, dict) or not isinstance(answer.get("success"), bool):
        raise EndpointFailed(f'{host} answers {reply.status} without {{"success": true}} or {{"success": false}}')
    outputs = answer.get("outputs")
    if outputs is not None and not isinstance(outputs, dict):
        raise EndpointFailed(f"{host} answers with outputs that are no object")
    return Completed(answer["success"], _message(answer, secrets), _cleaned(outputs or {}, secrets))


def _said(reply: EndpointReply, secrets: Sequence[str]) -> str:
    message = _message(_json(reply), secrets)
    return f"{reply.status}: {message}" if message else str(reply.status)


def _json(reply: EndpointReply) -> Any:
    try:
        return decode(reply.body, _ANSWER)
    except (OverLimit, NotJson):
        return None


def _message(answer: Any, secrets: Sequence[str]) -> str:
    message = answer.get("message") if isinstance(answer, dict) else None
    return cut(printable(_hidden(message, secrets)), _MESSAGE_LIMIT) if isinstance(message, str) else ""


def _cleaned(value: Any, secrets: Sequence[str]) -> Any:
    """Return outputs with `secrets` removed from keys and values."""
    if isinstance(value, str):
        return _hidden(value, secrets)
    if isinstance(value, dict):
        return {_hidden(key, secrets): _cleaned(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_cleaned(item, secrets) for item in value]
    return value


def _hidden(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, _HIDDEN)
    return text


def _retry_after(reply: EndpointReply, now: datetime) -> float | None:
    """Return the header `Retry-After`, a number or a date (RFC 9110, section 10.2.3), in seconds from `now`."""
    value = reply.headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:9]), _LONGEST_WAIT)
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return min(max((moment - now).total_seconds(), 0.0), _LONGEST_WAIT)
