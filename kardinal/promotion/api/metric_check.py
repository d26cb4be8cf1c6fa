"""MetricCheck: a query for a metric, which gates read and by which a promotion is verified.

A check is about one Bundle in one environment at a time: the placeholders of its query have their values from these. It
is queried only while a gate or a promotion waits for it.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from kardinal.models.base import (
    DnsLabel,
    Duration,
    LongText,
    Model,
    Name,
    Resource,
    SecretReference,
    Status,
    Text,
    Time,
    Url,
)
from kardinal.objects import ResourceType
from kardinal.promotion.kinds import METRIC_CHECK

__all__ = [
    "KEPT_RESULTS",
    "MetricCheck",
    "MetricCheckSpec",
    "MetricCheckStatus",
    "MetricRange",
    "MetricResult",
    "MetricServer",
    "MetricStatus",
]

_COMPARISON = "^(<|<=|>|>=|==|!=) *-?[0-9]+([.][0-9]+)?$"
_NO_COMPARISON = "must compare the value with a number, such as >= 0.99"


def _comparison(text: str) -> str:
    if re.fullmatch(_COMPARISON, text) is None:
        raise ValueError(_NO_COMPARISON)
    return text


# A rule instead of a pattern, whose error would be the regular expression.
Comparison = Annotated[
    str,
    Field(
        max_length=64,
        json_schema_extra={
            "x-kubernetes-validations": [{"rule": f"self.matches('{_COMPARISON}')", "message": _NO_COMPARISON}]
        },
    ),
    AfterValidator(_comparison),
]
"""A comparison with the value of a metric, such as `>= 0.99`."""

KEPT_RESULTS = 32
"""The most results in a status, because etcd limits the size of an object."""

MetricStatus = Literal["Success", "Failure", "NoData", "Error", "Unknown"]


def _between(shortest: str, longest: str) -> dict[str, Any]:
    """Return the rule of a duration that has two bounds; a longer one than CEL reads is refused by its own rule."""
    within = f"duration(self) >= duration('{shortest}') && duration(self) <= duration('{longest}')"
    rule = {
        "rule": f"self.size() > 12 || ({within})",
        "message": f"must be between {shortest} and {longest}",
    }
    return {"x-kubernetes-validations": [rule]}


class MetricServer(Model):
    type: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z][a-zA-Z0-9-]*$")] = "prometheus"
    """The type of the server: `prometheus`, or an installed one. Defaults to `prometheus`."""
    address: Url
    """URL of the server. The operator lists its host with `--allow-metric-hosts`."""
    secret_ref: SecretReference | None = None
    """Secret with the credentials for the server, in the namespace of the check."""


class MetricRange(Model):
    """The time that a range query looks back."""

    duration: Duration
    """Length of the range, up to now."""
    step: Duration
    """Time between two samples."""


class MetricCheckSpec(Model):
    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.range) || has(self.reduce)",
                    "message": "a range has several samples: say by reduce which value they have together",
                    "fieldPath": ".reduce",
                }
            ]
        }
    )

    provider: MetricServer
    """The server that answers the query."""
    query: Annotated[LongText, Field(min_length=1)]
    """Query in PromQL, whose value the conditions are compared with.

    `{{ .AppName }}`, `{{ .Environment }}`, `{{ .Version }}` and `{{ .Namespace }}` stand inside of its strings.
    """
    range: MetricRange | None = None
    """The time that the query looks back. Defaults to an instant query."""
    reduce: Literal["min", "max", "avg", "sum"] | None = None
    """The value of several series, and of all samples of a range: `min`, `max`, `avg` or `sum`.

    Defaults to none: several series are an error.
    """
    success_condition: Comparison
    """Comparison with the value under which the check succeeds, such as `< 0.01`."""
    failure_condition: Comparison | None = None
    """Comparison with the value under which the check fails, such as `>= 0.05`.

    Defaults to every value that is no success.
    """
    no_data_behavior: Literal["hold", "pass", "fail"] = "hold"
    """Result without data: `hold`, `pass` or `fail`. Defaults to `hold`."""
    interval: Annotated[Duration, Field(json_schema_extra=_between("2s", "1h"))] = timedelta(minutes=1)
    """The time between two queries, from 2s to 1h. Defaults to 1m."""
    timeout: Annotated[Duration, Field(json_schema_extra=_between("1s", "25s"))] = timedelta(seconds=10)
    """The time after which a query without an answer is an error, from 1s to 25s. Defaults to 10s."""
    failure_limit: Annotated[int, Field(ge=1, le=100)] = 1
    """The number of failures in a row by which a promotion that `verify` names the check for fails. Defaults to 1."""


class MetricResult(Model):
    """The last result for one Bundle in one environment."""

    namespace: DnsLabel
    """Namespace of the Bundle."""
    bundle: Name
    """Name of the Bundle."""
    environment: DnsLabel
    """Name of the environment."""
    status: MetricStatus
    """`Success` or `Failure` by the conditions, `Unknown` between them, `NoData` or `Error`."""
    value: float | None = None
    """The value; absent if there is none."""
    at: Time
    """The time of the last query that is written here: the first, a change of `status`, or 5 minutes after the last."""
    since: Time
    """The time since which every query has had this `status`."""
    failures: Annotated[int | None, Field(ge=1)] = None
    """Number of failures in a row, up to `failureLimit`."""
    message: Text | None = None
    """The reason why there is no value."""


class MetricCheckStatus(Status):
    """Conditions: Ready (the server may be asked with this query)."""

    results: Annotated[tuple[MetricResult, ...], Field(max_length=KEPT_RESULTS)] = ()
    """The last results, those of promotions that wait for their verification first."""

    def result(self, namespace: str, bundle: str, environment: str) -> MetricResult | None:
        """Return the result for one Bundle in one environment."""
        wanted = (namespace, bundle, environment)
        return next((each for each in self.results if (each.namespace, each.bundle, each.environment) == wanted), None)


class MetricCheck(Resource):
    resource: ClassVar[ResourceType] = METRIC_CHECK

    spec: MetricCheckSpec
    """The query and its thresholds."""
    status: MetricCheckStatus = Field(default_factory=MetricCheckStatus)
    """Conditions and results."""
