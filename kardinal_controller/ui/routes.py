"""The route groups of the page's API: documents, lists and streams for the viewer of each request.

What a viewer may not list does not exist for them: in a namespace without the right to list Pipelines, everything is
404. A viewer who may list Pipelines there, but not what else a document is made of, is told so with 403. Documents
come from the feed; no request of a viewer reads the API server, except YAML and Events, which are read as the viewer.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson
from aiohttp import web

from kardinal.clock import Clock
from kardinal.objects import GRAPH, JsonObject, Key, ResourceType, controller_of, key_of
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.views.missing import NotThere
from kardinal.runtime.routes import HttpRoute, RouteGroup, unauthenticated
from kardinal_controller.caches import Caches, pipeline_label
from kardinal_controller.ui.access.refusal import Refusal
from kardinal_controller.ui.access.seat import Access, Seat
from kardinal_controller.ui.as_viewer import read_events, read_yaml
from kardinal_controller.ui.documents import (
    bundle_card,
    bundle_document,
    environment_document,
    gate_document,
    graph_document,
    graph_row,
    pipeline_document,
)
from kardinal_controller.ui.feed import Feed, FeedSubject
from kardinal_controller.ui.model import BundleCard, BundleList, GraphList, View
from kardinal_controller.ui.openapi import API, OPERATIONS, document
from kardinal_controller.ui.stream import DocumentSource, OverviewSource, Streams

__all__ = ["PageApi"]

LIMIT = 100
"""The items of a page of a list, if `limit` does not say otherwise."""
MOST = 500
SLICE = 50
"""The items that are computed before the event loop gets its turn."""
COMPRESSED = 1024
"""The bytes from which on an answer is compressed."""

_OF_PIPELINES = (PIPELINE, BUNDLE, PROMOTION_STEP, POLICY_GATE)
"""The kinds whose content is in a row or a document of a Pipeline."""
_OF_GRAPHS = (GRAPH, PROMOTION_STEP, POLICY_GATE)

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_AFTER = re.compile(r"[-A-Za-z0-9.:/]{1,600}")

_Answer = Callable[[web.Request, Seat], Awaitable[web.StreamResponse]]
_Kinds = Sequence[ResourceType]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A document that a request names, and how it is computed."""

    subject: FeedSubject
    name: str
    compute: Callable[[], Awaitable[View]]


_Find = Callable[[web.Request, Seat], Awaitable[_Wanted]]


class PageApi:
    """The endpoints of `openapi.OPERATIONS`. `version` is that of the program, `base_path` for example `/kardinal`.

    `argocd` is the address of Argo CD, for example `https://argocd.example.com`.
    """

    def __init__(
        self,
        feed: Feed,
        caches: Caches,
        access: Access,
        *,
        clock: Clock,
        version: str,
        base_path: str = "",
        argocd: str = "",
    ) -> None:
        self._feed = feed
        self._caches = caches
        self._access = access
        self._clock = clock
        self._prefix = f"{base_path}{API}"
        self._argocd = argocd
        self._streams = Streams(feed, access, clock=clock)
        self._openapi = orjson.dumps(document(version))

    def groups(self) -> list[RouteGroup[Any]]:
        """Return the groups of routes; stopping them ends all streams."""
        answers: dict[str, _Answer] = {
            "/viewer": self._viewer,
            "/pipelines": self._pipelines,
            "/bundles": self._bundles,
            "/graphs": self._graphs,
            "/events": self._events,
            "/yaml/{kind}/{namespace}/{name}": self._yaml,
            "/stream/overview": self._overview,
        }
        documents: dict[str, tuple[_Find, _Kinds]] = {
            "/pipelines/{namespace}/{name}": (self._pipeline, _OF_PIPELINES),
            "/pipelines/{namespace}/{name}/environments/{environment}": (self._environment, _OF_PIPELINES),
            "/pipelines/{namespace}/{name}/gates/{environment}/{gateNamespace}/{gate}": (self._gate, _OF_PIPELINES),
            "/bundles/{namespace}/{name}": (self._bundle, _OF_PIPELINES),
            "/graphs/{namespace}/{name}": (self._graph, _OF_GRAPHS),
        }
        for path, (find, kinds) in documents.items():
            answers[path] = partial(self._document, find, kinds)
            answers[f"/stream{path}"] = partial(self._stream, find, kinds)
        routes = [
            HttpRoute(each.method, f"{self._prefix}{each.path}", answers[each.path])
            for each in OPERATIONS
            if each.path in answers
        ]
        described = HttpRoute("GET", f"{self._prefix}/openapi.json", self._describe)
        return [RouteGroup(routes, self._access.authenticated), RouteGroup((described,), unauthenticated)]

    async def stop(self) -> None:
        """End all streams, and refuse new ones."""
        await self._streams.stop()

    def end_streams(self, reason: str) -> None:
        """End all streams; their pages connect again."""
        self._streams.end(reason)

    # Lists.

    async def _viewer(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        return _answered(request, _encoded(seat.viewer))

    async def _describe(self, request: web.Request, _: None) -> web.StreamResponse:
        return _answered(request, self._openapi)

    async def _pipelines(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        await self._feed.complete()
        after = _after(request)
        visible = await _visible(seat, self._feed.overview.namespaces, _OF_PIPELINES, _namespace(request))
        rows = self._feed.overview.rows(visible)
        kept = [row for key, row in rows if not after or tuple(key.split("/")) > tuple(after.split("/"))]
        return _listed(request, kept, cursor=lambda row: f"{row['namespace']}/{row['name']}")

    async def _graphs(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        after = _after(request)
        stored = self._caches.graphs.list(_namespace(request))
        namespaces = {graph["metadata"]["namespace"] for graph in stored}
        visible = await _visible(seat, namespaces, (GRAPH,))
        found = sorted((each for each in stored if each["metadata"]["namespace"] in visible), key=key_of)
        later = [graph for graph in found if not after or key_of(graph) > Key(*after.partition("/")[::2])]
        limit = _limit(request)
        items = [graph_row(graph) for graph in later[:limit]]
        more = str(key_of(later[limit - 1])) if len(later) > limit else None
        return _answered(request, _encoded(GraphList(items=items, next=more)))

    async def _bundles(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        after = _after(request)
        limit = _limit(request)
        namespace = _namespace(request)
        pipeline = _name(request.query, "pipeline")
        if pipeline is not None and namespace is None:
            raise _invalid("pipeline is given without namespace", "Add namespace=NAME.")
        if pipeline is not None and namespace is not None:
            stored = self._caches.bundles_of(namespace, pipeline)
        else:
            stored = self._caches.bundles.list(namespace)
        namespaces = {bundle["metadata"]["namespace"] for bundle in stored}
        visible = await _visible(seat, namespaces, _OF_PIPELINES)
        found = sorted(
            (each for each in stored if each["metadata"]["namespace"] in visible), key=_bundle_cursor, reverse=True
        )
        later = [bundle for bundle in found if not after or _bundle_cursor(bundle) < after]
        items = await self._cards(later[:limit])
        more = _bundle_cursor(later[limit - 1]) if len(later) > limit else None
        return _answered(request, _encoded(BundleList(items=items, next=more)))

    async def _cards(self, stored: Iterable[JsonObject]) -> list[BundleCard]:
        cards: list[BundleCard] = []
        known: dict[Key, Any] = {}
        for number, bundle in enumerate(stored):
            pipeline = self._caches.pipeline(bundle["metadata"]["namespace"], pipeline_label(bundle))
            if pipeline is None:
                continue
            key = key_of(pipeline)
            if key not in known:
                known[key] = await self._feed.objects(key.namespace, key.name)
            objects = known[key]
            named = (each for each in objects.bundles if each.metadata.name == bundle["metadata"]["name"])
            cards += [bundle_card(each, objects) for each in named]
            if number % SLICE == SLICE - 1:
                await asyncio.sleep(0)
        return cards

    # Documents.

    async def _pipeline(self, request: web.Request, _: Seat) -> _Wanted:
        key = _key(request)
        bundle = _name(request.query, "bundle")

        async def compute() -> View:
            objects = await self._feed.objects(*key, bundle)
            return await self._feed.computed(partial(pipeline_document, objects, now=self._clock.now()), objects)

        return _Wanted(subject=FeedSubject("Pipeline", key), name=f"pipeline/{bundle or ''}", compute=compute)

    async def _environment(self, request: web.Request, _: Seat) -> _Wanted:
        key = _key(request)
        bundle = _name(request.query, "bundle")
        environment = _required(request, "environment")

        async def compute() -> View:
            objects = await self._feed.objects(*key, bundle)
            now = self._clock.now()
            work = partial(environment_document, objects, environment, now=now, argocd=self._argocd)
            return await self._feed.computed(work, objects)

        name = f"environment/{environment}/{bundle or ''}"
        return _Wanted(subject=FeedSubject("Pipeline", key), name=name, compute=compute)

    async def _gate(self, request: web.Request, seat: Seat) -> _Wanted:
        key = _key(request)
        bundle = _name(request.query, "bundle")
        environment = _required(request, "environment")
        namespace = _required(request, "gateNamespace")
        gate = _required(request, "gate")
        # The template may be in another namespace, as those of the platform are.
        sees_template = await seat.may_list(POLICY_GATE, namespace)

        async def compute() -> View:
            objects = await self._feed.objects(*key, bundle)
            template = self._caches.gates.get(namespace, gate) if sees_template else None
            now = self._clock.now()
            work = partial(gate_document, objects, environment, namespace, gate, template=template, now=now)
            return await self._feed.computed(work, objects)

        name = f"gate/{environment}/{namespace}/{gate}/{bundle or ''}/{sees_template}"
        return _Wanted(subject=FeedSubject("Pipeline", key), name=name, compute=compute)

    async def _bundle(self, request: web.Request, _: Seat) -> _Wanted:
        key = _key(request)
        stored = self._caches.bundles.get(*key)
        pipeline = self._caches.pipeline(key.namespace, pipeline_label(stored)) if stored is not None else None

        async def compute() -> View:
            if pipeline is None:
                raise _no_bundle(key)
            objects = await self._feed.objects(*key_of(pipeline), key.name)
            return await self._feed.computed(partial(bundle_document, objects, now=self._clock.now()), objects)

        subject = FeedSubject("Pipeline", key_of(pipeline) if pipeline is not None else key)
        return _Wanted(subject=subject, name=f"bundle/{key.name}", compute=compute)

    async def _graph(self, request: web.Request, _: Seat) -> _Wanted:
        key = _key(request)

        async def compute() -> View:
            graph = self._caches.graphs.get(*key)
            if graph is None:
                raise NotThere(
                    f"no Graph {key.name} in namespace {key.namespace}",
                    remedy=f"List them: kubectl get graphs -n {key.namespace}",
                )
            children = [*self._caches.steps_of(key), *self._caches.gates_of(key)]
            return graph_document(graph, [each for each in children if _is_child(each, key.name)])

        return _Wanted(subject=FeedSubject("Graph", key), name="graph", compute=compute)

    async def _document(self, find: _Find, kinds: _Kinds, request: web.Request, seat: Seat) -> web.StreamResponse:
        await _check_rights(seat, _required(request, "namespace"), kinds)
        found = await find(request, seat)
        async with self._feed.watched(found.subject, found.name, found.compute) as live:
            return _answered(request, orjson.dumps(live.content))

    async def _stream(self, find: _Find, kinds: _Kinds, request: web.Request, seat: Seat) -> web.StreamResponse:
        namespace = _required(request, "namespace")
        await _check_rights(seat, namespace, kinds)
        found = await find(request, seat)

        async def may_see() -> bool:
            return await _may_list(seat, namespace, kinds)

        async with self._feed.watched(found.subject, found.name, found.compute) as live:
            return await self._streams.answer(request, seat, DocumentSource(live, may_see))

    async def _overview(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        namespace = _namespace(request)
        await self._feed.complete()

        async def visible(namespaces: Iterable[str]) -> frozenset[str]:
            return await _visible(seat, namespaces, _OF_PIPELINES, namespace)

        return await self._streams.answer(request, seat, OverviewSource(self._feed, visible))

    # What is read as the viewer.

    async def _events(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        namespace = _namespace(request)
        bundle = _name(request.query, "bundle")
        if namespace is None or bundle is None:
            raise _invalid("namespace and bundle are required", "Add namespace=NAME&bundle=NAME.")
        return _answered(request, _encoded(await read_events(seat, namespace, bundle)))

    async def _yaml(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        text = await read_yaml(seat, request.match_info["kind"], _key(request))
        return _answered(request, text, content_type="application/yaml")


# Rights.


async def _visible(
    seat: Seat, namespaces: Iterable[str], kinds: _Kinds, namespace: str | None = None
) -> frozenset[str]:
    """Return the namespaces, of these or the one, in which the viewer may list all of the kinds."""
    named = [each for each in namespaces if namespace in (None, each)]
    return frozenset([each for each in named if await _may_list(seat, each, kinds)])


async def _may_list(seat: Seat, namespace: str, kinds: _Kinds) -> bool:
    for kind in kinds:
        if not await seat.may_list(kind, namespace):
            return False
    return True


async def _check_rights(seat: Seat, namespace: str, kinds: _Kinds) -> None:
    """Raise `Refusal` for a namespace in which the viewer may not list all of the kinds, whether it exists or not."""
    first = kinds[0]
    if not await seat.may_list(first, namespace):
        raise Refusal(
            HTTPStatus.NOT_FOUND,
            f"there is no {first.kind} in namespace {namespace} that you may list",
            remedy=f"Look whether you may: kubectl auth can-i list {first.plural}.{first.group} -n {namespace}",
        )
    hidden = [kind for kind in kinds if not await seat.may_list(kind, namespace)]
    if hidden:
        names = ", ".join(kind.plural for kind in hidden)
        raise Refusal(
            HTTPStatus.FORBIDDEN,
            f"you may list {first.plural} in namespace {namespace}, but not {names}",
            remedy=f"Ask for the right to list {names} there.",
        )


# Parts of documents.


def _is_child(obj: JsonObject, graph: str) -> bool:
    owner = controller_of(obj, GRAPH)
    return owner is not None and owner.name == graph


def _no_bundle(key: Key) -> NotThere:
    return NotThere(
        f"no Bundle {key.name} with a Pipeline in namespace {key.namespace}",
        remedy=f"List them: kubectl get bundles -n {key.namespace}",
    )


def _bundle_cursor(bundle: JsonObject) -> str:
    """Return the place of a Bundle in the list, such as `2026-11-27T02:00:00Z/shop/search-1`."""
    return f"{bundle['metadata']['creationTimestamp']}/{key_of(bundle)}"


# Parameters.


def _key(request: web.Request) -> Key:
    return Key(_required(request, "namespace"), _required(request, "name"))


def _required(request: web.Request, parameter: str) -> str:
    return _checked(parameter, request.match_info[parameter])


def _namespace(request: web.Request) -> str | None:
    return _name(request.query, "namespace")


def _name(given: Mapping[str, str], parameter: str) -> str | None:
    value = given.get(parameter)
    return _checked(parameter, value) if value else None


def _checked(parameter: str, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise _invalid(f"{parameter} is no name of an object", "Use lower-case letters, digits, '-' and '.'.")
    return value


def _after(request: web.Request) -> str:
    value = request.query.get("after", "")
    if value and (not _AFTER.fullmatch(value) or "/" not in value):
        raise _invalid("after is no place in the list", "Use `next` of the page before.")
    return value


def _limit(request: web.Request) -> int:
    value = request.query.get("limit", str(LIMIT))
    if not (value.isascii() and value.isdecimal() and len(value) < 5 and 1 <= int(value) <= MOST):
        raise _invalid(f"limit is no number from 1 to {MOST}", f"Use limit={LIMIT}.")
    return int(value)


def _invalid(message: str, remedy: str) -> Refusal:
    return Refusal(HTTPStatus.BAD_REQUEST, message, remedy=remedy)


# Answers.


def _listed(request: web.Request, rows: Sequence[Any], *, cursor: Callable[[Any], str]) -> web.StreamResponse:
    limit = _limit(request)
    page: dict[str, Any] = {"items": rows[:limit]}
    if len(rows) > limit:
        page["next"] = cursor(rows[limit - 1])
    return _answered(request, orjson.dumps(page))


def _encoded(view: View) -> bytes:
    return view.model_dump_json(exclude_none=True).encode()


def _answered(request: web.Request, content: bytes, *, content_type: str = "application/json") -> web.StreamResponse:
    """Return an answer with an ETag, 304 where the client has it already."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    if request.headers.get("If-None-Match") == tag:
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
    response = web.Response(
        body=content,
        content_type=content_type,
        headers={"ETag": tag, "Vary": "Accept-Encoding"},
        zlib_executor_size=COMPRESSED,
    )
    if len(content) >= COMPRESSED and "gzip" in request.headers.get("Accept-Encoding", ""):
        response.enable_compression(web.ContentCoding.gzip)
    return response
