"""The page in the program of the controller: its options, its port and its certificate."""

from __future__ import annotations

import asyncio
import socket
import ssl
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import click
import pytest

from kardinal.runtime.errors import RuntimeFailure
from kardinal.runtime.options import options_of
from kardinal_controller.ui.certificate import CertificateFiles
from kardinal_controller.ui.options import UiOptions
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_controller
from tests.support.world import World
from tests.ui.served import follow, start_page
from tests.ui.test_access_proxy import Authority, client_context
from tests.ui.viewers import bind, token_of

CERTIFICATE = Path("tls.crt")
KEY = Path("tls.key")


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ({"auth": "token", "listen_address": ":8082"}, "--ui-behind-tls"),
        ({"auth": "token", "listen_address": "0.0.0.0:8082"}, "--ui-tls-cert-file"),
        ({"auth": "proxy", "listen_address": "127.0.0.1:8082"}, "--ui-proxy-client-ca"),
        ({"auth": "proxy", "listen_address": ":8082", "behind_tls": True}, "--ui-proxy-client-ca"),
        ({"auth": "token", "proxy_client_ca": CERTIFICATE}, "--ui-auth=proxy"),
        ({"tls_certificate": CERTIFICATE}, "--ui-tls-key-file"),
    ],
)
def test_page_that_would_be_served_unsafely_is_refused(options: dict[str, Any], needed: str) -> None:
    with pytest.raises(RuntimeFailure, match=needed):
        UiOptions(**options).check()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"listen_address": ":8082"},
        {"auth": "token"},
        {"auth": "token", "listen_address": "127.0.0.1:8082"},
        {"auth": "token", "listen_address": "[::1]:8082"},
        {"auth": "token", "listen_address": ":8082", "behind_tls": True},
        {"auth": "token", "listen_address": ":8082", "tls_certificate": CERTIFICATE, "tls_key": KEY},
    ],
)
def test_other_options_are_accepted(options: dict[str, Any]) -> None:
    UiOptions(**options).check()


@pytest.mark.parametrize(
    "url",
    ["argocd.example.com", "javascript:alert(1)", "https://me:pass@argocd.example.com", "https://a.example.com/?x=1"],
)
def test_address_of_argo_cd_that_no_page_may_link_to_is_refused(url: str) -> None:
    with pytest.raises(click.BadParameter, match="is no address such as"):
        options_read(f"--ui-argocd-url={url}")


def test_address_of_argo_cd_is_read_without_its_last_slash() -> None:
    assert options_read("--ui-argocd-url=https://example.com/argocd/").argocd_url == "https://example.com/argocd"
    assert options_read().argocd_url == ""


def options_read(*arguments: str) -> UiOptions:
    """Return the options of a command line."""
    found: list[UiOptions] = []

    @click.command()
    @options_of(UiOptions)
    def main(*, options: UiOptions) -> None:
        found.append(options)

    main.main(list(arguments), standalone_mode=False)
    return found[0]


async def test_page_has_a_port_of_its_own(world: World, session: aiohttp.ClientSession) -> None:
    controller = await start_controller(
        world, standalone=False, ui=UiOptions(auth="token", listen_address="127.0.0.1:0")
    )
    api = f"{controller.page_url}/api/ui/v1"
    async with session.get(f"{api}/viewer") as answer:
        assert answer.status == HTTPStatus.UNAUTHORIZED
    async with session.post(f"{api}/session", json={"token": await token_of(world, "viewer")}) as answer:
        assert answer.status == HTTPStatus.OK
        cookies = {name: morsel.value for name, morsel in answer.cookies.items() if morsel.value}
    async with session.get(f"{api}/viewer", cookies=cookies) as answer:
        assert (await answer.json())["user"].endswith(":viewer")
    # Without a right to list anything, the overview is empty.
    await world.apply(pipeline("https://git.example.com/acme/gitops.git", provider="git"))
    async with session.get(f"{api}/pipelines", cookies=cookies) as answer:
        assert await answer.json() == {"items": []}
    for path in ("/metrics", "/healthz", "/api/v1/bundles", "/webhook/scm"):
        async with session.get(f"{controller.page_url}{path}") as answer:
            assert answer.status == HTTPStatus.NOT_FOUND, path
    for url in (controller.api_url, controller.metrics_url, controller.probe_url):
        for path in ("/ui/", "/api/ui/v1/viewer"):
            async with session.get(f"{url}{path}") as answer:
                assert answer.status == HTTPStatus.NOT_FOUND, url


async def test_drawer_links_its_application_in_argo_cd(world: World, session: aiohttp.ClientSession) -> None:
    ui = UiOptions(auth="token", listen_address="127.0.0.1:0", argocd_url="https://argocd.example.com")
    controller = await start_controller(world, standalone=False, ui=ui)
    for role in documents_of("roles.yaml"):
        await world.client.apply(RESOURCES[role["kind"]], role, field_manager="test", force=True)
    await bind(world, f"system:serviceaccount:{TEAM}:viewer", "kardinal-viewer", namespace=TEAM)
    repository = "https://git.example.com/acme/gitops.git"
    await world.apply(pipeline(repository, environments=[DEV], provider="git"), bundle("my-app-1"))
    health = {"type": "argocd", "kind": "Application", "namespace": "argocd", "name": "my-app-dev"}
    await ScriptedAgent(world).step(f"my-app-1-{DEV}", state="HealthChecking", health=health)
    await world.settle()

    api = f"{controller.page_url}/api/ui/v1"
    async with session.post(f"{api}/session", json={"token": await token_of(world, "viewer")}) as answer:
        cookies = {name: morsel.value for name, morsel in answer.cookies.items() if morsel.value}
    async with session.get(f"{api}/pipelines/{TEAM}/my-app/environments/{DEV}", cookies=cookies) as answer:
        links = (await answer.json())["links"]
    assert [each["url"] for each in links] == ["https://argocd.example.com/applications/argocd/my-app-dev"]


async def test_page_is_off_until_it_is_said_how_viewers_are_known(world: World) -> None:
    controller = await start_controller(world, standalone=False, ui=UiOptions(listen_address="127.0.0.1:0"))

    assert controller.page_url == ""


@pytest.mark.virtual_time("half a minute until the files are looked at again")
async def test_certificate_is_read_again_when_it_changes(world: World, tmp_path: Path) -> None:
    first = Authority.make(tmp_path / "first", "first")
    second = Authority.make(tmp_path / "second", "second")
    used = tmp_path / "tls.pem"
    used.write_bytes(first.issue("page").read_bytes())
    page = await start_page(world, certificate=CertificateFiles(used, used))
    assert page.page.url.startswith("https://")
    assert await _status_for(first, page.page.url) == HTTPStatus.OK

    # A pair that does not fit is not used.
    used.write_bytes(second.file.read_bytes())
    await world.live(timedelta(seconds=31))
    assert await _status_for(first, page.page.url) == HTTPStatus.OK

    used.write_bytes(second.issue("page").read_bytes())
    await world.live(timedelta(seconds=31))
    assert await _status_for(second, page.page.url) == HTTPStatus.OK
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await _status_for(first, page.page.url)


@pytest.mark.virtual_time("half a minute until the files are looked at again")
async def test_authority_that_is_removed_opens_no_connection_and_loses_those_it_has(
    world: World, tmp_path: Path
) -> None:
    first = Authority.make(tmp_path / "first", "first")
    second = Authority.make(tmp_path / "second", "second")
    certificate = first.issue("page")
    believed = tmp_path / "believed.crt"
    believed.write_bytes(first.file.read_bytes() + second.file.read_bytes())
    page = await start_page(world, certificate=CertificateFiles(certificate, certificate, believed))
    url = page.page.url
    removed, kept = (client_context(first, each.issue("proxy")) for each in (first, second))
    session_of_tls, _ = await asyncio.to_thread(_connect, url, removed, None)
    assert (await asyncio.to_thread(_connect, url, removed, session_of_tls))[1], "the session is resumed"
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=removed, limit=1)) as proxy,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=removed)) as streaming,
        follow(streaming, f"{page.api}/stream/overview") as stream,
    ):
        await world.until(lambda: stream.last_id)
        assert await _status(url, proxy) == HTTPStatus.OK

        believed.write_bytes(second.file.read_bytes())
        await world.live(timedelta(seconds=31))

        with pytest.raises((aiohttp.ClientError, OSError)):
            await _status(url, proxy)
        await world.until(lambda: stream.closed)
        assert "certificates" in stream.events[-1]["data"]
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.to_thread(_connect, url, removed, session_of_tls)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=kept)) as proxy:
        assert await _status(url, proxy) == HTTPStatus.OK


async def test_certificate_that_cannot_be_read_ends_the_start(world: World, tmp_path: Path) -> None:
    missing = tmp_path / "none.pem"

    with pytest.raises(RuntimeFailure, match="--ui-tls-cert-file"):
        await start_page(world, certificate=CertificateFiles(missing, missing))


async def _status(url: str, session: aiohttp.ClientSession) -> int:
    async with session.get(f"{url}/ui/") as answer:
        assert "max-age" in answer.headers["Strict-Transport-Security"]
        return answer.status


async def _status_for(authority: Authority, url: str) -> int:
    """Return the status for a browser that believes an authority."""
    context = client_context(authority, None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        return await _status(url, session)


def _connect(
    url: str, context: ssl.SSLContext, earlier: ssl.SSLSession | None
) -> tuple[ssl.SSLSession | None, bool | None]:
    """Send a request by TLS 1.2; return its TLS session, and whether that is the earlier one."""
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    address = urlsplit(url)
    with (
        socket.create_connection((address.hostname or "", address.port or 0), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname=address.hostname, session=earlier) as tls,
    ):
        tls.sendall(b"GET /ui/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        if not tls.recv(1):
            raise ConnectionResetError("the server has closed the connection")
        return tls.session, tls.session_reused
