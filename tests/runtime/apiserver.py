"""A collection served over the Kubernetes wire format, small enough to be told to misbehave.

It keeps widgets, numbers their revisions and serves list, watch-list, watch and the write verbs as a real server
does. What a test wants to go wrong is put in front: an answer for the next request that matches. Behaviour on good
days is tested against the local plane; this is for the days on which a server is old, overloaded, restarted or
restored from a backup.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web

from kardinal.objects import ResourceType

WIDGET = ResourceType("example.com", "v1", "Widget", "widgets")

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
Object = dict[str, Any]


def status_object(code: int, reason: str, **details: Any) -> Object:
    return {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": reason, "details": details}


def refusal(code: int, reason: str, headers: dict[str, str] | None = None, **details: Any) -> Answer:
    """Answer with a Status."""

    async def answer(_: web.Request) -> web.StreamResponse:
        body = orjson.dumps(status_object(code, reason, **details))
        return web.Response(status=code, body=body, headers=headers, content_type="application/json")

    return answer


def watch_lines(*lines: bytes, cut: bool = False) -> Answer:
    """Answer a watch with these lines and end it, or cut it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


def event_line(kind: str, obj: Object) -> bytes:
    return orjson.dumps({"type": kind, "object": obj}) + b"\n"


def bookmark(revision: int, *, initial_events_end: bool = False) -> bytes:
    metadata: Object = {"resourceVersion": str(revision)}
    if initial_events_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event_line("BOOKMARK", {"kind": "Widget", "apiVersion": "example.com/v1", "metadata": metadata})


class WidgetServer:
    """Widgets in memory, and whatever should go wrong next."""

    def __init__(self) -> None:
        self.url = ""
        self.port = 0
        self.revision = 10
        self.objects: dict[tuple[str, str], Object] = {}
        self.history: list[tuple[int, str, Object]] = []
        self.oldest = 0
        self.requests: list[dict[str, str]] = []
        self.writes: list[tuple[str, str, Any]] = []
        self.faults: list[tuple[str, Answer]] = []
        self.streams_lists = True
        self.lag = asyncio.Event()
        self.lag.set()
        self._changed = asyncio.Condition()
        self._uids = 0
        self._watches: list[web.Request] = []
        self._runner: web.AppRunner | None = None

    def fail_next(self, verb: str, answer: Answer) -> None:
        """Let the next request of that verb (list, watch, watchlist, post, patch, put, delete) get this answer."""
        self.faults.append((verb, answer))

    def verbs(self) -> list[str]:
        return [request["verb"] for request in self.requests]

    @property
    def watching(self) -> int:
        """Return how many watches are open."""
        return len(self._watches)

    async def put(self, name: str, namespace: str = "default", **fields: Any) -> Object:
        """Create or change a widget behind everybody's back."""
        key = (namespace, name)
        before = self.objects.get(key)
        obj: Object = {"apiVersion": "example.com/v1", "kind": "Widget", **copy.deepcopy(before or {}), **fields}
        metadata = obj.setdefault("metadata", {})
        metadata |= {"name": name, "namespace": namespace, "managedFields": [{"manager": "x"}]}
        if before is None:
            self._uids += 1
            metadata["uid"] = f"uid-{self._uids}"
        await self._record("MODIFIED" if before else "ADDED", obj)
        return obj

    async def remove(self, name: str, namespace: str = "default") -> Object:
        obj = copy.deepcopy(self.objects[namespace, name])
        await self._record("DELETED", obj)
        return obj

    async def bookmark(self) -> None:
        """Send a bookmark of a revision that no event had."""
        self.revision += 1
        async with self._changed:
            self.history.append((self.revision, "BOOKMARK", {"metadata": {"resourceVersion": str(self.revision)}}))
            self._changed.notify_all()

    def forget_history(self) -> None:
        """Compact: a watch from before now is told that it expired."""
        self.oldest = self.revision

    def cut_watches(self) -> None:
        for request in list(self._watches):
            if request.transport is not None:
                request.transport.abort()

    async def _record(self, change: str, obj: Object) -> None:
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        key = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        if change == "DELETED":
            self.objects.pop(key, None)
        else:
            self.objects[key] = obj
        async with self._changed:
            self.history.append((self.revision, change, obj))
            self._changed.notify_all()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        verb = _verb(request)
        self.requests.append({"verb": verb, "path": request.path, **request.query})
        for index, (expected, answer) in enumerate(self.faults):
            if expected == verb:
                del self.faults[index]
                return await answer(request)
        if verb in ("watch", "watchlist"):
            return await self._watch(request)
        if verb == "list":
            return self._list(request)
        return await self._write(verb, request)

    def _list(self, request: web.Request) -> web.Response:
        items = list(self.objects.values())
        limit = int(request.query.get("limit", "0"))
        start = int(request.query.get("continue", "0"))
        metadata: Object = {"resourceVersion": str(self.revision)}
        if limit and start + limit < len(items):
            metadata["continue"] = str(start + limit)
        page = items[start : start + limit] if limit else items
        return _json({"kind": "WidgetList", "metadata": metadata, "items": page})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        position = int(request.query.get("resourceVersion") or 0)
        initial = "sendInitialEvents" in request.query
        if initial and not self.streams_lists:
            return await refusal(422, "Invalid")(request)
        response = web.StreamResponse()
        response.content_type = "application/json"
        await response.prepare(request)
        if position > self.revision:
            causes = [{"reason": "ResourceVersionTooLarge"}]
            await response.write(event_line("ERROR", status_object(504, "Timeout", causes=causes)))
            return response
        if not initial and position < self.oldest:
            await response.write(event_line("ERROR", status_object(410, "Expired")))
            return response
        self._watches.append(request)
        try:
            if initial:
                for obj in self.objects.values():
                    await response.write(event_line("ADDED", obj))
                position = self.revision
                await response.write(bookmark(position, initial_events_end=True))
            await self._follow(response, position)
        except (ConnectionResetError, OSError):
            pass
        finally:
            self._watches.remove(request)
        return response

    async def _follow(self, response: web.StreamResponse, position: int) -> None:
        while True:
            await self.lag.wait()
            for revision, change, obj in [entry for entry in self.history if entry[0] > position]:
                await response.write(event_line(change, obj))
                position = revision
            async with self._changed:
                if self.history[-1:] and self.history[-1][0] > position:
                    continue
                await self._changed.wait()

    async def _write(self, verb: str, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read())
        self.writes.append((verb, request.path, copy.deepcopy(body)))
        parts = request.path.split("/")
        namespace = parts[parts.index("namespaces") + 1]
        if "events.k8s.io" in parts:
            return _json(body if verb == "post" else {"kind": "Event", "metadata": {"name": parts[-1]}, **body})
        name = body["metadata"]["name"] if verb == "post" else parts[parts.index("widgets") + 1]
        if verb == "delete":
            gone = await self.remove(name, namespace)
            details = {"name": name, "uid": gone["metadata"]["uid"]}
            return _json({"kind": "Status", "status": "Success", "details": details})
        body.pop("apiVersion", None)
        body.pop("kind", None)
        labels = body.pop("metadata", {}).get("labels")
        before = self.objects.get((namespace, name), {}).get("metadata", {})
        obj = await self.put(name, namespace, **body, **({"metadata": {**before, "labels": labels}} if labels else {}))
        return _json(obj, status=201 if verb == "post" else 200)

    async def start(self) -> None:
        application = web.Application()
        application.router.add_route("*", "/{tail:.*}", self.handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.05, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def stop(self) -> None:
        self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None


@asynccontextmanager
async def serving() -> AsyncIterator[WidgetServer]:
    server = WidgetServer()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def _verb(request: web.Request) -> str:
    if request.method != "GET":
        return request.method.lower()
    if "watch" in request.query:
        return "watchlist" if "sendInitialEvents" in request.query else "watch"
    return "list"


def _json(body: Object, *, status: int = 200) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(body), content_type="application/json")
