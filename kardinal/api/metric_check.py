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
    address: Url


class MetricCheckSpec(Model):
    provider: MetricProvider
    query: Annotated[LongText, Field(min_length=1)]
    success_condition: Annotated[str, Field(max_length=64, pattern=COMPARISON_PATTERN)]
    failure_condition: Annotated[str | None, Field(max_length=64, pattern=COMPARISON_PATTERN)] = None
    no_data_behavior: Literal["hold", "pass", "fail"] = "hold"


class MetricCheckStatus(Status):
    """Conditions: Ready."""


class MetricCheck(Resource):
    resource: ClassVar[ResourceType] = METRIC_CHECK

    spec: MetricCheckSpec
    status: MetricCheckStatus = Field(default_factory=MetricCheckStatus)
