"""The token of a viewer is sent alone: with a client certificate of the controller it would act as the controller."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path

from aiohttp import web

from kardinal.kube import Client, ClusterAccess, Connection
from kardinal.kube.tls import client_context
from tests.support.secret_values import secret_value
from tests.ui.test_access_proxy import Authority, server_context

TOKEN = secret_value("viewer")


async def told(request: web.Request) -> web.Response:
    """Answer who the client is, as an API server sees it."""
    assert request.transport is not None
    certified = bool(request.transport.get_extra_info("peercert"))
    return web.json_response(
        {"certified": certified, "token": request.headers.get("Authorization") == f"Bearer {TOKEN}"}
    )


async def test_a_token_is_sent_without_the_certificate_of_the_controller(tmp_path: Path) -> None:
    authority = Authority.make(tmp_path / "authority", "cluster")
    tls = server_context(authority)
    tls.load_verify_locations(cafile=authority.file)
    tls.verify_mode = ssl.CERT_OPTIONAL
    application = web.Application()
    application.router.add_get("/who", told)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    certificate = authority.issue("controller")
    context = client_context(authority=authority.file, certificate=certificate, key=certificate)
    own = ClusterAccess(f"https://127.0.0.1:{runner.addresses[0][1]}", tls=context, presents_certificate=True)
    try:
        for access, answer in (
            (own, {"certified": True, "token": False}),
            (own.with_token(TOKEN), {"certified": False, "token": True}),
            (replace(own, lifetime=1.0).with_token(TOKEN), {"certified": False, "token": True}),
        ):
            async with Client(Connection(access), user_agent="test") as client:
                assert await client.fetch("/who") == answer
    finally:
        await runner.cleanup()
    assert TOKEN not in repr(own.with_token(TOKEN))
