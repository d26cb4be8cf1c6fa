"""Who may talk to the plane, and what others on this machine can see of it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import stat
from pathlib import Path

import aiohttp
import pytest
import yaml

from kardinal.localplane import Authority, LocalPlane, LoggedRequest
from kardinal.localplane.security.identities import IDENTITIES
from tests.localplane.wire import CONFIG_MAPS, Http, config_map, session_for


@pytest.mark.parametrize("token", ["", "wrong", "a b", "\xff"])
async def test_nobody_gets_in_without_a_token(plane: LocalPlane, token: str) -> None:
    async with session_for(plane.kubeconfig, token=token) as session:
        for path in ("/version", "/api", CONFIG_MAPS, "/nothing"):
            refused = await Http(session).get(path)
            assert (refused.status, refused.body["reason"]) == (401, "Unauthorized")


async def test_probes_need_no_token(plane: LocalPlane) -> None:
    async with session_for(plane.kubeconfig, token="") as session:
        for path in ("/healthz", "/livez", "/readyz"):
            assert (await Http(session).get(path)).body == b"ok"


async def test_every_identity_has_a_token_of_its_own_and_its_name_in_the_log(plane: LocalPlane) -> None:
    seen: list[LoggedRequest] = []
    subscription = plane.audit.subscribe(seen.append)
    for identity in IDENTITIES:
        async with session_for(plane.kubeconfig_for(identity)) as session:
            await Http(session).post(CONFIG_MAPS, config_map(identity))
    subscription.close()
    assert [request.user for request in seen] == [
        "admin",
        "kardinal:controller",
        "kardinal:agent",
        "kardinal:simulator",
    ]
    tokens = {
        yaml.safe_load(plane.kubeconfig_for(identity).read_bytes())["users"][0]["user"]["token"]
        for identity in IDENTITIES
    }
    assert len(tokens) == len(IDENTITIES)


async def test_the_log_counts_what_was_asked_and_what_came_of_it(plane: LocalPlane, http: Http) -> None:
    await http.post(CONFIG_MAPS, config_map("a"))
    await http.post(CONFIG_MAPS, config_map("a"))
    await http.get(f"{CONFIG_MAPS}/a")
    async with http.watch(CONFIG_MAPS):
        assert plane.audit.count(verbs={"watch"}) == 1
    await http.delete(CONFIG_MAPS)
    await http.get("/version")
    assert plane.audit.counts == {
        ("admin", "create", "configmaps", "", 201): 1,
        ("admin", "create", "configmaps", "", 409): 1,
        ("admin", "get", "configmaps", "", 200): 1,
        ("admin", "watch", "configmaps", "", 200): 1,
        ("admin", "deletecollection", "configmaps", "", 200): 1,
        ("admin", "get", "/version", "", 200): 1,
    }
    assert plane.audit.writes == 3
    assert plane.audit.count(resource="configmaps", user="admin") == 5


async def test_an_unknown_identity_has_no_kubeconfig(plane: LocalPlane) -> None:
    with pytest.raises(ValueError, match="one of admin, controller, agent, simulator"):
        plane.kubeconfig_for("../admin")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:443", "127.0.0.1.evil.example", ""])
async def test_a_name_from_outside_is_refused(http: Http, host: str) -> None:
    assert (await http("GET", "/version", headers={"Host": host})).status == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1", "[::1]:8443"])
async def test_every_name_of_loopback_is_answered(http: Http, host: str) -> None:
    assert (await http("GET", "/version", headers={"Host": host})).status == 200


async def test_a_client_that_trusts_another_authority_does_not_connect(plane: LocalPlane) -> None:
    other = await asyncio.to_thread(Authority.create)
    context = ssl.create_default_context(cadata=other.certificate.decode())
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(f"{plane.url}/version")


async def test_nothing_listens_beyond_loopback(plane: LocalPlane) -> None:
    _, _, addresses = socket.gethostbyname_ex(socket.gethostname())
    for address in addresses:
        if not address.startswith("127."):
            with pytest.raises(OSError, match="refused"):
                await asyncio.open_connection(address, plane.port)


async def test_the_directory_is_its_owners_alone(http: Http, tmp_path: Path) -> None:
    await http.post(CONFIG_MAPS, config_map("a"))
    directory = tmp_path / "plane"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    for name in ("kubeconfig", "kubeconfig.controller", "tokens.json", "lock", "plane.db", "plane.db-wal"):
        assert modes[name] == 0o600, name


async def test_an_authority_of_its_own_is_kept(tmp_path: Path) -> None:
    first = await LocalPlane.start(tmp_path)
    before = first.kubeconfig.read_text().splitlines()
    await first.stop()
    second = await LocalPlane.start(tmp_path, port=first.port)
    assert second.kubeconfig.read_text().splitlines() == before
    async with session_for(second.kubeconfig) as session:
        assert (await Http(session).get("/version")).status == 200
    await second.stop()
    assert stat.S_IMODE((tmp_path / "ca.pem").stat().st_mode) == 0o600
    assert not (tmp_path / "server.pem").exists()
