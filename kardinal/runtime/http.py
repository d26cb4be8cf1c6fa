"""/healthz, /readyz and /metrics.

They answer before anything else runs, because a process that is still reading its caches is healthy and not yet ready,
and a deployment that waits for it must be able to see the difference. `?verbose` lists the checks, a failing answer
always does, and `?exclude=` leaves some out. A check is a function that returns what is wrong, or None. Metrics are for
those whom `ScrapeAccess` lets in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from kardinal.runtime.listener import Listener
from kardinal.runtime.metrics import Metrics
from kardinal.runtime.scrapes import ScrapeAccess

__all__ = ["Check", "ProbeServer"]

Check = Callable[[], str | None]

CONNECTIONS = 64
"""Connections of probes, and as many of metrics where these have an address of their own."""


class ProbeServer:
    """Serves probes at one address and metrics at the same or another one; None serves nothing.

    Without `scrape_access` everyone may read the metrics.
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
        """Listen; the URLs are known from then on."""
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
        if probes:
            application.router.add_get("/healthz", self._healthz)
            application.router.add_get("/readyz", self._readyz)
            application.router.add_get("/readyz/{check}", self._readyz)
        if metrics:
            application.router.add_get("/metrics", self._scrape)
        listener = Listener(most=CONNECTIONS)
        self._listeners.append(listener)
        return await listener.start(application, address)

    async def _healthz(self, _: web.Request) -> web.Response:
        # That this line is reached says that the loop turns.
        await self._metrics.measure_loop_lag()
        return web.Response(text="ok")

    async def _readyz(self, request: web.Request) -> web.Response:
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

    async def _scrape(self, request: web.Request) -> web.Response:
        if self._scrape_access is not None:
            await self._scrape_access.check(request)
        await self._metrics.measure_loop_lag()
        body = generate_latest(self._metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})
