"""A provider of metrics: how a query is asked of one type of server, and how its answer is read.

    def _asked(query: MetricQuery) -> MetricRequest: ...
    def _read(answer: bytes, query: MetricQuery) -> Samples: ...

    DATADOG = MetricProvider("datadog", asked=_asked, read=_read)

A provider makes no connection and sees no credential. The control plane makes the request: to the host of
`spec.provider.address` alone, if the operator lists it, with the credentials of the Secret, without redirects, and with
limits on time and size. A provider of another package must bound what it decodes, as `kardinal.bounded` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from kardinal.objects.errors import KardinalError

__all__ = ["MetricError", "MetricProvider", "MetricQuery", "MetricRequest", "Samples"]


class MetricError(KardinalError):
    """A server has not answered a query; the message has the reason, and no value of a Secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricQuery:
    """One query with the values of one Bundle. With `length` and `step` it is about a range that ends at `at`."""

    text: str
    at: datetime
    timeout: timedelta
    length: timedelta | None = None
    step: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRequest:
    """An HTTP request below the address of a server. A `form` is sent as the body of a POST."""

    path: str
    form: Mapping[str, str] = field(default_factory=dict)
    method: Literal["GET", "POST"] = "POST"


@dataclass(frozen=True, slots=True)
class Samples:
    """The values of an answer. `single`: the query itself has one value, so that none of them is chosen or combined."""

    values: Sequence[float]
    single: bool


@dataclass(frozen=True, slots=True)
class MetricProvider:
    """`asked` returns the request for a query; `read` reads its answer, or raises `MetricError`.

    `read` gets the status and the body of an answer, whatever the status is, except of redirects and of those that
    refuse the credentials.
    """

    name: str
    asked: Callable[[MetricQuery], MetricRequest]
    read: Callable[[int, bytes], Samples]
