"""The soak of a Bundle: for how long it has been healthy in every upstream of an environment (pure).

In one environment, the healthy time is the time since the Bundle became healthy without a break, plus earlier healthy
time that ended only because the environment could not be observed. Degraded resets it to zero. Time without observation
does not count. With several upstreams, the shortest healthy time is the soak.

If an upstream is not Verified, the soak is unknown, which differs from a soak of zero: `bundle.upstreamSoakMinutes <
60` must not open a gate because data is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import EnvironmentStatus
from kardinal.promotion.api.promotion_step import PromotionStepStatus

__all__ = ["HealthyTime", "Soak", "healthy_time", "healthy_times", "upstream_soak"]

_NONE = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthyTime:
    """For how long a Bundle has been healthy in one environment.

    The clock of the agent that reports it may be wrong. So a `since` in the future counts as zero, and the healthy time
    is at most the time since `created`, which comes from the API server.
    """

    since: datetime | None = None
    """The start of the current healthy period; None while the Bundle is unhealthy or cannot be observed."""
    before: timedelta = _NONE
    """The healthy time before `since`, or before the environment could no longer be observed."""
    until: datetime | None = None
    """The time at which another Bundle replaced this one; healthy time does not grow after it."""
    created: datetime | None = None
    """The creation time of the PromotionStep."""

    def at(self, now: datetime) -> timedelta:
        """Return the healthy time at `now`."""
        end = min(now, self.until or now)
        running = max(end - self.since, _NONE) if self.since is not None else _NONE
        found = self.before + running
        return found if self.created is None else min(found, max(end - self.created, _NONE))

    def reaches(self, time: timedelta) -> datetime | None:
        """Return when the healthy time will reach `time`; None if it is not growing."""
        if self.since is None:
            return None
        reached = self.since + max(time - self.before, _NONE)
        return reached if self.created is None else max(reached, self.created + time)


def healthy_time(
    found: PromotionStepStatus | EnvironmentStatus, *, created: datetime | None = None, until: datetime | None = None
) -> HealthyTime | None:
    """Return the healthy time from the status of a step or of a Bundle's environment; None if it is not Verified."""
    if found.state != "Verified" or found.verified_at is None:
        return None
    return HealthyTime(since=found.healthy_since, before=found.healthy_for or _NONE, until=until, created=created)


def healthy_times(bundle: Bundle) -> dict[str, HealthyTime]:
    """Return the healthy time of each environment in which the status of `bundle` says Verified."""
    found = {name: healthy_time(entry, until=entry.replaced_at) for name, entry in bundle.status.environments.items()}
    return {name: time for name, time in found.items() if time is not None}


@dataclass(frozen=True, slots=True)
class Soak:
    """The healthy times of all upstreams of an environment, or the reason why the soak is unknown."""

    times: Sequence[HealthyTime] = ()
    unknown: str = ""

    @property
    def is_known(self) -> bool:
        return bool(self.times)

    def minutes(self, now: datetime) -> float:
        """Return the soak in minutes; 0 if it is unknown."""
        return min((each.at(now) for each in self.times), default=_NONE).total_seconds() / 60

    def reaches(self, minutes: float) -> datetime | None:
        """Return when the soak will reach `minutes`; None if no healthy time is growing."""
        moments = [each.reaches(timedelta(minutes=minutes)) for each in self.times]
        return max((moment for moment in moments if moment is not None), default=None)


def upstream_soak(environment: str, upstreams: Mapping[str, HealthyTime | None]) -> Soak:
    """Return the soak before `environment`. The value of an upstream is None if the Bundle is not Verified there."""
    if not upstreams:
        return Soak(unknown=f"{environment} has no upstream")
    missing = [name for name, time in upstreams.items() if time is None]
    if missing:
        return Soak(unknown=f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not Verified")
    return Soak(times=tuple(time for time in upstreams.values() if time is not None))
