"""People's requests to a Bundle: whether each is accepted, and what follows for the entries (pure).

A request counts from when it was first seen here, and is decided about once; its answer stays in the status. Accepted,
it changes entries: the environment is gone to by a newer intent, and where something has ended there, another attempt
begins. The Graph and the agent follow the entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kardinal.objects.text import cut
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import KEPT_ATTEMPTS, AttemptRecord, EnvironmentStatus, IntentRequest, RequestStatus
from kardinal.promotion.api.evidence import EARLIER_EVIDENCE_BYTES, bounded
from kardinal.promotion.translation.environment_order import ancestors
from kardinal_controller.bundles.contenders import DISPLACED, Contender, Order
from kardinal_controller.bundles.supersession import landed_after

__all__ = ["RequestAnswers", "Situation", "answered", "unseen"]


_EARLIER_MESSAGE = 256
"""The most characters of the message of an earlier attempt; the rest is cut."""


@dataclass(frozen=True, slots=True)
class Situation:
    """The facts about a Bundle by which requests are accepted or refused.

    `upstreams`: environment -> its upstream environments, for all environments that the Bundle may go to.
    """

    pipeline: str
    upstreams: Mapping[str, Sequence[str]]
    entries: Mapping[str, EnvironmentStatus]
    others: Sequence[Contender]
    own: Contender


@dataclass(frozen=True, slots=True)
class RequestAnswers:
    """The answers to requests, and the entries of the environments that follow from the accepted ones."""

    requests: tuple[RequestStatus, ...]
    entries: dict[str, EnvironmentStatus]


def unseen(bundle: Bundle) -> list[IntentRequest]:
    """Return the requests without an answer, each id once."""
    seen = {request.id for request in bundle.status.requests or ()}
    return [
        request
        for request in {each.id: each for each in bundle.spec.intent.requests or ()}.values()
        if request.id not in seen
    ]


def answered(requests: Sequence[IntentRequest], situation: Situation, *, first: Order, now: datetime) -> RequestAnswers:
    """Answer new requests one after the other; `first` is the order of the first one."""
    after, number = first
    entries = dict(situation.entries)
    found = []
    for offset, request in enumerate(requests):
        here = replace(situation, entries=entries)
        changed = _retry(request, here) if request.action == "retry" else _promote(request, here)
        if not isinstance(changed, str):
            entries |= changed
        found.append(
            RequestStatus(
                id=request.id,
                action=request.action,
                environment=request.environment,
                state="Refused" if isinstance(changed, str) else "Accepted",
                message=changed if isinstance(changed, str) else None,
                seen_at=now,
                after=after,
                sequence=int(number) + offset,
            )
        )
    return RequestAnswers(tuple(found), entries)


def _retry(request: IntentRequest, here: Situation) -> dict[str, EnvironmentStatus] | str:
    """Return the entry of the next attempt, or the reason why the request is refused."""
    name = request.environment or ""
    entry = here.entries.get(name)
    if entry is None:
        return _unknown(name, here) or f"the Bundle does not go to {name}: {_promotion(here, name)}"
    if entry.state == DISPLACED or entry.displaced_by:
        return f"Bundle {entry.displaced_by} has taken {name} over: {_promotion(here, name)}"
    if entry.state != "Failed":
        return f"{name} is {entry.state}, and only what is Failed is tried again"
    ahead = landed_after(here.own, name, here.others)
    if ahead is not None:
        return f"Bundle {ahead.name}, which is newer, has landed in {name} since: {_promotion(here, name)}"
    return {name: _restarted(entry, request=entry.request)}


def _promote(request: IntentRequest, here: Situation) -> dict[str, EnvironmentStatus] | str:
    """Return the entries that the request changes, or the reason why it is refused."""
    if request.environment is None:
        wanted = list(here.upstreams if not here.entries else here.entries)
        if not wanted:
            return "the Bundle has no Graph yet, which says where it goes"
    else:
        if (why := _unknown(request.environment, here)) is not None:
            return why
        wanted = [request.environment]
    changed: dict[str, EnvironmentStatus] = {}
    for name in wanted:
        if not _runs_in(name, here):
            changed |= {each: _asked_for(each, here, request.id) for each in _way_to(name, here)}
    where = request.environment or "every environment it goes to"
    return changed or f"the Bundle is Verified in {where}, and no other has landed there since"


def _way_to(name: str, here: Situation) -> list[str]:
    """Return an environment with its upstream environments in which the Bundle is not Verified."""
    before = [each for each in here.upstreams if each in ancestors(here.upstreams, name)]
    return [*(each for each in before if not _is_verified(each, here)), name]


def _asked_for(name: str, here: Situation, request: str) -> EnvironmentStatus:
    entry = here.entries.get(name) or EnvironmentStatus(state="Pending")
    if entry.has_ended:
        return _restarted(entry, request=request)
    # A promotion that is under way goes on, by a newer intent.
    return entry.model_copy(update={"request": request, "displaced_by": None, "stopped": None})


def _restarted(entry: EnvironmentStatus, *, request: str | None) -> EnvironmentStatus:
    """Return the entry of the next attempt, with a record of the attempt in `entry`."""
    number = entry.attempt or 1
    record = AttemptRecord(
        attempt=number,
        state=entry.state,
        message=cut(entry.message, _EARLIER_MESSAGE) if entry.message is not None else None,
        request=entry.request,
        displaced_by=entry.displaced_by,
        started_at=entry.started_at,
        promoted_at=entry.promoted_at,
        verified_at=entry.verified_at,
        commit=entry.commit,
        pr_url=entry.pr_url,
        evidence=bounded(entry.evidence, EARLIER_EVIDENCE_BYTES) if entry.evidence is not None else None,
    )
    attempts = (*(entry.attempts or ()), record)[-KEPT_ATTEMPTS:]
    return EnvironmentStatus(
        state="Pending",
        attempt=number + 1,
        attempts=attempts,
        request=request,
        # A failure is rolled back automatically once, however often a person retries.
        rolled_back_by=entry.rolled_back_by,
    )


def _runs_in(name: str, here: Situation) -> bool:
    """Return whether the Bundle is Verified in an environment, and no other Bundle has landed there since."""
    entry = here.entries.get(name)
    if entry is None or entry.state != "Verified":
        return False
    landed = [other.standings[name].landed_at for other in here.others if other.landed(name)]
    since = entry.promoted_at or entry.verified_at
    return since is None or not any(moment is not None and moment > since for moment in landed)


def _is_verified(name: str, here: Situation) -> bool:
    entry = here.entries.get(name)
    return entry is not None and entry.state == "Verified"


def _unknown(name: str, here: Situation) -> str | None:
    if name in here.upstreams or name in here.entries:
        return None
    known = ", ".join(here.upstreams)
    return f"Pipeline {here.pipeline} has no environment {name} that this Bundle may go to; it has {known or 'none'}"


def _promotion(here: Situation, name: str) -> str:
    return f"kardinal promote {here.pipeline} --bundle {here.own.name} --env {name}"
