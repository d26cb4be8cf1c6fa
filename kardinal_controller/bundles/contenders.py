"""Bundles of one Pipeline and type as the others see them: how far each is in each environment, and by which intent.

A contender is read from the status of a Bundle and not from its steps. So all other Bundles see the same facts about
it, and each change is one event. A Pipeline may have thousands of Bundles, so plain JSON is read instead of models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api.bundle import ENDED_ENVIRONMENT_STATES, WHEN_FALSE, EnvironmentStatus
from kardinal.promotion.translation.environment_order import ancestors

__all__ = ["DISPLACED", "Contender", "Order", "Standing", "orders_of", "standings_of"]

Order = tuple[datetime, float]
"""Sorts intents from the oldest to the newest: the time of creation, and the sequence number of the controller."""

DISPLACED = "Superseded"
"""The state of an entry in which another Bundle has superseded this one and nothing is under way any more."""

_AT_WORK = frozenset(["WaitingForMerge", "HealthChecking", "Verified"])
"""States that a promotion reaches only with an edit that was found good."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a Bundle is in one environment."""

    state: str = "Pending"
    admitted: bool = False
    """Whether the Bundle may write to the environment."""
    prepared: bool = False
    """Whether the edit was found good; it waits to be written."""
    landed_at: datetime | None = None
    """The time since which the change has been on the deployed branch; nothing more is written for it."""
    displaced: bool = False
    """Whether the Bundle must not go on in the environment: it was superseded or stopped there."""
    request: str | None = None
    """The id of the request by which the Bundle goes to the environment; None if it goes there since its creation."""
    landed_before: tuple[str | None, ...] = ()
    """The `request` of each earlier attempt that has landed."""

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Standing:
        """Read an entry of `status.environments`."""
        state = entry.get("state", "Pending")
        return cls(
            state=state,
            admitted="admittedAt" in entry,
            prepared="preparedAt" in entry,
            landed_at=_time(entry.get("promotedAt") or entry.get("verifiedAt")),
            displaced="displacedBy" in entry or "stopped" in entry,
            request=entry.get("request"),
            landed_before=tuple(each.get("request") for each in entry.get("attempts", ()) if "promotedAt" in each),
        )

    @classmethod
    def of(cls, entry: EnvironmentStatus) -> Standing:
        """Return the standing of an entry of a model, as `read` does for JSON."""
        return cls(
            state=entry.state,
            admitted=entry.admitted_at is not None,
            prepared=entry.prepared_at is not None,
            landed_at=entry.promoted_at or entry.verified_at,
            displaced=entry.displaced_by is not None or entry.stopped is not None,
            request=entry.request,
            landed_before=tuple(each.request for each in entry.attempts or () if each.promoted_at is not None),
        )

    @property
    def landed(self) -> bool:
        return self.landed_at is not None

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED_ENVIRONMENT_STATES

    @property
    def has_good_edit(self) -> bool:
        return self.prepared or self.landed or self.state in _AT_WORK

    @property
    def is_stopped(self) -> bool:
        """Return whether the Bundle goes no further in this environment, and so to none downstream."""
        return self.state == "Failed" or (self.displaced and self.state != "Verified")


@dataclass(frozen=True)
class Contender:
    """One Bundle, seen from another one or from itself."""

    name: str
    created: Order
    standings: Mapping[str, Standing] = field(default_factory=dict)
    requests: Mapping[str, Order] = field(default_factory=dict)
    """The order of the requests that were accepted, by id."""
    pinned: bool = False
    rolls_back: bool = False
    """Whether it is a rollback, which waits in no queue."""
    pending: bool = False
    """Whether there is no decision about it yet, so that it may start at any moment."""
    has_graph: bool = True
    """Whether it has a Graph, which creates its steps, or will get it again."""
    read_upstreams: Callable[[], Mapping[str, tuple[str, ...]]] = dict

    @cached_property
    def upstreams(self) -> Mapping[str, tuple[str, ...]]:
        """Environment -> its upstream environments; empty if they are not known."""
        return self.read_upstreams()

    def order_at(self, environment: str) -> Order:
        """Return the order of the intent by which the Bundle goes to an environment."""
        here = self.standings.get(environment)
        return self._order_of(here.request) if here is not None else self.created

    def landed_by(self, environment: str) -> Order | None:
        """Return the order of the newest intent by which the Bundle has landed there; None if it never has."""
        here = self.standings.get(environment)
        if here is None:
            return None
        landed = [*here.landed_before, *([here.request] if here.landed else [])]
        return max(map(self._order_of, landed), default=None)

    def is_live(self, environment: str) -> bool:
        """Return whether something may still happen for the Bundle in an environment."""
        here = self.standings.get(environment)
        if here is None or here.has_ended or here.is_stopped or not self.has_graph:
            return False
        return not any(before.is_stopped for before in self._before(environment))

    @property
    def is_under_way(self) -> bool:
        """Return whether something may still happen for the Bundle anywhere."""
        return any(map(self.is_live, self.standings))

    def holds(self, environment: str) -> bool:
        """Return whether the Bundle may be writing to an environment at this moment."""
        here = self.standings.get(environment)
        return here is not None and self.has_graph and here.admitted and not (here.landed or here.has_ended)

    def landed(self, environment: str) -> bool:
        here = self.standings.get(environment)
        return here is not None and here.landed

    def arrives_next(self, environment: str) -> bool:
        """Return whether the Bundle is live in an environment and has landed in its upstream environments.

        Upstream environments to which the Bundle does not go, as in a rollback, do not count.
        """
        if not self.is_live(environment):
            return False
        upstreams = self.upstreams.get(environment)
        return upstreams is not None and all(each not in self.standings or self.landed(each) for each in upstreams)

    def with_standings(self, entries: Mapping[str, EnvironmentStatus]) -> Contender:
        """Return the same Bundle with other entries."""
        return replace(self, standings={name: Standing.of(entry) for name, entry in entries.items()})

    def _order_of(self, request: str | None) -> Order:
        return self.requests.get(request, self.created) if request else self.created

    def _before(self, environment: str) -> Iterable[Standing]:
        if environment not in self.upstreams:
            return
        for name in ancestors(self.upstreams, environment):
            if (standing := self.standings.get(name)) is not None:
                yield standing


def orders_of(bundle: JsonObject) -> dict[str, Order]:
    """Return the order of the accepted requests of a Bundle by id."""
    found = (bundle.get("status") or {}).get("requests") or ()
    return {
        each["id"]: (datetime.fromisoformat(each["after"]), each["sequence"])
        for each in found
        if each["state"] == "Accepted"
    }


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def standings_of(bundle: JsonObject) -> dict[str, Standing]:
    """Return the standings of a Bundle by environment; it has none in those that it leaves out."""
    entries: Mapping[str, Any] = (bundle.get("status") or {}).get("environments") or {}
    return {name: Standing.read(entry) for name, entry in entries.items() if entry.get("reason") != WHEN_FALSE}
