"""A stand-in for a metric server that counts its requests, and MetricChecks that ask it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web

from kardinal.objects import JsonObject
from kardinal_controller.metric_checks.servers import MetricHost
from tests.support.endpoint import Endpoint, serving_endpoint
from tests.support.names import POLICIES, TEAM

__all__ = ["HERE", "MetricServer", "check", "serving_metrics", "vector"]

HERE = MetricHost("127.0.0.1:*", (TEAM, POLICIES))
"""The metric servers of tests, as the operator lists them."""


def vector(*values: float | str) -> JsonObject:
    """Return the answer to an instant query with a series for each value."""
    result = [{"metric": {"n": str(n)}, "value": [1772532000, str(value)]} for n, value in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


class MetricServer:
    """Answers every query with `answer`: values of series, or a handler. `queries` has what was asked."""

    def __init__(self) -> None:
        self.answer: tuple[float | str, ...] | Callable[[web.Request], Awaitable[web.StreamResponse]] = (1.0,)
        self.endpoint = Endpoint()

    @property
    def address(self) -> str:
        return f"http://{self.endpoint.host}"

    @property
    def queries(self) -> list[str]:
        """Return the queries in the order in which they came."""
        return [parse_qs(each.body.decode())["query"][0] for each in self.endpoint.heard]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if callable(self.answer):
            return await self.answer(request)
        return web.json_response(vector(*self.answer), dumps=json.dumps)


@asynccontextmanager
async def serving_metrics() -> AsyncIterator[MetricServer]:
    """Serve a metric server until the end of the block."""
    server = MetricServer()
    async with serving_endpoint(server.handle) as server.endpoint:
        yield server


def check(
    server: MetricServer | str, *, name: str = "success-rate", namespace: str = TEAM, secret: str = "", **spec: Any
) -> JsonObject:
    """Return a MetricCheck that succeeds from 0.99 on, and fails below 0.95; `spec` has other fields."""
    provider: JsonObject = {"type": "prometheus", "address": server if isinstance(server, str) else server.address}
    if secret:
        provider["secretRef"] = {"name": secret}
    return {
        "apiVersion": "kardinal.io/v1alpha1",
        "kind": "MetricCheck",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "provider": provider,
            "query": 'rate{app="{{ .AppName }}"}',
            "successCondition": ">= 0.99",
            "failureCondition": "< 0.95",
            **spec,
        },
    }
