"""Who may talk to the plane, and what others on this machine can see of it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import stat
from datetime import datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
import yaml

from kardinal_local.plane import Authority, LocalPlane, LoggedRequest
from kardinal_local.plane.security.identities import IDENTITIES
from tests.local.plane.wire import CONFIG_MAPS, Http, config_map, session_for, until
from tests.support.clock import VirtualClock


async def test_every_identity_has_a_token_of_its_own_and_its_name_in_the_log(plane: LocalPlane) -> None:
    seen: list[LoggedRequest] = []
    subscription = plane.audit.subscribe(seen.append)
    for identity in IDENTITIES:
        async with session_for(plane.kubeconfig_for(identity)) as session:
            await Http(session).post(CONFIG_MAPS, config_map(identity))
    subscription.close()
    assert [request.user for request in seen] == [
        "admin",
        "installer",
        "system:serviceaccount:kardinal-system:kardinal-controller",
        "system:serviceaccount:kardinal-system:kardinal-agent",
        "system:serviceaccount:kardinal-system:kardinal-simulator",
        "system:serviceaccount:kardinal-system:kardinal-supplychain",
    ]
    assert [request.code for request in seen] == [201, 201, 403, 403, 403, 403]
    tokens = {
        yaml.safe_load(plane.kubeconfig_for(identity).read_bytes())["users"][0]["user"]["token"]
        for identity in IDENTITIES
    }
    assert len(tokens) == len(IDENTITIES)


TOKENS = "/api/v1/namespaces/default/serviceaccounts/default/token"


async def test_a_token_of_an_account_ends_with_its_time(plane: LocalPlane, http: Http, clock: VirtualClock) -> None:
    await until(lambda: _is_found(http, TOKENS.removesuffix("/token")))
    issued = await http.post(TOKENS, {"spec": {"expirationSeconds": 600}})
    async with session_for(plane.kubeconfig, token=issued.body["status"]["token"]) as session:
        assert (await Http(session).get("/version")).status == 200
        clock.skip(600)
        assert (await Http(session).get("/version")).status == 401


async def test_a_token_of_an_account_survives_a_restart_and_no_change(tmp_path: Path, authority: Authority) -> None:
    first = await LocalPlane.start(tmp_path / "plane", authority=authority)
    async with session_for(first.kubeconfig) as session:
        await until(lambda: _is_found(Http(session), TOKENS.removesuffix("/token")))
        token = (await Http(session).post(TOKENS, {})).body["status"]["token"]
    await first.stop()
    second = await LocalPlane.start(tmp_path / "plane", authority=authority)
    head, claims, signature = token.split(".")
    forged = claims[:-4] + ("AAAA" if claims[-4:] != "AAAA" else "BBBB")
    for shown, status in ((token, 200), (f"{head}.{forged}.{signature}", 401), (f"{head}.{claims}.", 401)):
        async with session_for(second.kubeconfig, token=shown) as session:
            assert (await Http(session).get("/version")).status == status
    await second.stop()


async def _is_found(http: Http, path: str) -> bool:
    return (await http.get(path)).status == 200


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
    with pytest.raises(ValueError, match="one of admin, installer, controller, agent, simulator"):
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
    private = ("kubeconfig", "kubeconfig.controller", "tokens.json", "lock", "plane.db", "plane.db-wal")
    for name in private:
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
    for name in ("ca.pem", "server.pem"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name


async def test_a_certificate_is_replaced_before_it_ends(tmp_path: Path) -> None:
    first = await LocalPlane.start(tmp_path)
    await first.stop()
    authority, server = tmp_path / "ca.pem", tmp_path / "server.pem"
    before = authority.read_text(), server.read_text()
    ends, _, rest = before[1].partition("\n")
    server.write_text(f"{datetime.fromisoformat(ends) - timedelta(days=800):%Y-%m-%dT%H:%M:%S%z}\n{rest}")
    second = await LocalPlane.start(tmp_path)
    async with session_for(second.kubeconfig) as session:
        assert (await Http(session).get("/version")).status == 200
    await second.stop()
    assert authority.read_text() == before[0]
    assert rest not in server.read_text()
