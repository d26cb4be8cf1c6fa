"""The approvals that a gate reads, and the signature by which the controller knows its own (pure).

The API server gives each object a uid of its own, which the signature covers: an Approval that was deleted and is
created again with the same content is not signed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from kardinal.objects.conditions import format_time
from kardinal.promotion.api.approval import Approval

__all__ = ["APPROVALS", "EXTERNAL", "ApprovalSigner", "Approvals", "approvals_of"]

APPROVALS = "approvals"
EXTERNAL = "externalApproval"

_PURPOSE = b"kardinal approval v1"


@dataclass(frozen=True, slots=True)
class _Given:
    """The approval of one person for the gate."""

    approver: str
    at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Answer:
    """The last answer of a system outside."""

    approved: bool
    reason: str
    at: datetime
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Approvals:
    """The approvals of one Bundle before one environment at one gate, those that have expired included."""

    given: tuple[_Given, ...] = ()
    external: tuple[tuple[str, _Answer], ...] = ()

    def variables(self, now: datetime) -> dict[str, Any]:
        """Return the variables of an expression: `approvals`, oldest first and one for each person, and answers."""
        people: dict[str, str] = {}
        for each in sorted(self.given, key=lambda one: (one.at, one.approver)):
            if _counts(each.expires_at, now):
                people.setdefault(each.approver, format_time(each.at))
        return {
            APPROVALS: [{"approver": approver, "at": at} for approver, at in people.items()],
            EXTERNAL: {
                name: {"approved": answer.approved, "reason": answer.reason, "at": format_time(answer.at)}
                for name, answer in self.external
                if _counts(answer.expires_at, now)
            },
        }

    def ends(self) -> Iterator[datetime]:
        """Yield the moments at which one of them expires."""
        found = [*(each.expires_at for each in self.given), *(answer.expires_at for _, answer in self.external)]
        yield from filter(None, found)


def _counts(expires_at: datetime | None, now: datetime) -> bool:
    return expires_at is None or now < expires_at


def approvals_of(
    found: Iterable[Approval], *, uid: str, environment: str, gate: str, counts: Callable[[Approval], bool]
) -> Approvals:
    """Return the approvals of a Bundle by its uid, before an environment, at a gate `namespace/name`.

    `counts` says which ones are proven. Of the external answers of one name the one signed last is taken, whether or
    not it has expired; of two that were signed in the same second, the refusal.
    """
    given: list[_Given] = []
    answers: dict[str, Approval] = {}
    for approval in found:
        spec = approval.spec
        if spec.uid != uid or spec.environment not in (environment, None) or not counts(approval):
            continue
        created = approval.metadata.creation_timestamp
        if spec.external is not None:
            before = answers.get(spec.external.name)
            if before is None or _order(before) < _order(approval):
                answers[spec.external.name] = approval
        elif spec.gate == gate and spec.environment == environment and created is not None:
            given.append(_Given(spec.approver, created, spec.expires_at))
    return Approvals(tuple(given), tuple(sorted((name, _answer(last)) for name, last in answers.items())))


def _order(approval: Approval) -> tuple[datetime, bool, str]:
    external = approval.spec.external
    assert external is not None  # noqa: S101 - asked by the caller
    return external.signed_at, not external.approved, approval.metadata.uid


def _answer(approval: Approval) -> _Answer:
    spec = approval.spec
    external = spec.external
    assert external is not None  # noqa: S101 - asked by the caller
    return _Answer(external.approved, spec.reason or "", external.signed_at, spec.expires_at)


class ApprovalSigner:
    """Sign and verify Approvals with the controller's key."""

    def __init__(self, key: bytes) -> None:
        # A key of its own, so that no signature is one of something else.
        self._key = hmac.digest(key, _PURPOSE, hashlib.sha256)

    def signature(self, approval: Approval) -> str:
        """Return the signature of an Approval as the API server has stored it."""
        metadata = approval.metadata
        covered = {
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "spec": approval.spec.to_json(),
        }
        return hmac.digest(self._key, orjson.dumps(covered, option=orjson.OPT_SORT_KEYS), hashlib.sha256).hex()

    def is_signed(self, approval: Approval) -> bool:
        """Return whether the status of an Approval has the signature of this controller."""
        stored = approval.status.signature
        return stored is not None and hmac.compare_digest(stored.encode(), self.signature(approval).encode())
