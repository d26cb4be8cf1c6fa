"""The verbs of the Kubernetes API, for any kind.

The client adds the meaning of the verbs to the transport: paths, query parameters, media types, and the log of writes
by which a reconciler waits to read them back (`kardinal.kube.writes`). It knows no custom resource. Names that become
part of a URL are validated here, so that a name from a webhook cannot become another path.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from kardinal.kube.bounds import HUB, Allowance, Bounds, Room, checked_object
from kardinal.kube.connection import Connection
from kardinal.kube.errors import BadRequest, ConnectionFailed
from kardinal.kube.objects import ObjectList, PatchType, WatchEvent
from kardinal.kube.transport import Sleep, Transport
from kardinal.kube.watch import WatchStream
from kardinal.kube.writes import note_delete, note_write
from kardinal.objects import JsonObject, ResourceType

__all__ = ["Client"]

WATCH_TIMEOUT_SECONDS = 300
_OVERTIME = 60.0
"""A watch that the server has not ended this many seconds after its timeout is ended by the client."""


class Client:
    """Read and write objects of one API server. Use it inside `async with`.

    `room`: the memory that all collections of an untrusted server may take together.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        user_agent: str,
        sleep: Sleep = asyncio.sleep,
        bounds: Bounds = HUB,
        room: Room | None = None,
    ) -> None:
        self._transport = Transport(connection, user_agent=user_agent, sleep=sleep, bounds=bounds)
        self._room = room
        self._user: str | None = None

    def as_user(self, user: str) -> Client:
        """Return a client that shares this one's session and acts with the rights of `user`, such as a ServiceAccount.

        The API server refuses each of its requests unless the credentials may impersonate `user`.
        """
        acting = copy.copy(self)
        acting._user = user
        return acting

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(exc_type, exc, traceback)

    @property
    def connection(self) -> Connection:
        return self._transport.connection

    @property
    def bounds(self) -> Bounds:
        return self._transport.bounds

    def allowance(self) -> Allowance:
        """Return a new allowance from the memory for all collections."""
        return Allowance(self._room)

    @property
    def in_flight(self) -> int:
        """The number of requests in flight, without watches."""
        return self._transport.in_flight

    def observe(self, observer: Callable[[str, int], None]) -> None:
        """Call `observer(method, status)` for every answer."""
        self._transport.observers.append(observer)

    async def fetch(self, path: str) -> JsonObject:
        """Return the JSON object at a path that belongs to no resource, such as `/apis`."""
        return await self._request("GET", path)

    async def get(self, resource: ResourceType, name: str, namespace: str | None = None) -> JsonObject:
        return await self._request("GET", _path(resource, namespace, name))

    async def list(
        self,
        resource: ResourceType,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        limit: int | None = None,
        continue_token: str | None = None,
        resource_version: str | None = None,
        allowance: Allowance | None = None,
    ) -> ObjectList:
        """Return one page, or all objects if there is no `limit`. `allowance` counts the memory of the page."""
        query = _query(
            labelSelector=labels,
            fieldSelector=fields,
            limit=limit,
            **{"continue": continue_token},
            resourceVersion=resource_version,
        )
        path = _path(resource, namespace)
        answer, memory = await self._transport.request("GET", path, query=query, user=self._user)
        if not self.bounds.trusted:
            _check_list(answer, path)
        if allowance is not None:
            allowance.take_page(memory)
        items: list[JsonObject] = answer.get("items") or []
        for item in items:
            # The server leaves these out of the list items of built-in kinds.
            item.setdefault("apiVersion", resource.api_version)
            item.setdefault("kind", resource.kind)
        metadata = answer.get("metadata") or {}
        return ObjectList(items, metadata.get("resourceVersion", ""), metadata.get("continue") or None)

    @asynccontextmanager
    async def watch(
        self,
        resource: ResourceType,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        resource_version: str | None = None,
        initial_events: bool = False,
        timeout_seconds: int = WATCH_TIMEOUT_SECONDS,
        allowance: Allowance | None = None,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """Follow changes from `resource_version` on; with `initial_events`, the present state comes first."""
        query = _query(
            watch="1",
            allowWatchBookmarks="true",
            timeoutSeconds=timeout_seconds,
            labelSelector=labels,
            fieldSelector=fields,
            resourceVersion=resource_version,
            sendInitialEvents="true" if initial_events else None,
            resourceVersionMatch="NotOlderThan" if initial_events else None,
        )
        path = _path(resource, namespace)
        async with self._transport.stream(path, query=query, user=self._user) as content:
            late = asyncio.timeout(timeout_seconds + _OVERTIME)
            try:
                async with late:
                    yield WatchStream(content, path=path, bounds=self.bounds, allowance=allowance)
            except TimeoutError:
                if not late.expired():
                    raise
                raise ConnectionFailed(f"WATCH {path}: the server does not end it") from None

    async def create(
        self, resource: ResourceType, obj: JsonObject, *, field_manager: str | None = None, dry_run: bool = False
    ) -> JsonObject:
        """Create an object; with `dry_run`, the server only answers what it would do. Defaults to False."""
        created = await self._request(
            "POST",
            _path(resource, _namespace_of(obj)),
            query=_query(fieldManager=field_manager, dryRun="All" if dry_run else None),
            body=obj,
        )
        return created if dry_run else self._noted(resource, created)

    async def replace(self, resource: ResourceType, obj: JsonObject, *, subresource: str | None = None) -> JsonObject:
        path = _path(resource, _namespace_of(obj), obj["metadata"]["name"], subresource)
        return self._noted(resource, await self._request("PUT", path, body=obj))

    async def patch(
        self,
        resource: ResourceType,
        name: str,
        namespace: str | None,
        body: object,
        *,
        kind: PatchType = PatchType.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
    ) -> JsonObject:
        return self._noted(
            resource,
            await self._request(
                "PATCH",
                _path(resource, namespace, name, subresource),
                query=_query(fieldManager=field_manager),
                body=body,
                content_type=kind.value,
            ),
        )

    async def apply(
        self,
        resource: ResourceType,
        obj: JsonObject,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str | None = None,
    ) -> JsonObject:
        """Apply `obj` on the server side: this manager then owns its fields.

        Fields that this manager applied earlier and has now left out are removed.
        """
        return self._noted(
            resource,
            await self._request(
                "PATCH",
                _path(resource, _namespace_of(obj), obj["metadata"]["name"], subresource),
                query=_query(fieldManager=field_manager, force="true" if force else None),
                body=obj,
                content_type=PatchType.APPLY.value,
            ),
        )

    async def delete(
        self,
        resource: ResourceType,
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        propagation: str = "Background",
    ) -> None:
        """Delete an object; with `uid`, only the object with this uid, and otherwise raise `Conflict`."""
        options: JsonObject = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        answer = await self._request("DELETE", _path(resource, namespace, name), body=options)
        metadata = answer.get("details" if answer.get("kind") == "Status" else "metadata") or {}
        if metadata.get("finalizers"):
            note_write(resource, answer)
        else:
            note_delete(resource, namespace, name, uid or metadata.get("uid"))

    async def _request(self, method: str, path: str, **arguments: Any) -> JsonObject:
        answer: JsonObject = (await self._transport.request(method, path, user=self._user, **arguments)).value
        return answer

    @staticmethod
    def _noted(resource: ResourceType, written: JsonObject) -> JsonObject:
        note_write(resource, written)
        return written


def _check_list(answer: JsonObject, path: str) -> None:
    """Refuse a list of an untrusted server that does not have the shape of a list."""
    items = answer.get("items") or []
    metadata = answer.get("metadata") or {}
    try:
        if not isinstance(items, list) or not isinstance(metadata, dict):
            raise ValueError("it is no list")
        if not all(isinstance(metadata.get(field, ""), str) for field in ("resourceVersion", "continue")):
            raise ValueError("its metadata are no texts")
        for item in items:
            checked_object(item)
    except ValueError as error:
        raise ConnectionFailed(f"GET {path}: the answer is not a list of objects: {error}") from None


def _path(
    resource: ResourceType, namespace: str | None = None, name: str | None = None, subresource: str | None = None
) -> str:
    for field, segment in (("namespace", namespace), ("name", name)):
        if segment and not _is_path_segment(segment):
            raise BadRequest(400, "BadRequest", f"metadata.{field}: {segment!r} is not a valid name")
    return resource.path(namespace=namespace, name=name, subresource=subresource)


def _is_path_segment(name: str) -> bool:
    return name not in (".", "..") and name.isascii() and name.isprintable() and not set(name) & set("/%?# ")


def _namespace_of(obj: JsonObject) -> str | None:
    namespace: str | None = obj["metadata"].get("namespace")
    return namespace


def _query(**values: str | int | None) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None and value != ""}
