"""Which Bundle writes to an environment, and which gives way: the rules of docs/design/bundle-life.md (pure).

They are applied for one Bundle at a time, to its own entries; what it may not do to the others, each of them does to
itself when it sees this one. Three facts stand in an entry and are believed by the agent:

displacedBy   a newer Bundle has taken the environment over: what has not landed is withdrawn, and nothing is started
admittedAt    the Bundle may write there; at most one of a Pipeline and type may at a time
preparedAt    its edit is found good, and it waits to be admitted

A Bundle is admitted only once its step is there, or is sure to come at once. So one that is displaced before cannot be
writing, whatever its agent has not heard of yet; and of one that was admitted before, the end of its step says that it
writes no more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from kardinal.api.bundle import EnvironmentStatus
from kardinal_controller.bundles.contenders import DISPLACED, Contender

__all__ = ["first_before", "landed_after", "settled", "taker"]

NO_HOLDS: Mapping[str, str] = MappingProxyType({})


def settled(
    own: Contender,
    entries: Mapping[str, EnvironmentStatus],
    others: Sequence[Contender],
    *,
    started: Collection[str],
    coming: Collection[str],
    queue: bool,
    now: datetime,
    held: Mapping[str, str] = NO_HOLDS,
) -> dict[str, EnvironmentStatus]:
    """Return the entries of a Bundle with what follows for them from the other Bundles.

    `started` are the environments that have a step, `coming` those whose step nothing holds back any more. In a queue
    only rollbacks take environments over. `held` has the Bundle that the hold of an environment lets through: no other
    is admitted there, and from that one none that has to wait takes over.
    """
    found = dict(entries)
    takers = [other for other in others if other.rolls_back] if queue else others
    for name, entry in entries.items():
        own = own.with_standings(found)
        let_through = held.get(name) == own.name
        if (newer := taker(own, name, takers, started=name in started, let_through=let_through)) is not None:
            found[name] = entry.model_copy(update={"displaced_by": newer.name})
    for name, entry in found.items():
        if entry.displaced_by is not None and _is_at_rest(own, name, entry, started=name in started):
            found[name] = entry.model_copy(update={"state": DISPLACED, "message": None})
        elif entry.stopped is not None and _is_at_rest(own, name, entry, started=name in started):
            found[name] = entry.model_copy(update={"state": "Failed", "message": entry.message or entry.stopped})
    own = own.with_standings(found)
    for name, entry in found.items():
        may_write = held.get(name, own.name) == own.name
        if may_write and entry.admitted_at is None and own.is_live(name) and (name in started or name in coming):
            first = first_before(own, name, others, queue=queue)
            update = {"admitted_at": now} if first is None else {"message": f"waits for Bundle {first.name}"}
            found[name] = entry.model_copy(update=update)
        if entry.state == "Verified" and entry.replaced_at is None and (own.is_under_way or entry.healthy is False):
            replaced = any(_landed_after(other, name, entry) for other in others)
            found[name] = entry.model_copy(update={"replaced_at": now if replaced else None})
    return found


def taker(
    own: Contender, environment: str, others: Sequence[Contender], *, started: bool, let_through: bool = False
) -> Contender | None:
    """Return the newest Bundle that takes an environment over from `own`; None where none does.

    A step that is there gives way to one with a good edit, and one that has landed only to one that has landed after
    it: until then it may still be proven. Without a step, the newer Bundle only has to be the next to arrive. Where a
    hold lets `own` alone through, the others would take its place and then wait.
    """
    if own.pinned or not own.is_live(environment):
        return None
    own_order, landed = own.order_at(environment), own.landed(environment)

    if (newer := landed_after(own, environment, others)) is not None:
        return newer

    def takes(other: Contender) -> bool:
        here = other.standings.get(environment)
        if here is None or other.order_at(environment) < own_order:
            return False
        if landed or let_through or not other.is_live(environment):
            return False
        return here.has_good_edit if started else other.arrives_next(environment)

    return max(filter(takes, others), key=lambda other: other.order_at(environment), default=None)


def landed_after(own: Contender, environment: str, others: Sequence[Contender]) -> Contender | None:
    """Return the Bundle that has landed in an environment by the newest intent, if that is newer than `own`'s."""
    found = [(order, other) for other in others if (order := other.landed_by(environment)) is not None]
    order, newest = max(found, key=lambda pair: pair[0], default=(None, None))
    return newest if order is not None and order > own.order_at(environment) else None


def first_before(own: Contender, environment: str, others: Sequence[Contender], *, queue: bool) -> Contender | None:
    """Return a Bundle that goes first where `own` wants to write; None where it may."""
    own_order, queue = own.order_at(environment), queue and not own.rolls_back

    def goes_first(other: Contender) -> bool:
        if other.holds(environment):
            return True
        if other.order_at(environment) > own_order or not (queue or other.pinned):
            return False
        # One that has not been decided about may be about to start.
        return other.pending or other.is_live(environment)

    return min(filter(goes_first, others), key=lambda other: other.order_at(environment), default=None)


def _landed_after(other: Contender, environment: str, entry: EnvironmentStatus) -> bool:
    here, ours = other.standings.get(environment), entry.promoted_at or entry.verified_at
    return here is not None and here.landed_at is not None and ours is not None and here.landed_at > ours


def _is_at_rest(own: Contender, name: str, entry: EnvironmentStatus, *, started: bool) -> bool:
    """Return whether nothing is under way in an environment that was taken over."""
    if entry.state in ("Verified", DISPLACED):
        return False
    if entry.state == "Failed":
        return True
    return not started and (entry.admitted_at is None or not own.has_graph)
