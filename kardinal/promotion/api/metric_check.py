"""MetricCheck: a query whose result gates may read. Stored and shown, not executed by this version."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kardinal.objects import ResourceType
from kardinal.promotion.api.base import LongText, Model, Resource, Status, Url
from kardinal.promotion.kinds import METRIC_CHECK

__all__ = ["MetricCheck", "MetricCheckSpec", "MetricCheckStatus", "MetricProvider"]

COMPARISON_PATTERN = r"^(<|<=|>|>=|==|!=) *-?[0-9]+([.][0-9]+)?$"


class MetricProvider(Model):
    type: Literal["prometheus"] = "prometheus"
    """The type of the server: `prometheus`."""
    address: Url
    """URL of the server."""


class MetricCheckSpec(Model):
    provider: MetricProvider
    """The server that answers the query."""
    query: Annotated[LongText, Field(min_length=1)]
    """Query in PromQL, whose value the conditions are compared with."""
    success_condition: Annotated[str, Field(max_length=64, pattern=COMPARISON_PATTERN)]
    """Comparison with the value under which the check succeeds, such as `< 0.01`."""
    failure_condition: Annotated[str | None, Field(max_length=64, pattern=COMPARISON_PATTERN)] = None
    """Comparison with the value under which the check fails, such as `>= 0.05`."""
    no_data_behavior: Literal["hold", "pass", "fail"] = "hold"
    """Result without data: `hold`, `pass` or `fail`. Defaults to `hold`."""


class MetricCheckStatus(Status):
    """Conditions: Ready."""


class MetricCheck(Resource):
    resource: ClassVar[ResourceType] = METRIC_CHECK

    spec: MetricCheckSpec
    """The query and its thresholds."""
    status: MetricCheckStatus = Field(default_factory=MetricCheckStatus)
    """Conditions."""
