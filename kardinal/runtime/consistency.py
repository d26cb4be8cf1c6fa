"""Read your own writes: a reconcile that follows a write sees at least that write.

A reconciler reads from caches that lag behind the server. Without care, its second run meets a world in which its
first write has not happened and repeats it. So after each run the writes it made are kept as *expectations* of the
informers that will show them, and the next run of the same key waits until they do.

An informer meets an expectation when it has seen that revision or a later one (never by equality: between the write
and the wait others may write, and the removal of a last finalizer answers with the old revision), or when the object
is gone where it should be. Writes that no informer will ever show are not waited for, and nothing is waited for
longer than five seconds of real time: then the run proceeds and a metric says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog

from kardinal.kube import Write
from kardinal.kube.selectors import matches
from kardinal.objects import Key
from kardinal.runtime.informer import Informer

__all__ = ["Consistency"]

PATIENCE = 5.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Expectation:
    """The state that one informer has to reach. `revision` is None when the object should be gone."""

    informer: Informer
    key: Key
    uid: str | None
    revision: int | None

    def met(self) -> bool:
        stored = self.informer.get(*self.key)
        if self.revision is None:
            return stored is None or stored["metadata"].get("uid") != self.uid
        return self.informer.has_seen(self.revision) or (
            stored is not None and int(stored["metadata"]["resourceVersion"]) >= self.revision
        )


class Consistency:
    """The expectations of one controller, by the key whose reconcile wrote."""

    def __init__(
        self,
        informers: Callable[[], Sequence[Informer]],
        *,
        waited: Callable[[str], None],
        patience: float = PATIENCE,
    ) -> None:
        self._informers = informers
        self._waited = waited
        self._patience = patience
        self._expectations: dict[Key, list[_Expectation]] = {}

    def note(self, key: Key, writes: Iterable[Write]) -> None:
        """Return the run of `key` made these writes."""
        expectations = [
            expectation for write in writes for expectation in self._expectations_of(write) if not expectation.met()
        ]
        if expectations:
            self._expectations[key] = expectations

    async def wait(self, key: Key) -> None:
        """Suspend until the writes of the last run of `key` are visible, within reason."""
        expectations = [each for each in self._expectations.pop(key, ()) if not each.met()]
        if not expectations:
            return
        try:
            async with asyncio.timeout(self._patience):
                for expectation in expectations:
                    await expectation.informer.wait_until(expectation.met)
        except TimeoutError:
            self._waited("timeout")
            kinds = sorted({each.informer.resource.kind for each in expectations if not each.met()})
            log.warning("own writes not seen in time; reconciling with what is known", kinds=kinds)
        else:
            self._waited("seen")

    def _expectations_of(self, write: Write) -> Iterable[_Expectation]:
        key = Key(write.namespace, write.name)
        for informer in self._informers():
            if informer.resource == write.resource and _will_show(informer, write):
                yield _Expectation(informer, key, write.uid, write.revision)


def _will_show(informer: Informer, write: Write) -> bool:
    """Return whether the watch of `informer` will carry the write: because it holds the object, or because it will."""
    if informer.namespace is not None and informer.namespace != write.namespace:
        return False
    if informer.get(write.namespace, write.name) is not None:
        return True
    return write.object is not None and matches(write.object, labels=informer.labels, fields=informer.fields)
