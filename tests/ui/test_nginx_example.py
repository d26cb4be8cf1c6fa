"""The example of `docs/guides/web-page.md` with nginx works as it stands there."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from kardinal_controller.ui.access import ProxyAccess, Reviews
from kardinal_controller.ui.certificate import CertificateFiles
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import TEAM
from tests.support.objects import pipeline
from tests.support.world import World
from tests.ui.served import follow, start_page
from tests.ui.test_access_proxy import Authority
from tests.ui.viewers import bind, reception_of

GUIDE = Path(__file__).parents[2] / "docs/guides/web-page.md"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")

REPOSITORY = "https://git.example.com/acme/gitops.git"

pytestmark = pytest.mark.skipif(NGINX is None, reason="needs nginx, which runs the example of the guide")


@asynccontextmanager
async def authenticating() -> AsyncIterator[str]:
    """Serve what oauth2-proxy answers to nginx: the session of a viewer is a cookie with their name."""

    async def answer(request: web.Request) -> web.Response:
        user = request.cookies.get("session")
        if user is None:
            return web.Response(status=401)
        return web.Response(headers={"X-Auth-Request-User": user, "X-Auth-Request-Groups": "shop,qa"})

    app = web.Application()
    app.router.add_get("/oauth2/auth", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def nginx(directory: Path, *, page: str, authenticator: str, authority: Authority) -> AsyncIterator[str]:
    """Run the example with the addresses and the files of this test in place of those of a cluster."""
    assert NGINX is not None
    found = re.search(r"```nginx\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found is not None
    certificate = authority.issue("proxy")
    example = found[1]
    for of_guide, used in (
        ("oauth2-proxy.kardinal-system.svc:4180", authenticator),
        ("kardinal-controller.kardinal-system.svc:8082", page.replace("https://127.0.0.1", "localhost")),
        ("/etc/proxy/tls.crt", str(certificate)),
        ("/etc/proxy/tls.key", str(certificate)),
        ("/etc/proxy/kardinal-ca.crt", str(authority.file)),
    ):
        assert of_guide in example
        example = example.replace(of_guide, used)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    paths = " ".join(f"{kind}_temp_path {directory};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    file = directory / "nginx.conf"
    file.write_text(
        f"daemon off; master_process off; pid {directory}/nginx.pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {paths} server {{ listen 127.0.0.1:{port};\n{example}}} }}\n"
    )
    process = await asyncio.create_subprocess_exec(NGINX, "-e", "stderr", "-c", str(file), "-p", str(directory))
    try:
        await _until_it_listens(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _until_it_listens(process: asyncio.subprocess.Process, port: int) -> None:
    while process.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            return
    raise AssertionError("nginx refuses the example")


async def test_nginx_names_the_viewer_and_streams(world: World, tmp_path: Path, session: aiohttp.ClientSession) -> None:
    for role in documents_of("roles.yaml"):
        await world.client.apply(RESOURCES[role["kind"]], role, field_manager="test", force=True)
    await bind(world, "dana", "kardinal-viewer", namespace=TEAM)
    await world.apply(pipeline(REPOSITORY, environments=["dev"], provider="git"))
    authority = Authority.make(tmp_path / "authority", "authority")
    certificate = authority.issue("page")
    reviews = Reviews(await world.connect("controller"), clock=world.clock)
    program = await start_page(
        world,
        access=ProxyAccess(reception=reception_of(world, reviews)),
        certificate=CertificateFiles(certificate, certificate, authority.file),
        base_path="/kardinal",
    )
    async with (
        authenticating() as authenticator,
        nginx(tmp_path, page=program.page.url, authenticator=authenticator, authority=authority) as url,
    ):
        api = f"{url}/kardinal/api/ui/v1"
        dana = {"Cookie": "session=dana", "Sec-Fetch-Site": "same-origin"}
        async with session.get(f"{api}/viewer", headers=dana) as answer:
            viewer = await answer.json()
        assert (viewer["user"], viewer["groups"][:2], viewer["namespaces"]) == ("dana", ["shop", "qa"], [TEAM])
        async with session.get(f"{url}/kardinal/ui/", headers=dana) as answer:
            assert answer.status == 200
        async with follow(session, f"{api}/stream/overview", headers=dana) as overview:
            await world.until(lambda: overview.last_id)
            assert list(overview.document["rows"]) == [f"{TEAM}/my-app"]

            await world.apply(pipeline(REPOSITORY, name="new", environments=["dev-new"], provider="git"))
            await world.until(lambda: f"{TEAM}/new" in overview.document["rows"])

        # What a browser sends of these headers is dropped.
        forged = {**dana, "X-Forwarded-User": "admin", "X-Forwarded-Groups": "admins"}
        async with session.get(f"{api}/viewer", headers=forged) as answer:
            assert (await answer.json())["user"] == "dana"
        async with session.get(f"{api}/viewer", headers={"X-Forwarded-User": "dana"}) as answer:
            assert answer.status == 401
