"""Bundles of one Pipeline and type as the others see them: how far each is in each environment, and by which intent.

A contender is read from what the status of a Bundle says, not from its steps: then every Bundle sees the same of every
other, and a change of it is one event. Thousands of Bundles may belong to a Pipeline, so plain JSON is read, no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from kardinal.api.bundle import EnvironmentStatus
from kardinal.objects import JsonObject
from kardinal.translation.environment_order import ancestors

__all__ = ["DISPLACED", "Contender", "Order", "Standing", "orders_of", "standings_of"]

Order = tuple[datetime, float]
"""Sorts intents from the oldest to the newest: a time of the API server, and a number given here."""

DISPLACED = "Superseded"
"""The state of an environment that another Bundle has taken over and in which nothing is under way any more."""

_ENDED = frozenset(["Verified", "Failed", DISPLACED])
_AT_WORK = frozenset(["WaitingForMerge", "HealthChecking", "Verified"])
"""States that a promotion reaches only with an edit that was found good."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a Bundle is in one environment."""

    state: str = "Pending"
    admitted: bool = False
    """Whether it may write there."""
    prepared: bool = False
    """Whether its edit is found good and waits to be written."""
    landed_at: datetime | None = None
    """Since when its change is where the environment takes it from: it writes nothing more there."""
    displaced: bool = False
    """Whether it has to go no further there: another one has taken the environment over, or it was stopped."""
    request: str | None = None
    """The request by which the Bundle goes there; None for its creation."""
    landed_before: tuple[str | None, ...] = ()
    """The requests, as above, of earlier attempts that have landed."""

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
        """Return the standing that an entry stands for."""
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
        return self.state in _ENDED

    @property
    def has_good_edit(self) -> bool:
        return self.prepared or self.landed or self.state in _AT_WORK

    @property
    def is_stopped(self) -> bool:
        """Return whether nothing more comes of it there, and of what follows."""
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
    """Whether it has not been decided about, and may start any moment."""
    has_graph: bool = True
    """Whether a Graph is there that can make, or has made, its steps; or will be made again."""
    read_upstreams: Callable[[], Mapping[str, tuple[str, ...]]] = dict

    @cached_property
    def upstreams(self) -> Mapping[str, tuple[str, ...]]:
        """The order of the environments, as far as it is known."""
        return self.read_upstreams()

    def order_at(self, environment: str) -> Order:
        """Return by how new an intent the Bundle goes to an environment."""
        here = self.standings.get(environment)
        return self._order_of(here.request) if here is not None else self.created

    def landed_by(self, environment: str) -> Order | None:
        """Return the newest intent by which the Bundle has landed in an environment; None where it never has."""
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
        """Return whether the Bundle goes to an environment and has landed in all that come before it.

        A rollback does not go to those before.
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
    """Return the standings of a Bundle by environment."""
    entries: Mapping[str, Any] = (bundle.get("status") or {}).get("environments") or {}
    return {name: Standing.read(entry) for name, entry in entries.items()}
