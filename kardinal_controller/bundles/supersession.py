"""Decide which Bundle writes to an environment, and which is superseded: docs/design/bundle-life.md (pure).

The rules are applied to one Bundle at a time and change only its own entries: each Bundle finds out for itself that
another one has superseded it. Three fields of an entry decide, and the agent acts by them:

displacedBy   a newer Bundle has superseded this one: a change that has not landed is withdrawn, and nothing is started
admittedAt    the Bundle may write to the environment; at most one Bundle of a Pipeline and type may at a time
preparedAt    the edit of the Bundle was found good, and the Bundle waits to be admitted

A Bundle is admitted only when its step exists or is created at once. So a Bundle that is superseded before its
admission cannot be writing, even if its agent does not know of it yet. A Bundle that is superseded after its admission
may be writing until its step has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from kardinal.promotion.api.bundle import EnvironmentStatus
from kardinal_controller.bundles.contenders import DISPLACED, Contender

__all__ = ["first_before", "landed_after", "settled", "successor", "taker"]

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
    """Return the entries of a Bundle with the changes that the other Bundles bring.

    `started`: the environments that have a step. `coming`: those whose step the engine creates at once. In a `queue`
    only rollbacks supersede. `held`: environment with a hold -> the only Bundle that the hold lets through. No other
    Bundle is admitted there, and none that waits for the hold supersedes that Bundle.
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
    """Return the newest Bundle that supersedes `own` in an environment; None if there is none.

    If `own` has a step there, the newer Bundle needs a good edit; if `own` has landed, the newer one must have landed
    later, because until then `own` may still be proven. Without a step, the newer Bundle only has to arrive next.
    `let_through`: a hold lets `own` alone through, so a newer Bundle would supersede it and then wait.
    """
    if own.pinned or not own.is_live(environment):
        return None
    own_order = own.order_at(environment)
    landed = own.landed(environment)

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


def successor(own: Contender, others: Iterable[Contender]) -> Contender | None:
    """Return a newer Bundle that is pending; None if there is none.

    It may start at any moment, so a start of `own` would be pointless: only the newest of a backlog is promoted.
    """
    if own.pinned:
        return None
    return next((other for other in others if other.pending and other.created > own.created), None)


def landed_after(own: Contender, environment: str, others: Sequence[Contender]) -> Contender | None:
    """Return the Bundle that has landed in an environment by the newest intent, if that is newer than `own`'s."""
    found = [(order, other) for other in others if (order := other.landed_by(environment)) is not None]
    order, newest = max(found, key=lambda pair: pair[0], default=(None, None))
    return newest if order is not None and order > own.order_at(environment) else None


def first_before(own: Contender, environment: str, others: Sequence[Contender], *, queue: bool) -> Contender | None:
    """Return the Bundle that must write to an environment before `own` may; None if `own` may write now."""
    own_order = own.order_at(environment)
    queue = queue and not own.rolls_back

    def goes_first(other: Contender) -> bool:
        if other.holds(environment):
            return True
        if other.order_at(environment) > own_order or not (queue or other.pinned):
            return False
        # A pending Bundle may be about to start.
        return other.pending or other.is_live(environment)

    return min(filter(goes_first, others), key=lambda other: other.order_at(environment), default=None)


def _landed_after(other: Contender, environment: str, entry: EnvironmentStatus) -> bool:
    here = other.standings.get(environment)
    ours = entry.promoted_at or entry.verified_at
    return here is not None and here.landed_at is not None and ours is not None and here.landed_at > ours


def _is_at_rest(own: Contender, name: str, entry: EnvironmentStatus, *, started: bool) -> bool:
    """Return whether nothing is under way any more in an environment in which the Bundle was superseded or stopped."""
    if entry.state in ("Verified", DISPLACED):
        return False
    if entry.state == "Failed":
        return True
    return not started and (entry.admitted_at is None or not own.has_graph)
