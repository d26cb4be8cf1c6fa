"""Read your own writes: a reconcile sees at least the writes of the reconcile before it.

A reconciler reads from caches that are behind the server. Without precautions, its second run would not see the writes
of its first, and would repeat them. So the writes of each run are kept as *expectations* of the informers that will
show them, and the next run of the same key waits for them.

An informer meets an expectation when it has seen that revision or a later one, or when the object is gone as expected.
Revisions are not compared for equality: other clients may write in between, and the removal of the last finalizer
returns the old revision. A write that no informer will show is not waited for. The wait ends after five seconds of real
time at most; then the reconcile runs anyway, and a metric counts it.
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

OWN_WRITES_WITHIN = 5.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Expectation:
    """The state that one informer has to reach. `revision` is None if the object should be gone."""

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
        patience: float = OWN_WRITES_WITHIN,
    ) -> None:
        self._informers = informers
        self._waited = waited
        self._patience = patience
        self._expectations: dict[Key, list[_Expectation]] = {}

    def note(self, key: Key, writes: Iterable[Write]) -> None:
        """Remember the writes that the run of `key` made."""
        expectations = [
            expectation for write in writes for expectation in self._expectations_of(write) if not expectation.met()
        ]
        if expectations:
            self._expectations[key] = expectations

    async def wait(self, key: Key) -> None:
        """Suspend until the writes of the last run of `key` are visible, or the patience is over."""
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
    """Return whether the watch of `informer` will show the write: it has the object already, or selects it."""
    if informer.namespace is not None and informer.namespace != write.namespace:
        return False
    if informer.get(write.namespace, write.name) is not None:
        return True
    return write.object is not None and matches(write.object, labels=informer.labels, fields=informer.fields)
