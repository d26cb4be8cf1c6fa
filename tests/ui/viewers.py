"""A small server behind an access of the web page, and the accounts that look at it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from kardinal.kube import KubeError
from kardinal.objects import SERVICE_ACCOUNT, ResourceType
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE
from kardinal.runtime.routes import HttpRoute, RouteGroup, add_routes
from kardinal.runtime.scrapes import ACCESS_REVIEW
from kardinal_controller.ui.access import Access, Reception, Reviews, Rights, Seat
from tests.support.identities import RESOURCES
from tests.support.names import TEAM
from tests.support.secret_values import know_secret
from tests.support.world import World

__all__ = ["OTHER", "Page", "bind", "reception_of", "serve", "token_of"]

OTHER = f"{TEAM}-other"
_KINDS = {each.plural: each for each in (PIPELINE, BUNDLE, POLICY_GATE)}
_RBAC = "rbac.authorization.k8s.io"


@dataclass(eq=False)
class Page:
    """The server: `url`, and an event for each look of the open stream at its seat."""

    access: Access
    url: str = ""
    looks: asyncio.Queue[None] = field(default_factory=asyncio.Queue)

    def group(self) -> RouteGroup[Seat]:
        return RouteGroup(
            (
                HttpRoute("GET", "/api/ui/v1/viewer", self._viewer),
                HttpRoute("GET", "/may/{namespace}/{plural}", self._may),
                HttpRoute("GET", "/read/{namespace}", self._read),
                HttpRoute("GET", "/stream", self._stream),
                HttpRoute("POST", "/act", self._viewer),
            ),
            self.access.authenticated,
        )

    async def _viewer(self, _: web.Request, seat: Seat) -> web.StreamResponse:
        return web.json_response(text=seat.viewer.model_dump_json())

    async def _may(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        kind = _KINDS[request.match_info["plural"]]
        return web.json_response(await seat.may_list(kind, request.match_info["namespace"]))

    async def _read(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        if seat.client is None:
            return web.json_response("no client")
        try:
            found = await seat.client.list(PIPELINE, request.match_info["namespace"])
        except KubeError as error:
            return web.json_response(type(error).__name__)
        return web.json_response([each["metadata"]["name"] for each in found.items])

    async def _stream(self, request: web.Request, seat: Seat) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"begun\n")
        while True:
            await self.looks.get()
            reason = await self.access.still_valid(seat)
            await answer.write(f"{reason or 'goes on'}\n".encode())
            if reason:
                return answer


@asynccontextmanager
async def serve(
    access: Access, *, tls: ssl.SSLContext | None = None, groups: Sequence[RouteGroup[Any]] = ()
) -> AsyncIterator[Page]:
    """Serve the routes of an access, some behind it, and `groups`."""
    page = Page(access)
    application = web.Application()
    served = [*access.groups, page.group(), *groups]
    add_routes(application.router, served)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    host, port = runner.addresses[0][:2]
    page.url = f"{'https' if tls else 'http'}://{host}:{port}"
    try:
        yield page
    finally:
        await runner.cleanup()
        for group in served:
            await group.stop()


def reception_of(world: World, reviews: Reviews, namespaces: Iterable[str] = (TEAM, OTHER)) -> Reception:
    """Return the reception of a program whose Pipelines live in `namespaces`."""
    return Reception(rights=Rights(reviews, clock=world.clock), namespaces=lambda: namespaces, version="0.1.0")


async def token_of(world: World, account: str) -> str:
    """Make a ServiceAccount and return a token of it."""
    named = {"name": account, "namespace": TEAM}
    await world.client.create(SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named})
    tokens = ResourceType("", "v1", "ServiceAccount", f"serviceaccounts/{account}/token")
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"namespace": TEAM},
        "spec": {},
    }
    made = await world.client.create(tokens, request)
    return know_secret(str(made["status"]["token"]))


async def bind(world: World, user: str, role: str, *, namespace: str | None) -> None:
    """Bind a user to a ClusterRole that lets it list Pipelines, in a namespace or everywhere, and wait until it may."""
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": {"name": f"{user.rpartition(':')[2]}-{role}", **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": user}],
    }
    await world.client.apply(RESOURCES[kind], binding, field_manager="test", force=True)
    attributes = {"verb": "list", "group": PIPELINE.group, "resource": PIPELINE.plural, "namespace": namespace or ""}
    review = {
        "apiVersion": ACCESS_REVIEW.api_version,
        "kind": ACCESS_REVIEW.kind,
        "metadata": {},
        "spec": {"user": user, "resourceAttributes": attributes},
    }

    async def allowed() -> bool:
        found: bool = (await world.client.create(ACCESS_REVIEW, review))["status"]["allowed"]
        return found

    await world.until(allowed)


async def answer_of(answer: aiohttp.ClientResponse) -> tuple[int, Any]:
    return answer.status, await answer.json(content_type=None)
