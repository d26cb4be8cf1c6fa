"""Serve /healthz, /readyz and /metrics.

They answer before anything else runs, because a process that is still reading its caches is healthy but not ready, and
a Deployment must see the difference. `?verbose` lists the checks, which a failing answer always does, and
`?exclude=caches` leaves out a check. A check is a function that returns a problem, or None. Metrics are only for
clients that `ScrapeAccess` admits.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kardinal.runtime.listener import Listener
from kardinal.runtime.metrics import Metrics
from kardinal.runtime.routes import HttpRoute, RouteGroup, add_routes, unauthenticated
from kardinal.runtime.scrapes import ScrapeAccess

__all__ = ["Check", "ProbeServer"]

Check = Callable[[], str | None]

CONNECTIONS = 64
"""The most connections of probes, and as many for metrics if these have an address of their own."""


class ProbeServer:
    """Serve probes at one address and metrics at the same or another one; None means that they are not served.

    Without `scrape_access`, everyone may read the metrics.
    """

    def __init__(
        self,
        *,
        probe_address: str | None,
        metrics_address: str | None,
        ready_checks: Mapping[str, Check],
        metrics: Metrics,
        scrape_access: ScrapeAccess | None,
    ) -> None:
        self._addresses = {"probes": probe_address, "metrics": metrics_address}
        self._ready_checks = ready_checks
        self._metrics = metrics
        self._scrape_access = scrape_access
        self._listeners: list[Listener] = []
        self.urls: dict[str, str] = {}

    async def start(self) -> None:
        """Start listening; afterwards `urls` is filled."""
        shared = self._addresses["probes"] == self._addresses["metrics"]
        for role, address in self._addresses.items():
            if address is None or (shared and role == "metrics"):
                continue
            url = await self._listen(address, probes=shared or role == "probes", metrics=shared or role == "metrics")
            self.urls.update({"probes": url, "metrics": url} if shared else {role: url})

    async def stop(self) -> None:
        for listener in self._listeners:
            await listener.stop()
        self._listeners.clear()
        self.urls.clear()

    async def _listen(self, address: str, *, probes: bool, metrics: bool) -> str:
        application = web.Application()
        groups: list[RouteGroup[Any]] = [*([self._probes()] if probes else []), *([self._scrapes()] if metrics else [])]
        add_routes(application.router, groups)
        listener = Listener(most=CONNECTIONS)
        self._listeners.append(listener)
        return await listener.start(application, address)

    def _probes(self) -> RouteGroup[None]:
        return RouteGroup(
            (
                HttpRoute("GET", "/healthz", self._healthz),
                HttpRoute("GET", "/readyz", self._readyz),
                HttpRoute("GET", "/readyz/{check}", self._readyz),
            ),
            unauthenticated,
        )

    def _scrapes(self) -> RouteGroup[None]:
        return RouteGroup((HttpRoute("GET", "/metrics", self._scrape),), self._scraper)

    @asynccontextmanager
    async def _scraper(self, request: web.Request) -> AsyncIterator[None]:
        if self._scrape_access is not None:
            await self._scrape_access.check(request)
        yield

    async def _healthz(self, _: web.Request, __: None) -> web.Response:
        # Reaching this line proves that the event loop is running.
        await self._metrics.measure_loop_lag()
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request, _: None) -> web.Response:
        checks = dict(self._ready_checks)
        if wanted := request.match_info.get("check"):
            if wanted not in checks:
                raise web.HTTPNotFound(text=f"there is no check {wanted!r}")
            checks = {wanted: checks[wanted]}
        for excluded in request.query.getall("exclude", []):
            checks.pop(excluded, None)
        answers = {name: check() for name, check in checks.items()}
        failed = any(answer is not None for answer in answers.values())
        if not failed and "verbose" not in request.query:
            return web.Response(text="ok")
        lines = [f"[+]{name} ok" if said is None else f"[-]{name} failed: {said}" for name, said in answers.items()]
        lines.append("readyz check failed" if failed else "readyz check passed")
        return web.Response(status=500 if failed else 200, text="\n".join(lines) + "\n")

    async def _scrape(self, _: web.Request, __: None) -> web.Response:
        await self._metrics.measure_loop_lag()
        body = generate_latest(self._metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})
