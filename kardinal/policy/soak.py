"""The soak of a Bundle: for how long it has run, healthy, in every environment before another one (pure).

In one environment it is the time since the Bundle is healthy there without a break, and the healthy time from before
that was interrupted only because the environment could not be seen. Degraded takes all of it away; what cannot be seen
is not counted. Before an environment with several upstreams the least counts.

Where an upstream is not Verified there is no soak at all rather than one of zero: `bundle.upstreamSoakMinutes < 60`
must not open a gate for want of data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kardinal.api import Bundle
from kardinal.api.bundle import EnvironmentStatus
from kardinal.api.promotion_step import PromotionStepStatus

__all__ = ["HealthyTime", "Soak", "healthy_time", "healthy_times", "upstream_soak"]

_NONE = timedelta()


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthyTime:
    """For how long a Bundle has been healthy in one environment.

    The agent that says so may have another clock. So a `since` to come counts as no time, and no more counts than has
    passed since `created`, a time of the API server.
    """

    since: datetime | None = None
    """Since when it is healthy without a break; None while it is not, or cannot be seen."""
    before: timedelta = _NONE
    """The healthy time before `since`, or before it could not be seen any more."""
    until: datetime | None = None
    """Since when another Bundle runs there: the time stays as it was then."""
    created: datetime | None = None
    """The creation of its PromotionStep."""

    def at(self, now: datetime) -> timedelta:
        """Return the healthy time at a moment."""
        end = min(now, self.until or now)
        running = max(end - self.since, _NONE) if self.since is not None else _NONE
        found = self.before + running
        return found if self.created is None else min(found, max(end - self.created, _NONE))

    def reaches(self, time: timedelta) -> datetime | None:
        """Return when the healthy time comes to `time`, if nothing happens; None for never, or long ago."""
        if self.since is None:
            return None
        reached = self.since + max(time - self.before, _NONE)
        return reached if self.created is None else max(reached, self.created + time)


def healthy_time(
    found: PromotionStepStatus | EnvironmentStatus, *, created: datetime | None = None, until: datetime | None = None
) -> HealthyTime | None:
    """Return the healthy time of an environment as its step or its Bundle says; None where it is not Verified."""
    if found.state != "Verified" or found.verified_at is None:
        return None
    # One that was Verified by a version that did not note it has been healthy since.
    since = found.verified_at if found.healthy is None else found.healthy_since
    return HealthyTime(since=since, before=found.healthy_for or _NONE, until=until, created=created)


def healthy_times(bundle: Bundle) -> dict[str, HealthyTime]:
    """Return the healthy time of each environment where a Bundle is Verified, as the Bundle says."""
    found = {name: healthy_time(entry, until=entry.replaced_at) for name, entry in bundle.status.environments.items()}
    return {name: time for name, time in found.items() if time is not None}


@dataclass(frozen=True, slots=True)
class Soak:
    """The healthy times of the environments before another one, or why there is no soak."""

    times: Sequence[HealthyTime] = ()
    unknown: str = ""

    @property
    def is_known(self) -> bool:
        return bool(self.times)

    def minutes(self, now: datetime) -> float:
        """Return the soak; 0 where there is none."""
        return min((each.at(now) for each in self.times), default=_NONE).total_seconds() / 60

    def reaches(self, minutes: float) -> datetime | None:
        """Return when the soak comes to so many minutes, if nothing happens; None for never, or long ago."""
        moments = [each.reaches(timedelta(minutes=minutes)) for each in self.times]
        return max((moment for moment in moments if moment is not None), default=None)


def upstream_soak(environment: str, upstreams: Mapping[str, HealthyTime | None]) -> Soak:
    """Return the soak before `environment`; `upstreams` says of each upstream None if it is not Verified."""
    if not upstreams:
        return Soak(unknown=f"{environment} has no upstream")
    missing = [name for name, time in upstreams.items() if time is None]
    if missing:
        return Soak(unknown=f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not Verified")
    return Soak(times=tuple(time for time in upstreams.values() if time is not None))
