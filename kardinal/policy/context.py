"""The context of a gate: one Bundle before one environment, or a change without a Bundle, at one moment.

Only time moves inside a context: the schedule, in UTC, and the soak. Everything else is fixed when it is made, so that
the same context can be asked what it would answer at another moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from kardinal.api import Bundle
from kardinal.api.image import bundle_version
from kardinal.api.resolved import unpinned_images
from kardinal.policy.attestation import NOT_ATTESTED, Attestation
from kardinal.policy.attributes import DAYS
from kardinal.policy.soak import Soak

__all__ = ["BUNDLE_ROOTS", "SOAK", "Attributes", "ChangeContext", "Context"]

SOAK = "bundle.upstreamSoakMinutes"
PREVIOUS = "previousBundle.version"
ATTESTED = "bundle.attested"
TAG_MOVED = "bundle.tagMoved"

BUNDLE_ROOTS = frozenset({"bundle", "previousBundle"})
"""The variables that only a Bundle has."""

_NO_BUNDLE = Soak(unknown="no Bundle brings the change")
_NOTHING_YET = Soak(unknown="nothing has been promoted yet")


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
    soak: Soak = _NO_BUNDLE

    def scope(self, now: datetime) -> dict[str, Any]:
        return {"schedule": _schedule(now), "environment": {"name": self.environment, "approval": self.approval}}

    def absence(self, path: str) -> str:
        return f"{path} is not set"


@dataclass(frozen=True, slots=True)
class Context:
    bundle: Bundle
    environment: str
    approval: str
    soak: Soak = _NOTHING_YET
    previous_version: str | None = None
    """The version that was Verified last in the environment, of another Bundle."""
    attestation: Attestation = NOT_ATTESTED
    first: bool = False
    """Whether nothing comes before the environment: its tags were looked up when the Bundle started."""

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
            "intent": spec.intent.model_copy(update={"requests": None, "rollback": None}).to_json(),
            "emergency": spec.intent.rollback is not None and spec.intent.rollback.emergency,
            "attested": self.attestation.scope.to_json() if self.attestation.scope else {},
        }
        if self.soak.is_known:
            bundle["upstreamSoakMinutes"] = self.soak.minutes(now)
        if not isinstance(moved := self._tag_moved(), str):
            bundle["tagMoved"] = moved
        return {
            "bundle": bundle,
            "schedule": _schedule(now),
            "environment": {"name": self.environment, "approval": self.approval},
            "previousBundle": {"version": self.previous_version} if self.previous_version else {},
        }

    def absence(self, path: str) -> str:
        """Why the attribute at `path` has no value."""
        if path == SOAK and not self.soak.is_known:
            return self.soak.unknown
        if path.startswith(ATTESTED) and self.attestation.scope is None:
            return f"{path} is not set: {self.attestation.problem}"
        if path == TAG_MOVED and isinstance(why := self._tag_moved(), str):
            return why
        if path == PREVIOUS:
            return f"no other Bundle has been Verified in {self.environment}: {path} is not set"
        return f"{path} is not set"

    def _tag_moved(self) -> bool | str:
        """Return whether a tag is another image than when the Bundle started, or why that is not known."""
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


def _schedule(now: datetime) -> dict[str, Any]:
    return {"isWeekend": now.weekday() >= 5, "hour": now.hour, "dayOfWeek": DAYS[now.weekday()]}
