"""Handle delete and deletecollection.

A collection is deleted as it is listed, up to a limit if there is one, and one object at a time, with a turn for
other tasks in between: what is created meanwhile stays, and what goes meanwhile is gone already.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from kardinal_local.plane import statuses
from kardinal_local.plane.clock import Clock
from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.handlers.parameters import deletion_options
from kardinal_local.plane.handlers.reading import renderer_for, selector_for
from kardinal_local.plane.objects import Deleted, Deletion, Lists, parse_list_options
from kardinal_local.plane.storage import Store
from kardinal_local.plane.wire import Exchange, Target, json_response

__all__ = ["Deleting"]

PORTION = 20


class Deleting:
    """Answers requests that delete objects."""

    def __init__(self, store: Store, deletion: Deletion, *, lists: Lists, clock: Clock) -> None:
        self._store = store
        self._deletion = deletion
        self._lists = lists
        self._clock = clock

    async def answer(self, exchange: Exchange, target: Target, body: bytes) -> web.Response:
        options = await deletion_options(exchange, body)
        if target.name:
            deleted = self._deletion.delete(target.kind, namespace=target.namespace, name=target.name, options=options)
            return self._deleted(exchange, target, deleted, accepted=options.accepted)
        chunk = await self._lists.read(target.kind, selector_for(exchange, target), parse_list_options(exchange.query))
        for number, entry in enumerate(chunk.entries, start=1):
            try:
                self._deletion.delete(target.kind, namespace=entry.namespace, name=entry.name, options=options)
            except StatusError as error:
                if error.code != 404:
                    raise
            if number % PORTION == 0:
                await self._store.settled()
                await asyncio.sleep(0)
        renderer = renderer_for(exchange, target, clock=self._clock)
        return json_response(b"".join([piece async for piece in renderer.list(chunk.entries, metadata=chunk.metadata)]))

    def _deleted(self, exchange: Exchange, target: Target, deleted: Deleted, *, accepted: bool) -> web.Response:
        entry = deleted.entry
        if deleted.gone and not target.kind.returns_deleted:
            return json_response(statuses.success(target.kind, name=entry.name, uid=entry.uid))
        body = renderer_for(exchange, target, clock=self._clock).object(entry)
        return json_response(body, status=202 if accepted and not deleted.gone else 200)
