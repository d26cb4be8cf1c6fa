"""Apply the objects of owners with the rights of their accounts.

An object that an API server stores otherwise than it was applied (`1000m` becomes `1`) would differ for ever, so each
remembers how the last apply left it. An object that was refused is sent again after growing pauses, and sooner if the
template, the object or the rights of the account change. All of this memory may be lost: a new process applies once
more, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import structlog

from kardinal.clock import Clock
from kardinal.kube import AlreadyExists, Backoff, Client, Forbidden, Invalid, KubeError
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.objects.applied import applied_part, content_hash, covers
from kardinal.objects.naming import bounded
from kardinal.objects.text import cut
from kardinal.runtime import KeyMemory
from kardinal.runtime.own_writes import OwnWrites
from kardinal_supplychain.realize.bundle import is_bundle, is_same_bundle
from kardinal_supplychain.realize.plan import ApplyObject, StampRefusal
from kardinal_supplychain.realize.runs import is_same_run
from kardinal_supplychain.reconcilers.accounts import StampingAccount

__all__ = ["Refused", "StampApplier", "Written"]

RETRY: Final = Backoff(base=1.0, cap=600.0, jitter=0.2)
CORRECTION_PAUSE: Final = timedelta(seconds=10)
"""Between two corrections of one object, so that two programs that disagree do not write without end."""
MESSAGE_LIMIT: Final = 512
_FIELD_MANAGER = "kardinal-supplychain"

Written = tuple[ResourceType, str, str]
"""An object by its kind, namespace and name, as own writes are known by."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Refused:
    """An object that was refused. `met` names what was sent, and what it met: if either differs, it is sent again."""

    met: tuple[str, str]
    refusal: StampRefusal
    attempts: int
    retry_at: datetime
    by_rights: bool


class StampApplier:
    """Apply objects, and remember what became of them."""

    def __init__(self, client: Client, *, clock: Clock, memory: KeyMemory, own: OwnWrites[Written]) -> None:
        self._client = client
        self._clock = clock
        self._own = own
        self._refused: dict[Key, dict[str, Refused]] = memory.map()
        self._settled: dict[Key, dict[str, tuple[str, str]]] = memory.map()
        self._corrected: dict[Key, dict[str, datetime]] = memory.map()

    async def apply(self, owner: Key, account: StampingAccount, apply: ApplyObject) -> JsonObject | None:
        """Apply an object as an account, and return it as it is then; None if it was refused."""
        client = self._client.as_user(account.user)
        manager = f"{_FIELD_MANAGER}/{bounded(apply.resource)}"
        try:
            with self._own.writing(owner, (apply.type, *key_of(apply.object))) as write:
                live = await _sent(client, apply, manager)
                write.answered(live)
        except KubeError as error:
            self._refuse(owner, apply, error, await self._explained(client, account, apply, error))
            return None
        self._refused.get(owner, {}).pop(apply.resource, None)
        uid = live["metadata"]["uid"]
        if apply.is_correction:
            self._corrected.setdefault(owner, {})[uid] = self._clock.now()
        if not apply.is_run and not covers(live, apply.object):
            self._settled.setdefault(owner, {})[uid] = _state(live, apply.object)
        return live

    def is_settled(self, owner: Key, live: JsonObject, desired: JsonObject) -> bool:
        """Return whether an object has all that was applied to it, as far as the API server keeps it."""
        if covers(live, desired):
            return True
        return self._settled.get(owner, {}).get(live["metadata"]["uid"]) == _state(live, desired)

    def pause_of(self, owner: Key, live: JsonObject) -> datetime | None:
        """Return until when an object is not corrected, because it was a moment ago; None if it may be."""
        corrected = self._corrected.get(owner, {}).get(live["metadata"]["uid"])
        if corrected is None or self._clock.now() >= corrected + CORRECTION_PAUSE:
            return None
        return corrected + CORRECTION_PAUSE

    def refused(self, owner: Key, apply: ApplyObject) -> Refused | None:
        """Return why an object is not sent now: it was refused, and it is not time yet to try again."""
        refused = self._refused.get(owner, {}).get(apply.resource)
        if refused is None or refused.met != _met(apply) or refused.retry_at <= self._clock.now():
            return None
        return refused

    def retry(self, owner: Key) -> None:
        """Send what the account of an owner had no right to again in the next reconcile."""
        refused = self._refused.get(owner, {})
        for resource, each in refused.items():
            if each.by_rights:
                refused[resource] = replace(each, attempts=0, retry_at=self._clock.now())

    def keep(self, owner: Key, *, resources: Collection[str], uids: Collection[str]) -> None:
        """Forget what is remembered of other resources and objects of an owner than these."""
        for memory, kept in ((self._refused, resources), (self._settled, uids), (self._corrected, uids)):
            known: dict[str, Any] = memory.get(owner, {})
            for gone in known.keys() - set(kept):
                del known[gone]

    def _refuse(self, owner: Key, apply: ApplyObject, error: KubeError, message: str) -> None:
        met = _met(apply)
        before = self._refused.get(owner, {}).get(apply.resource)
        attempts = before.attempts + 1 if before is not None and before.met == met else 0
        wait = RETRY.cap if error.final else max(RETRY.delay(attempts), error.retry_after or 0.0)
        self._refused.setdefault(owner, {})[apply.resource] = Refused(
            met,
            StampRefusal(message),
            attempts,
            self._clock.now() + timedelta(seconds=wait),
            isinstance(error, Forbidden),
        )
        log.info("an object was refused", resource=apply.resource, kind=apply.type.kind, reason=error.name)

    async def _explained(self, client: Client, account: StampingAccount, apply: ApplyObject, error: KubeError) -> str:
        """Return why an object was refused, and what to do about it."""
        if apply.is_confidential:
            return f"{error.name}; the message is not told, because the object has data of a Secret"
        said = cut(str(error), MESSAGE_LIMIT)
        if isinstance(error, Forbidden) and "impersonate" in said:
            return (
                f"{said}. Let the controller act as the account: give it the verb impersonate on serviceaccounts "
                f"[{account.name}] by a Role in namespace [{account.namespace}]"
            )
        if not isinstance(error, Invalid):
            return said
        if apply.live is not None and "immutable" in str(error):
            fields = ", ".join(error.fields) or "a field"
            return (
                f"{fields} is immutable; set lifecycle: immutable in the template to make a new object of each change"
            )
        if "Only one reference can have Controller" in str(error):
            return await self._other_controller(client, apply) or said
        return said

    @staticmethod
    async def _other_controller(client: Client, apply: ApplyObject) -> str:
        try:
            live = await client.get(apply.type, *reversed(key_of(apply.object)))
        except KubeError:
            return ""
        for reference in live["metadata"].get("ownerReferences") or ():
            if reference.get("controller") is True:
                return f"already controlled by {reference.get('kind')} {reference.get('name')}"
        return ""


async def _sent(client: Client, apply: ApplyObject, manager: str) -> JsonObject:
    """Apply an object, or create a run. A run that exists already under its name is the answer. Raises `KubeError`."""
    if not apply.is_run:
        return await client.apply(apply.type, apply.object, field_manager=manager, force=True)
    try:
        return await client.create(apply.type, apply.object, field_manager=manager)
    except AlreadyExists:
        live = await client.get(apply.type, *reversed(key_of(apply.object)))
        is_same = is_same_bundle if is_bundle(apply.object) else is_same_run
        if is_same(live, apply.object):
            return live
        raise


def _met(apply: ApplyObject) -> tuple[str, str]:
    """Name an object, and the object that it is applied to without its status."""
    metadata = apply.live["metadata"] if apply.live is not None else {}
    return content_hash(apply.object), f"{metadata.get('uid')}/{metadata.get('generation')}"


def _state(live: JsonObject, desired: JsonObject) -> tuple[str, str]:
    return content_hash(desired), content_hash(applied_part(live, desired))
