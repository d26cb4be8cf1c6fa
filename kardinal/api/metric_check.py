"""MetricCheck: a query whose result gates may read. Stored and shown, not executed by this version."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kardinal.api.base import LongText, Model, Resource, Status, Url
from kardinal.objects import METRIC_CHECK, ResourceType

__all__ = ["METRIC_CHECK", "MetricCheck", "MetricCheckSpec", "MetricCheckStatus", "MetricProvider"]

COMPARISON_PATTERN = r"^(<|<=|>|>=|==|!=) *-?[0-9]+([.][0-9]+)?$"


class MetricProvider(Model):
    type: Literal["prometheus"] = "prometheus"
    """`prometheus`."""
    address: Url
    """URL of the server."""


class MetricCheckSpec(Model):
    provider: MetricProvider
    """The server that is asked."""
    query: Annotated[LongText, Field(min_length=1)]
    """The query."""
    success_condition: Annotated[str, Field(max_length=64, pattern=COMPARISON_PATTERN)]
    """Comparison with the value that succeeds."""
    failure_condition: Annotated[str | None, Field(max_length=64, pattern=COMPARISON_PATTERN)] = None
    """Comparison with the value that fails."""
    no_data_behavior: Literal["hold", "pass", "fail"] = "hold"
    """Meaning of no data: `hold`, `pass` or `fail`."""


class MetricCheckStatus(Status):
    """Conditions: Ready."""


class MetricCheck(Resource):
    resource: ClassVar[ResourceType] = METRIC_CHECK

    spec: MetricCheckSpec
    """The query and its thresholds."""
    status: MetricCheckStatus = Field(default_factory=MetricCheckStatus)
    """Conditions."""
