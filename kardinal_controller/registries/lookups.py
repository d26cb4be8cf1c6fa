"""Look up the tags of a Bundle that is about to start, or to go on, beside the reconciler of Bundles.

A registry may take its time, and Bundles of other registries should not wait for it: so questions have workers of
their own, a deadline for each image, and a registry that did not answer in time rests. What was found is kept in memory
until the status of the Bundle has it; a process that dies before asks again.

A Bundle starts without an answer, and the reason is noted; only an environment that is written by digest waits for one.
What a rollback brings back has the digests that are recorded of it, whatever the tags are today.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from kardinal.api import Bundle, Pipeline
from kardinal.api.bundle import ResolvedImage
from kardinal.api.image import ImageReference
from kardinal.api.resolved import unpinned_images
from kardinal.kube import Client
from kardinal.objects import Key
from kardinal.objects.text import cut
from kardinal.runtime import Channel, Clock, Result, Source
from kardinal_controller.bundles.rollback import recorded_before
from kardinal_controller.bundles.tags import Check
from kardinal_controller.caches import Caches, pipeline_label
from kardinal_controller.registries.errors import RegistryError
from kardinal_controller.registries.pull_secrets import Logins, PullSecrets
from kardinal_controller.registries.registry import Registry

__all__ = ["TagLookups", "compared", "restored"]

LOOKUP_TIME = 10.0
"""Seconds for the digest of one image, with its second attempt."""

REST = 30.0
"""Seconds for which a registry that did not answer is not asked again."""

AGAIN = timedelta(minutes=1)
"""After which tags are looked up again where a registry gave no answer before an environment starts."""

_AT_ONCE = 8
"""Images that are asked for at once."""
_BETWEEN = 0.5
"""Seconds before the second attempt."""
_MESSAGE_LIMIT = 1024


def compared(before: Sequence[ResolvedImage], now: Sequence[ResolvedImage]) -> tuple[ResolvedImage, ...]:
    """Return what was known of tags with what a registry says of them now; the digest of before stays."""
    answers = {each.reference: each for each in now}
    return tuple(_compared(each, answers.get(each.reference)) for each in before)


def _compared(before: ResolvedImage, now: ResolvedImage | None) -> ResolvedImage:
    if now is None or now.digest is None:
        return before.model_copy(update={"message": now.message if now is not None else None})
    if before.digest is None:
        return now
    moved = now.digest if now.digest != before.digest else None
    return before.model_copy(update={"moved_to": moved, "message": None})


def restored(recorded: Sequence[ResolvedImage], now: Sequence[ResolvedImage]) -> tuple[ResolvedImage, ...]:
    """Return what a registry says of the tags of a rollback, compared with what is recorded of those it brings back."""
    known = {each.reference: each for each in recorded}
    return tuple(_compared(known.get(each.reference, each), each) for each in now)


class TagLookups:
    """Answers which digests the tags of Bundles had when they started."""

    def __init__(
        self, caches: Caches, client: Client, registry: Registry, *, clock: Clock, lookup_time: float = LOOKUP_TIME
    ) -> None:
        self._caches = caches
        self._secrets = PullSecrets(client)
        self._registry = registry
        self._clock = clock
        self._lookup_time = lookup_time
        self._asked = Channel()
        self._answered = Channel()
        self._found: dict[Key, tuple[str, tuple[ResolvedImage, ...]]] = {}
        self._starting: dict[Key, tuple[str, ...]] = {}
        self._checks: dict[Key, tuple[str, Check]] = {}
        self._resting: dict[str, float] = {}
        self._requests = asyncio.Semaphore(_AT_ONCE)

    @property
    def changes(self) -> Source:
        """Return the source of the Bundles whose tags were looked up."""
        return self._answered

    def sources(self) -> Sequence[Source]:
        return [self._asked]

    def known(self, bundle: Bundle) -> tuple[ResolvedImage, ...] | None:
        """Return what was found for a Bundle; None before it was looked for."""
        key = Key(bundle.metadata.namespace, bundle.metadata.name)
        if bundle.status.artifacts is not None:
            self._found.pop(key, None)
            return bundle.status.artifacts
        uid, found = self._found.get(key, ("", None))
        return found if uid == bundle.metadata.uid else None

    def ask(self, key: Key) -> None:
        """Have the tags of a Bundle looked up; `changes` tells when that is done."""
        self._asked.push(key)

    def check(self, key: Key, environments: Sequence[str]) -> timedelta | None:
        """Have the tags of a Bundle looked up again before environments start; returns when to ask again, if so."""
        known = self._checks.get(key)
        if known is not None and not known[1].environments:
            left = AGAIN - (self._clock.now() - known[1].at)
            if timedelta() < left <= AGAIN:
                return left
        self._starting[key] = tuple(environments)
        self._asked.push(key)
        return None

    def checked(self, bundle: Bundle) -> Check | None:
        """Return what was found when they were looked up again, until the status has it."""
        key = Key(bundle.metadata.namespace, bundle.metadata.name)
        uid, check = self._checks.get(key, ("", None))
        if check is None or uid != bundle.metadata.uid:
            return None
        entries = bundle.status.environments
        stamped = [name in entries and entries[name].tags_checked_at is not None for name in check.environments]
        if stamped and all(stamped):
            # Another attempt is looked up anew.
            del self._checks[key]
            return None
        return check

    def forget(self, key: Key) -> None:
        """Drop what is kept of a Bundle that is gone."""
        self._found.pop(key, None)
        self._checks.pop(key, None)
        self._starting.pop(key, None)

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.bundles.get(*key)
        if current is None:
            return Result()
        bundle = Bundle.model_validate(current)
        stored = self._caches.pipeline(key.namespace, pipeline_label(current))
        pipeline = Pipeline.model_validate(stored) if stored is not None else None
        known, starting = self.known(bundle), self._starting.pop(key, ())
        if known is None:
            found = await self._look_up(bundle, pipeline)
            self._found[key] = (bundle.metadata.uid, restored(recorded_before(bundle, self._caches), found))
        elif starting:
            now_there = compared(known, await self._look_up(bundle, pipeline))
            answered = all(each.message is None for each in now_there)
            check = Check(now_there, starting if answered else (), self._clock.now())
            self._checks[key] = (bundle.metadata.uid, check)
        self._answered.push(key)
        return Result()

    async def _look_up(self, bundle: Bundle, pipeline: Pipeline | None) -> tuple[ResolvedImage, ...]:
        images, now = unpinned_images(bundle.spec.artifacts), self._clock.now()
        reference = pipeline.spec.pull_secret_ref if pipeline is not None else None
        problem, logins = "", None
        if reference is not None:
            try:
                logins = await self._secrets.read(reference.name, bundle.metadata.namespace)
            except RegistryError as error:
                # A public image needs no login: the problem is told where it matters.
                problem = str(error)
        return tuple(await asyncio.gather(*(self._resolved(image, logins, problem, now) for image in images)))

    async def _resolved(
        self, image: ImageReference, logins: Logins | None, problem: str, now: datetime
    ) -> ResolvedImage:
        try:
            async with self._requests:
                digest = await self._digest(image, logins)
        except RegistryError as error:
            told = "; ".join(filter(None, (str(error), problem)))
            return ResolvedImage(reference=str(image), resolved_at=now, message=cut(told, _MESSAGE_LIMIT))
        return ResolvedImage(reference=str(image), digest=digest, resolved_at=now)

    async def _digest(self, image: ImageReference, logins: Logins | None) -> str:
        registry, time = image.canonical.partition("/")[0], asyncio.get_running_loop().time
        if self._resting.get(registry, 0.0) > time():
            raise RegistryError(f"registry {registry} did not answer in time a moment ago")
        try:
            async with asyncio.timeout(self._lookup_time):
                return await self._twice(image, logins)
        except TimeoutError:
            resting = {name: until for name, until in self._resting.items() if until > time()}
            self._resting = {**resting, registry: time() + REST}
            raise RegistryError(f"registry {registry} has not answered within {self._lookup_time:g} s") from None

    async def _twice(self, image: ImageReference, logins: Logins | None) -> str:
        try:
            return await self._registry.digest(image, logins)
        except RegistryError as error:
            if not error.transient:
                raise
        await asyncio.sleep(_BETWEEN)
        return await self._registry.digest(image, logins)
