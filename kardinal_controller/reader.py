"""Read the objects of views from the copies that the controller keeps: no request for a viewer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.views.reader import EventReader
from kardinal_controller.caches import Caches

__all__ = ["InformerReader"]


class InformerReader:
    """A `kardinal.promotion.views.reader.Reader` on informers; what `events` returns is asked for each time.

    Events are in no cache, and are read with the rights of the viewer.
    """

    def __init__(self, caches: Caches, events: EventReader) -> None:
        self._caches = caches
        self._events = events

    async def pipeline(self, namespace: str, name: str) -> JsonObject | None:
        return self._caches.pipelines.get(namespace, name)

    async def pipelines(self, namespace: str | None = None) -> list[JsonObject]:
        return _in_order(self._caches.pipelines.list(namespace))

    async def bundle(self, namespace: str, name: str) -> JsonObject | None:
        return self._caches.bundles.get(namespace, name)

    async def bundles(self, namespace: str, pipeline: str | None = None) -> list[JsonObject]:
        if pipeline is None:
            return _in_order(self._caches.bundles.list(namespace))
        return _in_order(self._caches.bundles_of(namespace, pipeline))

    async def graph(self, namespace: str, name: str) -> JsonObject | None:
        return self._caches.graphs.get(namespace, name)

    async def steps(self, namespace: str, bundle: str) -> list[JsonObject]:
        return _in_order(self._caches.steps_of(Key(namespace, bundle)))

    async def instances(self, namespace: str, bundle: str) -> list[JsonObject]:
        return _in_order(self._caches.gates_of(Key(namespace, bundle)))

    async def gates(self, namespace: str | None = None) -> list[JsonObject]:
        return _in_order(self._caches.gates_of_no_bundle(namespace or ""))

    async def events(self, namespace: str) -> Sequence[JsonObject]:
        return await self._events.events(namespace)


def _in_order(objects: Iterable[JsonObject]) -> list[JsonObject]:
    """Return objects as an API server lists them."""
    return sorted(objects, key=key_of)
