"""The evidence of a promotion: gate results, approvers, metrics and durations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kardinal.api.base import Duration, Model, ShortText, Text

__all__ = ["Evidence", "GateResult"]


class GateResult(Model):
    """One gate as it stood when its environment was Verified, with the values it saw."""

    name: Annotated[str, Field(max_length=253)]
    """Name of the gate."""
    scope: Literal["org", "team"] | None = None
    """`org` or `team`."""
    result: Literal["pass", "fail"]
    """`pass` or `fail`."""
    reason: Text | None = None
    """The values that were seen."""


class Evidence(Model):
    metrics: Annotated[dict[str, float], Field(max_length=32)] = Field(default_factory=dict)
    """Values of metrics by name."""
    gate_duration: Duration | None = None
    """How long gates held the promotion."""
    approved_by: Annotated[tuple[ShortText, ...], Field(max_length=16)] = ()
    """People who approved it."""
    policy_gates: Annotated[tuple[GateResult, ...], Field(max_length=64)] = ()
    """The gates with their answers."""
