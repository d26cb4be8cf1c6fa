"""Attacks through metrics: on what only the controller can reach, on its Secrets, its memory, and on other teams."""

from __future__ import annotations

import asyncio
import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from kardinal.objects.secret_purposes import (
    CREDENTIALS_GIT,
    CREDENTIALS_METRICS,
)
from kardinal.promotion.metrics.provider import MetricError, MetricProvider, MetricQuery, MetricRequest, Samples
from kardinal_controller.metric_checks.servers import MetricHost
from tests.metrics.asking import asking, at, metric_secret
from tests.metrics.serving import HERE, MetricServer, serving_metrics
from tests.support.endpoint import answering, serving_endpoint
from tests.support.names import POLICIES, TEAM
from tests.support.secret_values import secret_value
from tests.support.smart_server import self_signed
from tests.support.world import World

TOKEN = secret_value("metrics")
UP = MetricQuery(text="up", at=datetime(2026, 3, 3, tzinfo=UTC), timeout=timedelta(seconds=2))


@pytest.mark.parametrize(
    "hosts",
    [
        (),
        (MetricHost("127.0.0.1:*", (POLICIES,)),),
        (MetricHost("127.0.0.1:1", (TEAM,)),),
        (MetricHost("127.0.0.1", ("*",)),),
    ],
    ids=["no server", "another namespace", "another port", "port 443"],
)
async def test_server_that_is_not_listed_for_the_namespace_is_not_asked(
    world: World, hosts: tuple[MetricHost, ...]
) -> None:
    async with serving_metrics() as server:
        with pytest.raises(MetricError) as caught:
            await asking(world, *hosts).query(at(server.address), TEAM, UP)
    assert f"--allow-metric-hosts {server.endpoint.host}={TEAM}" in str(caught.value)
    assert server.queries == []


async def test_star_is_every_namespace(world: World) -> None:
    async with serving_metrics() as server:
        found = await asking(world, MetricHost("127.0.0.1:*", ("*",))).query(at(server.address), TEAM, UP)
    assert tuple(found.values) == (1.0,)


@pytest.mark.parametrize(
    "address",
    [
        "ftp://127.0.0.1:9090",
        "127.0.0.1:9090",
        "http://",
        "http://me@127.0.0.1:9090",
        "http://127.0.0.1:9090?x=",
        "http://127.0.0.1:9090/#",
        "http://127.0.0.1:9090#x",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:9090/\r\nX: 1",
        "http://[::1",
    ],
)
async def test_address_that_is_none_is_refused(world: World, address: str) -> None:
    with pytest.raises(MetricError) as caught:
        await asking(world, MetricHost("*", ("*",))).query(at(address), TEAM, UP)
    assert "spec.provider.address: write http" in str(caught.value)


async def test_metadata_service_behind_a_pattern_is_not_asked(world: World) -> None:
    with pytest.raises(MetricError, match="with its name, without"):
        await asking(world, MetricHost("169.254.*:80", ("*",))).query(at("http://169.254.169.254"), TEAM, UP)


async def test_redirect_is_not_followed(world: World) -> None:
    async with serving_endpoint() as inside, serving_metrics() as server:
        server.answer = answering(307, {}, Location=f"http://{inside.host}/latest/meta-data")
        with pytest.raises(MetricError, match="redirects are not followed"):
            await asking(world, HERE).query(at(server.address), TEAM, UP)
    assert inside.heard == []


async def test_an_endless_answer_is_cut_off(world: World) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while True:
                await answer.write(b" " * 65536)
        except (ConnectionError, asyncio.CancelledError):
            pass
        return answer

    async with serving_metrics() as server:
        server.answer = endless
        with pytest.raises(MetricError, match="answers with more than 1,048,576 bytes"):
            await asking(world, HERE).query(at(server.address), TEAM, UP)


async def test_answer_that_never_ends_has_a_deadline(world: World) -> None:
    given_up = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await given_up.wait()
        return answer

    async with serving_metrics() as server:
        server.answer = silent
        brief = MetricQuery(text="up", at=UP.at, timeout=timedelta(seconds=0.2))
        with pytest.raises(MetricError, match=r"has not answered within 0\.2 s"):
            await asking(world, HERE).query(at(server.address), TEAM, brief)
        given_up.set()


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, "[[],[]" + ",[]" * 40_000 + "]", "\udcff"])
async def test_answer_that_is_costly_to_decode_is_refused(world: World, text: str) -> None:
    async def hostile(_: web.Request) -> web.StreamResponse:
        return web.Response(body=text.encode(errors="surrogateescape"))

    async with serving_metrics() as server:
        server.answer = hostile
        with pytest.raises(MetricError):
            await asking(world, HERE).query(at(server.address), TEAM, UP)


async def test_credentials_go_to_the_server(world: World) -> None:
    async with serving_metrics() as server:
        headers = "X-Scope-OrgID: team-a\nX-Other: b c"
        await world.apply(metric_secret(server.endpoint.host, token=TOKEN, headers=headers))
        await asking(world, HERE).query(at(server.address, secret=True), TEAM, UP)
        (heard,) = server.endpoint.heard
    assert heard.headers["authorization"] == f"Bearer {TOKEN}"
    assert (heard.headers["x-scope-orgid"], heard.headers["x-other"]) == ("team-a", "b c")


async def test_login_goes_to_the_server(world: World) -> None:
    async with serving_metrics() as server:
        await world.apply(metric_secret(server.endpoint.host, username="me", password=TOKEN))
        await asking(world, HERE).query(at(server.address, secret=True), TEAM, UP)
        (heard,) = server.endpoint.heard
    assert heard.headers["authorization"] == f"Basic {base64.b64encode(f'me:{TOKEN}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("hosts", "label"),
    [("other.example.com", CREDENTIALS_METRICS), ("", CREDENTIALS_METRICS), (None, CREDENTIALS_GIT)],
    ids=["another host", "no host", "a Secret for Git"],
)
async def test_secret_goes_only_where_it_says(world: World, hosts: str | None, label: str) -> None:
    async with serving_metrics() as server:
        secret = metric_secret(server.endpoint.host if hosts is None else hosts, label=label, token=TOKEN)
        await world.apply(secret)
        with pytest.raises(MetricError, match="kubectl -n") as caught:
            await asking(world, HERE).query(at(server.address, secret=True), TEAM, UP)
    assert "not marked as a credential of metric servers" in str(caught.value)
    assert server.queries == []


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"token": "a\r\nX: 1"}, "not printable ASCII"),
        ({"token": "a", "password": "b"}, "leave one of them out"),
        ({"headers": "Host: metadata"}, "sets the header host, which kardinal sets itself"),
        ({"headers": "Authorization: x"}, "sets the header authorization"),
        ({"headers": "X-A: b\x00c"}, "has other headers than"),
        ({"headers": "\n".join(f"X-{n}: a" for n in range(17))}, "has other headers than up to 16"),
        ({"ca.crt": "none"}, "ca.crt that is no certificate"),
    ],
)
async def test_secret_of_another_form_is_refused(world: World, data: dict[str, str], says: str) -> None:
    async with serving_metrics() as server:
        await world.apply(metric_secret(server.endpoint.host, **data))
        with pytest.raises(MetricError, match=says):
            await asking(world, HERE).query(at(server.address, secret=True), TEAM, UP)
    assert server.queries == []


async def test_server_that_repeats_its_credentials_is_not_quoted(world: World) -> None:
    async def echoing(request: web.Request) -> web.StreamResponse:
        heard = f"{request.headers['Authorization']} {request.headers['X-Key']}"
        return web.json_response({"status": "error", "errorType": "bad_data", "error": heard}, status=400)

    key = secret_value("header")
    async with serving_metrics() as server:
        server.answer = echoing
        await world.apply(metric_secret(server.endpoint.host, token=TOKEN, headers=f"X-Key: {key}"))
        with pytest.raises(MetricError) as caught:
            await asking(world, HERE).query(at(server.address, secret=True), TEAM, UP)
    assert "the query fails (bad_data): ***" in str(caught.value)


async def test_certificate_of_a_server_is_looked_at(world: World, tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(self_signed(tmp_path))
    server = MetricServer()
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", server.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        port = runner.addresses[0][1]
        with pytest.raises(MetricError, match="certificate that is not trusted"):
            await asking(world, HERE).query(at(f"https://127.0.0.1:{port}"), TEAM, UP)
    finally:
        await runner.cleanup()
    assert server.endpoint.heard == []


async def test_provider_of_a_package_leads_to_no_other_host(world: World) -> None:
    stranger = MetricProvider(
        "stranger", asked=lambda _: MetricRequest(path=".example.com/"), read=lambda *_: Samples((), single=True)
    )
    with pytest.raises(MetricError, match="its path does not begin with /"):
        await asking(world, HERE, providers={"stranger": stranger}).query(
            at("http://127.0.0.1:9", kind="stranger"), TEAM, UP
        )
