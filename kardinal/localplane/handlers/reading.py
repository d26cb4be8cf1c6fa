"""get, list and watch."""

from __future__ import annotations

from aiohttp import web

from kardinal.localplane import statuses
from kardinal.localplane.handlers.watches import Watch, parse_watch
from kardinal.localplane.objects import Lists, Selector, parse_fields, parse_labels, parse_revision, revision_too_large
from kardinal.localplane.storage import Committed
from kardinal.localplane.wire import JSON_HEADERS, Exchange, Renderer, Target, json_response, negotiate
from kardinal.runtime.clock import Clock

__all__ = ["Reading", "renderer_for", "selector_for"]


class Reading:
    """Answers requests that change nothing."""

    def __init__(self, store: Committed, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.lists = Lists(store)

    def get(self, exchange: Exchange, target: Target) -> web.Response:
        kind = target.kind
        revision = parse_revision(exchange.query.get("resourceVersion", ""))
        if revision is not None and revision > self._store.revision:
            raise revision_too_large(revision, current=self._store.revision)
        entry = self._store.get(kind.storage, namespace=target.namespace, name=target.name)
        if entry is None:
            raise statuses.not_found(kind, target.name)
        return json_response(renderer_for(exchange, target, clock=self._clock).object(entry))

    async def list(self, exchange: Exchange, target: Target) -> web.StreamResponse:
        chunk = self.lists.read(target.kind, selector_for(exchange, target), exchange.query)
        renderer = renderer_for(exchange, target, clock=self._clock)
        pieces = [piece async for piece in renderer.list(chunk.entries, metadata=chunk.metadata)]
        return json_response(b"".join(pieces))

    async def watch(self, exchange: Exchange, target: Target) -> web.StreamResponse:
        request = exchange.request
        watch = Watch(
            self._store,
            self.lists,
            kind=target.kind,
            request=parse_watch(target.kind, selector_for(exchange, target), exchange.query),
            renderer=renderer_for(exchange, target, clock=self._clock),
        )
        try:
            response = web.StreamResponse(headers=JSON_HEADERS)
            await response.prepare(request)
            exchange.record(200)
            watch.subscription.on_close(lambda: _cut_off(watch, request))
            async for lines in watch.lines():
                await response.write(lines)
            return response
        finally:
            watch.close()


def renderer_for(exchange: Exchange, target: Target, *, clock: Clock) -> Renderer:
    return Renderer(
        target.kind,
        negotiate(exchange.request.headers.get("Accept", "")),
        include_object=exchange.query.get("includeObject", ""),
        now=clock.now(),
    )


def selector_for(exchange: Exchange, target: Target) -> Selector:
    return Selector(
        labels=parse_labels(exchange.query.get("labelSelector", "")),
        fields=parse_fields(exchange.query.get("fieldSelector", ""), kind=target.kind),
        namespace=target.namespace,
    )


def _cut_off(watch: Watch, request: web.BaseRequest) -> None:
    # A reader that is too slow does not take what is written to it either: only closing the connection reaches it.
    if watch.subscription.overflowed and request.transport is not None:
        request.transport.abort()
