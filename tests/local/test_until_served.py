"""Waiting for custom resources to be served, on a server that fills their status little by little."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from kardinal.kube import Client, ClusterAccess, Connection
from kardinal_local.stack import until_served
from tests.runtime.apiserver import event_line, watch_lines


def definition(revision: int, conditions: list[dict[str, str]] | None) -> dict[str, Any]:
    metadata = {"name": "bundles.kardinal.io", "resourceVersion": str(revision)}
    return {"metadata": metadata, "status": {"conditions": conditions}}


async def test_a_status_without_conditions_yet_is_waited_for() -> None:
    established = [{"type": "Established", "status": "True"}]
    answer = watch_lines(
        event_line("ADDED", definition(1, None)),
        event_line("MODIFIED", definition(2, [{"type": "NamesAccepted", "status": "True"}])),
        event_line("MODIFIED", definition(3, established)),
    )
    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    waited = {"bundles.kardinal.io"}
    try:
        async with (
            asyncio.timeout(10),
            Client(Connection(ClusterAccess(f"http://{host}:{port}")), user_agent="test") as client,
        ):
            await until_served(client, waited)
    finally:
        await runner.cleanup()
    assert waited == set()
