"""Look up the tags of a Bundle that is about to start or to go on, outside the reconciler of Bundles.

A registry may be slow, and Bundles with images of other registries must not wait for it. So lookups have their own
workers, a deadline for each image, and a registry that did not answer in time is not asked for a while. Results are
kept in memory until they are in the status of the Bundle; a process that dies before looks them up again.

A Bundle starts without an answer, and the reason is recorded; only an environment that writes digests waits for the
answer. The images of a rollback have the recorded digests of the restored Bundle, whatever the tags are today.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from kardinal.clock import Clock
from kardinal.kube import Client
from kardinal.objects import Key
from kardinal.objects.image_reference import ImageReference
from kardinal.objects.text import cut
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.bundle import ResolvedImage
from kardinal.promotion.api.resolved import unpinned_images
from kardinal.runtime import Channel, KeyMemory, Result, Source
from kardinal_controller.bundles.rollback import recorded_before
from kardinal_controller.bundles.tags import Check
from kardinal_controller.caches import Caches, pipeline_label
from kardinal_controller.registries.errors import RegistryError
from kardinal_controller.registries.pull_secrets import Logins, PullSecrets
from kardinal_controller.registries.registry import RegistryClient

__all__ = ["TagLookups", "compared", "restored"]

LOOKUP_TIME = 10.0
"""The time in seconds for the digest of one image, including its second attempt."""

REST = 30.0
"""The time in seconds for which a registry that did not answer is not asked again."""

AGAIN = timedelta(minutes=1)
"""The time after which tags are looked up again if a registry gave no answer before an environment starts."""

_AT_ONCE = 8
"""The most concurrent lookups of images."""
_BETWEEN = 0.5
"""The time in seconds before the second attempt."""
_MESSAGE_LIMIT = 1024


def compared(before: Sequence[ResolvedImage], now: Sequence[ResolvedImage]) -> tuple[ResolvedImage, ...]:
    """Combine the recorded digests of tags with a new answer; a recorded digest is kept, and a moved tag is noted."""
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
    """Return the answer about the tags of a rollback, compared with the recorded digests of the Bundle it restores."""
    known = {each.reference: each for each in recorded}
    return tuple(_compared(known.get(each.reference, each), each) for each in now)


class TagLookups:
    """The digests that the tags of Bundles had when they started."""

    def __init__(
        self,
        caches: Caches,
        client: Client,
        registry: RegistryClient,
        *,
        clock: Clock,
        memory: KeyMemory,
        lookup_time: float = LOOKUP_TIME,
    ) -> None:
        self._caches = caches
        self._secrets = PullSecrets(client)
        self._registry = registry
        self._clock = clock
        self._lookup_time = lookup_time
        self._asked = Channel()
        self._answered = Channel()
        self._found: dict[Key, tuple[str, tuple[ResolvedImage, ...]]] = memory.map()
        self._starting: dict[Key, tuple[str, ...]] = memory.map()
        self._checks: dict[Key, tuple[str, Check]] = memory.map()
        self._resting: dict[str, float] = {}
        self._requests = asyncio.Semaphore(_AT_ONCE)

    @property
    def changes(self) -> Source:
        """The source of the Bundles whose tags were looked up."""
        return self._answered

    def sources(self) -> Sequence[Source]:
        return [self._asked]

    def known(self, bundle: Bundle) -> tuple[ResolvedImage, ...] | None:
        """Return the result for a Bundle; None before the lookup."""
        key = Key(bundle.metadata.namespace, bundle.metadata.name)
        if bundle.status.artifacts is not None:
            self._found.pop(key, None)
            return bundle.status.artifacts
        uid, found = self._found.get(key, ("", None))
        return found if uid == bundle.metadata.uid else None

    def ask(self, key: Key) -> None:
        """Request the lookup of a Bundle's tags; `changes` emits the Bundle when it is done."""
        self._asked.push(key)

    def check(self, key: Key, environments: Sequence[str]) -> timedelta | None:
        """Request another lookup of a Bundle's tags before environments start.

        Returns the time until the next request if the last lookup was too recent, and otherwise None.
        """
        wanted = tuple(environments)
        known = self._checks.get(key)
        if known is not None and not known[1].environments:
            left = AGAIN - (self._clock.now() - known[1].at)
            if timedelta() < left <= AGAIN:
                return left
        if known is not None and set(wanted) <= set(known[1].environments):
            # The lookup has ended since the caller observed; the run that follows from it writes the result.
            return None
        if self._starting.get(key) != wanted:
            self._starting[key] = wanted
            self._asked.push(key)
        return None

    def checked(self, bundle: Bundle) -> Check | None:
        """Return the result of the other lookup, until it is in the status."""
        key = Key(bundle.metadata.namespace, bundle.metadata.name)
        uid, check = self._checks.get(key, ("", None))
        if check is None or uid != bundle.metadata.uid:
            return None
        entries = bundle.status.environments
        stamped = [name in entries and entries[name].tags_checked_at is not None for name in check.environments]
        if stamped and all(stamped):
            # Another attempt is looked up again.
            del self._checks[key]
            return None
        return check

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.bundles.get(*key)
        if current is None:
            return Result()
        bundle = Bundle.model_validate(current)
        stored = self._caches.pipeline(key.namespace, pipeline_label(current))
        pipeline = Pipeline.model_validate(stored) if stored is not None else None
        known = self.known(bundle)
        starting = self._starting.get(key, ())
        if known is None:
            found = await self._look_up(bundle, pipeline)
            self._found[key] = (bundle.metadata.uid, restored(recorded_before(bundle, self._caches), found))
        elif starting:
            now_there = compared(known, await self._look_up(bundle, pipeline))
            answered = all(each.message is None for each in now_there)
            check = Check(now_there, starting if answered else (), self._clock.now())
            self._checks[key] = (bundle.metadata.uid, check)
        if self._starting.get(key) == starting:
            self._starting.pop(key, None)
        self._answered.push(key)
        return Result()

    async def _look_up(self, bundle: Bundle, pipeline: Pipeline | None) -> tuple[ResolvedImage, ...]:
        images = unpinned_images(bundle.spec.artifacts)
        now = self._clock.now()
        reference = pipeline.spec.pull_secret_ref if pipeline is not None else None
        problem = ""
        logins = None
        if reference is not None:
            try:
                logins = await self._secrets.read(reference.name, bundle.metadata.namespace)
            except RegistryError as error:
                # A public image needs no login, so the problem is reported only with a failed lookup.
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
        registry = image.canonical.partition("/")[0]
        time = asyncio.get_running_loop().time
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
