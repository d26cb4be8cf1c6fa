"""A problem of a blueprint or a template: the field that is wrong, and what to write there."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SupplyChainProblem"]


@dataclass(frozen=True, slots=True)
class SupplyChainProblem:
    """One complaint at a field such as `spec.resources[0].sources[1].resource`."""

    field: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.field}: {self.said}"

    @property
    def said(self) -> str:
        """Return the message with its remedy."""
        return f"{self.message}; {self.remedy}" if self.remedy else self.message
