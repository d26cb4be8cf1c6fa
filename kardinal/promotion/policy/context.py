"""The context of a gate: one Bundle before one environment, or a change without a Bundle.

Inside a context only time moves: the schedule and the soak. All other values are fixed at its creation, so the
same context can be evaluated for another moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.image import bundle_version
from kardinal.promotion.api.resolved import unpinned_images
from kardinal.promotion.metrics.readings import METRICS, MetricReadings
from kardinal.promotion.policy.approvals import EXTERNAL, Approvals
from kardinal.promotion.policy.attestation import NOT_ATTESTED, Attestation
from kardinal.promotion.policy.calendar import Calendar
from kardinal.promotion.policy.inputs import Input
from kardinal.promotion.policy.soak import Soak

__all__ = ["SOAK", "Attributes", "ChangeContext", "GateContext"]

SOAK = "bundle.upstreamSoakMinutes"
PREVIOUS = "previousBundle.version"
ATTESTED = "bundle.attested"
TAG_MOVED = "bundle.tagMoved"

_NO_BUNDLE = Soak(unknown="no Bundle brings the change")
_UTC = Calendar()
_NOTHING_YET = Soak(unknown="nothing has been promoted yet")


class Attributes(Protocol):
    """The values that an expression is evaluated with."""

    @property
    def soak(self) -> Soak: ...

    @property
    def approvals(self) -> Approvals | None: ...

    @property
    def calendar(self) -> Calendar: ...

    @property
    def metrics(self) -> MetricReadings | None: ...

    def scope(self, now: datetime) -> dict[str, Any]:
        """Return the variables of an expression, by name, at `now`."""
        ...

    def absence(self, path: str) -> str:
        """Return why the attribute at `path` has no value."""
        ...


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """The context of a change without a Bundle: it has only the schedule and the environment."""

    environment: str
    approval: str
    soak: Soak = _NO_BUNDLE
    approvals: None = None
    calendar: Calendar = _UTC
    metrics: MetricReadings | None = None

    def scope(self, now: datetime) -> dict[str, Any]:
        return {
            "schedule": self.calendar.schedule(now),
            "environment": {"name": self.environment, "approval": self.approval},
        }

    def absence(self, path: str) -> str:
        return f"{path} is not set"


@dataclass(frozen=True)
class GateContext:
    bundle: Bundle
    environment: str
    approval: str
    soak: Soak = _NOTHING_YET
    previous_version: str | None = None
    """The version of the other Bundle that was Verified last in the environment."""
    attestation: Attestation = NOT_ATTESTED
    first: bool = False
    """Whether the environment has no upstream. Its tags were then looked up when the Bundle started."""
    calendar: Calendar = _UTC
    inputs: Mapping[str, Input] = field(default_factory=dict)
    """Further variables by name. One that the expression does not read may be left out."""
    approvals: Approvals | None = None
    """The approvals at a gate; None if they are not read, as for an expression that needs none."""
    metrics: MetricReadings | None = None
    """The checks that the expression reads; None if checks are not read for this evaluation."""

    def scope(self, now: datetime) -> dict[str, Any]:
        """Return the variables of an expression, by name, at `now`."""
        bundle = self._bundle
        if self.soak.is_known:
            bundle = {**bundle, "upstreamSoakMinutes": self.soak.minutes(now)}
        return {
            "bundle": bundle,
            "schedule": self.calendar.schedule(now),
            "environment": {"name": self.environment, "approval": self.approval},
            "previousBundle": {"version": self.previous_version} if self.previous_version else {},
            **{name: given.value for name, given in self.inputs.items()},
            **(self.approvals.variables(now) if self.approvals is not None else {}),
            **({METRICS: self.metrics.scope(now)} if self.metrics is not None else {}),
        }

    @cached_property
    def _bundle(self) -> dict[str, Any]:
        """The data of the Bundle that time does not change; the search for the next turn reads it at each moment."""
        spec = self.bundle.spec
        bundle: dict[str, Any] = {
            "name": self.bundle.metadata.name,
            "version": bundle_version(spec.artifacts),
            "type": spec.type,
            "labels": self.bundle.metadata.labels,
            "provenance": spec.provenance.to_json() if spec.provenance else {},
            # Requests that people added later are claims, which no gate may rely on.
            "intent": spec.intent.model_copy(update={"requests": None, "rollback": None}).to_json(),
            "emergency": spec.intent.rollback is not None and spec.intent.rollback.emergency,
            "attested": self.attestation.scope.to_json() if self.attestation.scope else {},
        }
        if not isinstance(moved := self._tag_moved(), str):
            bundle["tagMoved"] = moved
        return bundle

    def absence(self, path: str) -> str:
        """Return why the attribute at `path` has no value."""
        root, _, rest = path.partition(".")
        if root in self.inputs:
            return self.inputs[root].absence(rest) or f"{path} is not set"
        if path == SOAK and not self.soak.is_known:
            return self.soak.unknown
        if path.startswith(ATTESTED) and self.attestation.scope is None:
            return f"{path} is not set: {self.attestation.problem}"
        if self.metrics is not None and path.startswith(f"{METRICS}."):
            return self.metrics.absence(path)
        if path == TAG_MOVED and isinstance(why := self._tag_moved(), str):
            return why
        if path.startswith(EXTERNAL):
            return f"{path} is not set: no such external answer about this Bundle counts"
        if path == PREVIOUS:
            return f"no other Bundle has been Verified in {self.environment}: {path} is not set"
        return f"{path} is not set"

    def _tag_moved(self) -> bool | str:
        """Return whether a tag names another image than at the Bundle's start, or the reason why this is unknown."""
        if not unpinned_images(self.bundle.spec.artifacts):
            return False
        status = self.bundle.status
        if status.artifacts is None:
            return "tags were not looked up when the Bundle started: that needs --allow-registries"
        if any(each.moved_to is not None for each in status.artifacts):
            return True
        entry = status.environments.get(self.environment)
        if entry is None or entry.tags_checked_at is None:
            told = next((each.message for each in status.artifacts if each.message is not None), None)
            if told is not None or not self.first:
                return told or f"tags are looked up again when {self.environment} is about to start"
        told = next((each.message or "not known" for each in status.artifacts if each.digest is None), None)
        return told if told is not None else False
