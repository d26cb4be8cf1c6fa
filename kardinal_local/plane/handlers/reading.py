"""Handle get, list and watch."""

from __future__ import annotations

from aiohttp import web

from kardinal_local.plane import statuses
from kardinal_local.plane.clock import Clock
from kardinal_local.plane.handlers.watches import Watch
from kardinal_local.plane.objects import (
    ListOptions,
    Lists,
    Selector,
    parse_fields,
    parse_labels,
    parse_list_options,
    parse_revision,
    scale_of,
    viewed,
)
from kardinal_local.plane.storage import Committed
from kardinal_local.plane.wire import (
    JSON_HEADERS,
    Chaos,
    Exchange,
    Form,
    Renderer,
    Target,
    json_response,
    send,
    warning_headers,
)

__all__ = ["Reading", "renderer_for", "selector_for"]

_INCLUDED = ("", "None", "Metadata", "Object")


class Reading:
    """Answers requests that change nothing."""

    def __init__(self, store: Committed, *, clock: Clock, chaos: Chaos | None = None) -> None:
        self._store = store
        self._clock = clock
        self._chaos = chaos
        self.lists = Lists(store)

    async def get(self, exchange: Exchange, target: Target) -> web.Response:
        kind = target.kind
        revision = parse_revision(exchange.query.get("resourceVersion", ""))
        if revision is not None:
            await self.lists.freshness.reach(revision)
        entry = self._store.get(kind.storage, namespace=target.namespace, name=target.name)
        if entry is None:
            raise statuses.not_found(kind, target.name)
        if target.subresource == "scale":
            return json_response(scale_of(kind, viewed(kind, entry.decode())))
        return json_response(renderer_for(exchange, target, clock=self._clock).object(entry))

    async def list(self, exchange: Exchange, target: Target) -> web.StreamResponse:
        options = parse_list_options(exchange.query)
        selector = selector_for(exchange, target)
        chunk = await self.lists.read(target.kind, selector, options)
        renderer = renderer_for(exchange, target, clock=self._clock)
        return await send(renderer.list(chunk.entries, metadata=chunk.metadata), exchange)

    async def watch(self, exchange: Exchange, target: Target) -> web.StreamResponse:
        options = parse_list_options(exchange.query)
        selector = selector_for(exchange, target)
        watch = self._watch(exchange, target, selector=selector, options=options)
        try:
            response = web.StreamResponse(headers=JSON_HEADERS)
            for value in warning_headers(exchange.warnings):
                response.headers.add("Warning", value)
            await response.prepare(exchange.request)
            exchange.record(200)
            events = watch.lines()
            if self._chaos is not None:
                events = self._chaos.disturbed(events, exchange, target)
            async for lines in events:
                await response.write(lines)
            return response
        finally:
            watch.close()

    def _watch(self, exchange: Exchange, target: Target, *, selector: Selector, options: ListOptions) -> Watch:
        request = exchange.request

        def cut_off() -> None:
            if request.transport is not None:
                request.transport.abort()

        return Watch(
            self._store,
            self.lists,
            kind=target.kind,
            selector=selector,
            options=options,
            renderer=renderer_for(exchange, target, clock=self._clock),
            on_overflow=cut_off,
        )


def renderer_for(exchange: Exchange, target: Target, *, clock: Clock) -> Renderer:
    include = exchange.query.get("includeObject", "")
    if exchange.representation.form is Form.TABLE and include not in _INCLUDED:
        problem = f"Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
        raise statuses.bad_request(f"Unable to convert to Table as requested: includeObject: {problem}")
    return Renderer(
        target.kind,
        exchange.representation,
        include_object=include,
        now=clock.now(),
    )


def selector_for(exchange: Exchange, target: Target) -> Selector:
    return Selector(
        labels=parse_labels(exchange.query.get("labelSelector", "")),
        fields=parse_fields(exchange.query.get("fieldSelector", ""), kind=target.kind),
        namespace=target.namespace,
    )
