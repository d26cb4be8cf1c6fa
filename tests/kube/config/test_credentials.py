"""Credentials of a user: tokens, files with tokens, passwords and certificates; and how the server is trusted."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kardinal.kube import Client, ConfigError, Connection, ConnectionFailed, load_connection
from tests.kube.config.conftest import SECRET, SERVER_NAME, Identity, Write, config
from tests.kube.conftest import ScriptedServer, failure, reply


async def authorization(kubeconfig: Path) -> str | None:
    return (await (await load_connection(kubeconfig)).access()).authorization


async def test_a_name_with_a_password_is_basic_authentication(write: Write) -> None:
    expected = base64.b64encode(f"ana:{SECRET}".encode()).decode()
    assert await authorization(write(config(username="ana", password=SECRET))) == f"Basic {expected}"
    assert await authorization(write(config(username="ana"))) is None


async def test_a_token_comes_before_a_file_and_that_before_a_password(write: Write) -> None:
    write("from-file\n", "token")
    everything = {"token": "inline", "tokenFile": "token", "username": "ana", "password": SECRET}
    assert await authorization(write(config(**everything))) == "Bearer inline"
    del everything["token"]
    assert await authorization(write(config(**everything))) == "Bearer from-file"


async def test_a_user_without_credentials_sends_none(write: Write) -> None:
    assert await authorization(write(config())) is None
    anonymous = config()
    del anonymous["contexts"][0]["context"]["user"]
    assert await authorization(write(anonymous)) is None


async def test_a_token_file_is_read_again_after_a_401(write: Write, server: ScriptedServer) -> None:
    token = write("token-1", "token")
    server.answers(failure(401, "Unauthorized"), reply(200, {}))
    connection = await load_connection(write(config(tokenFile="token", cluster={"server": server.url})))
    token.write_text("token-2\n")
    async with Client(connection, user_agent="test") as client:
        await client.fetch("/version")
    assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer token-1", "Bearer token-2"]


async def test_a_token_file_is_read_again_before_it_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    token = write("token-1", "token")
    kubeconfig = write(config(tokenFile="token"))
    lifetime = (await (await load_connection(kubeconfig)).access()).lifetime
    assert lifetime is not None
    assert 0 < lifetime <= 60
    monkeypatch.setattr("kardinal.kube.credentials.TOKEN_FILE_LIFETIME", 0.0)
    connection = await load_connection(kubeconfig)
    token.write_text("token-2")
    assert (await connection.access()).authorization == "Bearer token-2"


async def test_a_token_stays_in_use_while_its_file_is_being_written(
    write: Write, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kardinal.kube.credentials.TOKEN_FILE_LIFETIME", 0.0)
    token = write(SECRET, "token")
    connection = await load_connection(write(config(tokenFile="token")))
    token.write_text("")
    assert (await connection.access()).authorization == f"Bearer {SECRET}"
    assert "stay in use" in caplog.text
    assert SECRET not in caplog.text
    token.write_text("token-2")
    assert (await connection.access()).authorization == "Bearer token-2"


async def test_a_failed_reload_is_said_to_who_was_refused(write: Write) -> None:
    token = write("token-1", "token")
    connection = await load_connection(write(config(tokenFile="token")))
    token.unlink()
    with pytest.raises(ConfigError, match=r"File does not exist: .*token"):
        await connection.renew(await connection.access())


async def test_an_inline_token_is_not_loaded_again(write: Write) -> None:
    assert (await (await load_connection(write(config(token=SECRET)))).access()).lifetime is None


async def test_paths_start_from_the_file_that_names_them(
    write: Write, authority: Identity, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority.write(tmp_path / "clusters")
    authority.write(tmp_path / "users" / "keys")
    write("from-file", "users/token")
    cluster = write(
        {
            "current-context": "here",
            "clusters": [
                {"name": "c", "cluster": {"server": "https://127.0.0.1:1", "certificate-authority": "tls.crt"}}
            ],
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        },
        "clusters/config",
    )
    user = {"client-certificate": "keys/tls.crt", "client-key": "keys/tls.key", "tokenFile": "./token"}
    users = write({"users": [{"name": "u", "user": user}]}, "users/config")
    # A relative entry of KUBECONFIG starts from where the process is, wherever it goes afterwards.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(cluster.relative_to(tmp_path)), str(users)]))
    access = await (await load_connection()).access()
    assert access.authorization == "Bearer from-file"
    assert access.tls is not None
    assert len(access.tls.get_ca_certs()) == 1


async def test_embedded_data_precedes_file_names(write: Write, authority: Identity) -> None:
    embedded = base64.b64encode(authority.certificate.encode()).decode()
    cluster = {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": f"{embedded[:64]}\n{embedded[64:]}",
        "certificate-authority": "missing",
    }
    assert (await (await load_connection(write(config(cluster=cluster)))).access()).tls is not None


@pytest.mark.parametrize(
    ("cluster", "user", "message"),
    [
        ({}, {"tokenFile": "missing"}, "File does not exist: .*missing"),
        ({}, {"tokenFile": "empty"}, "empty is empty: tokenFile of user 'u'"),
        ({}, {"client-certificate": "missing"}, "File does not exist: .*missing"),
        ({"certificate-authority": "missing"}, {}, "File does not exist: .*missing"),
        ({"certificate-authority": "garbage"}, {}, "not a well-formed"),
        ({"certificate-authority-data": f"{SECRET}!"}, {}, "certificate-authority-data of cluster 'c' is not base64"),
        ({}, {"client-certificate-data": SECRET}, "client-certificate-data of user 'u' is not base64"),
        ({}, {"client-certificate-data": "aGVsbG8=", "client-key-data": "aGVsbG8="}, "not a well-formed"),
        ({"insecure-skip-tls-verify": "false"}, {}, "insecure-skip-tls-verify of cluster 'c' is neither true nor"),
        ({}, {"token": 1234567}, "token of user 'u' is not a string"),
        ({}, {"password": [SECRET], "username": "ana"}, "password of user 'u' is not a string"),
    ],
)
async def test_broken_entry_is_named_and_not_quoted(
    write: Write, cluster: dict[str, Any], user: dict[str, Any], message: str
) -> None:
    write("", "empty")
    write(SECRET, "garbage")
    content = config(cluster={"server": "https://127.0.0.1:1"} | cluster, **{"token": SECRET} | user)
    if "tokenFile" in user or "password" in user:
        del content["users"][0]["user"]["token"]
    with pytest.raises(ConfigError, match=message) as caught:
        await load_connection(write(content))
    for quoted in (SECRET, "1234567", "aGVsbG8"):
        assert quoted not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_proxy_carries_the_requests(write: Write, server: ScriptedServer) -> None:
    server.answers(reply(200, {}))
    cluster = {"server": "http://api.invalid:8080", "proxy-url": server.url}
    async with Client(await load_connection(write(config(cluster=cluster))), user_agent="test") as client:
        await client.fetch("/version")
    assert server.seen[0].headers["Host"] == "api.invalid:8080"


@pytest.fixture
async def secure(authority: Identity, tmp_path: Path) -> AsyncIterator[str]:
    """Yield the URL of a server that takes one client alone, and says who it is by another name than its address."""

    async def version(_: web.Request) -> web.Response:
        return web.json_response({"major": "1"})

    application = web.Application()
    application.router.add_get("/version", version)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=authority.server_context(tmp_path / "server")).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def version(connection: Connection) -> Any:
    async with Client(connection, user_agent="test") as client:
        return (await client.fetch("/version"))["major"]


async def test_certificates_and_the_name_of_the_server_are_used(
    write: Write, authority: Identity, secure: str, tmp_path: Path
) -> None:
    certificate, key = authority.write(tmp_path / "own")
    cluster = {"server": secure, "certificate-authority": str(certificate), "tls-server-name": SERVER_NAME}
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    assert await version(await load_connection(write(config(cluster=cluster, **user)))) == "1"
    with pytest.raises(ConnectionFailed):
        await version(await load_connection(write(config(cluster=cluster))))
    del cluster["tls-server-name"]
    with pytest.raises(ConnectionFailed, match="127\\.0\\.0\\.1"):
        await version(await load_connection(write(config(cluster=cluster, **user))))
    unverified = {"server": secure, "insecure-skip-tls-verify": True}
    assert await version(await load_connection(write(config(cluster=unverified, **user)))) == "1"
