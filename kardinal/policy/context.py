"""The context of a gate: one Bundle before one environment, or a change without a Bundle, at one moment.

Only time moves inside a context: the schedule, in UTC, and the soak. Everything else is fixed when it is made, so that
the same context can be asked what it would answer at another moment.

The soak counts from when the last of the upstream environments was Verified. Where there is none, or one is not
Verified, it is not there at all rather than zero: `bundle.upstreamSoakMinutes < 60` must not open a gate for want of
data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from kardinal.api import Bundle
from kardinal.api.image import bundle_version
from kardinal.policy.attestation import NOT_ATTESTED, Attestation
from kardinal.policy.attributes import DAYS

__all__ = ["BUNDLE_ROOTS", "SOAK", "Attributes", "ChangeContext", "Context", "Soak", "upstream_soak"]

SOAK = "bundle.upstreamSoakMinutes"
PREVIOUS = "previousBundle.version"
ATTESTED = "bundle.attested"

BUNDLE_ROOTS = frozenset({"bundle", "previousBundle"})
"""The variables that only a Bundle has."""


@dataclass(frozen=True, slots=True)
class Soak:
    """Since when a Bundle runs in all upstream environments, or why that cannot be said.

    From `until` on another Bundle runs in one of them: the soak stays as it was then.
    """

    since: datetime | None = None
    unknown: str = ""
    until: datetime | None = None

    def minutes(self, now: datetime) -> float:
        now = min(now, self.until or now)
        elapsed = now - self.since if self.since else timedelta()
        return max(elapsed, timedelta()).total_seconds() / 60


def upstream_soak(
    environment: str, verified: Mapping[str, datetime | None], *, replaced: Iterable[datetime | None] = ()
) -> Soak:
    """Return the soak before `environment`.

    `verified` says of each upstream since when it is Verified, None if it is not, and `replaced` since when another
    Bundle runs there.
    """
    if not verified:
        return Soak(unknown=f"{environment} has no upstream")
    missing = [name for name, since in verified.items() if since is None]
    if missing:
        return Soak(unknown=f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not Verified")
    since = max(since for since in verified.values() if since is not None)
    return Soak(since=since, until=min(filter(None, replaced), default=None))


class Attributes(Protocol):
    """The values that an expression is evaluated with."""

    @property
    def soak(self) -> Soak: ...

    def scope(self, now: datetime) -> dict[str, Any]:
        """Return the variables of an expression."""
        ...

    def absence(self, path: str) -> str:
        """Return why the attribute at `path` has no value."""
        ...


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """The context of a change that no Bundle brings: time and place alone."""

    environment: str
    approval: str
    soak: Soak = Soak(unknown="no Bundle brings the change")

    def scope(self, now: datetime) -> dict[str, Any]:
        return {"schedule": _schedule(now), "environment": {"name": self.environment, "approval": self.approval}}

    def absence(self, path: str) -> str:
        return f"{path} is not set"


@dataclass(frozen=True, slots=True)
class Context:
    bundle: Bundle
    environment: str
    approval: str
    soak: Soak = Soak(unknown="nothing has been promoted yet")
    previous_version: str | None = None
    """The version that was Verified last in the environment, of another Bundle."""
    attestation: Attestation = NOT_ATTESTED

    def scope(self, now: datetime) -> dict[str, Any]:
        """Return the variables of an expression."""
        spec = self.bundle.spec
        bundle: dict[str, Any] = {
            "name": self.bundle.metadata.name,
            "version": bundle_version(spec.artifacts),
            "type": spec.type,
            "labels": self.bundle.metadata.labels,
            "provenance": spec.provenance.to_json() if spec.provenance else {},
            # What people have asked for since is claims of theirs, and none that a gate may rest on.
            "intent": spec.intent.model_copy(update={"requests": None}).to_json(),
            "attested": self.attestation.scope.to_json() if self.attestation.scope else {},
        }
        if self.soak.since is not None:
            bundle["upstreamSoakMinutes"] = self.soak.minutes(now)
        return {
            "bundle": bundle,
            "schedule": _schedule(now),
            "environment": {"name": self.environment, "approval": self.approval},
            "previousBundle": {"version": self.previous_version} if self.previous_version else {},
        }

    def absence(self, path: str) -> str:
        """Why the attribute at `path` has no value."""
        if path == SOAK and self.soak.since is None:
            return self.soak.unknown
        if path.startswith(ATTESTED) and self.attestation.scope is None:
            return f"{path} is not set: {self.attestation.problem}"
        if path == PREVIOUS:
            return f"no other Bundle has been Verified in {self.environment}: {path} is not set"
        return f"{path} is not set"


def _schedule(now: datetime) -> dict[str, Any]:
    return {"isWeekend": now.weekday() >= 5, "hour": now.hour, "dayOfWeek": DAYS[now.weekday()]}
