"""Attacks through custom steps: on what only the agent can reach, on its Secrets, on its memory and on its workers."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult

from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import CREDENTIALS_GIT, CREDENTIALS_STEP
from kardinal_agent.endpoints.addresses import StepHosts
from kardinal_agent.endpoints.answers import Accepted, checked_location, read_answer
from kardinal_agent.endpoints.client import BODY_LIMIT, EndpointClient, EndpointReply
from kardinal_agent.endpoints.errors import EndpointFailed, EndpointUnavailable, HostRefused
from kardinal_agent.program import CONCURRENCY
from tests.agent.promotion_steps import create, promotion_step, reached, start_agent
from tests.agent.test_custom_steps import asking, secret
from tests.support.endpoint import answering, serving_endpoint
from tests.support.names import DEV
from tests.support.repository import GitRepository
from tests.support.secret_values import secret_value
from tests.support.world import World

QUARTER = CONCURRENCY // 4
"""The promotions of one namespace that may be with hosts at once."""
NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)
TOKEN = secret_value("endpoint")
KEY = secret_value("endpoint-key")

PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "10.0.0.1",
    "172.16.3.4",
    "192.168.1.1",
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104 - an address that leads to this machine
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::a00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
]
NEAR = [
    "169.254.169.254",
    "169.254.1.1",
    "fe80::1",
    "fd00:ec2::254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::",
]


class ScriptedNames(AbstractResolver):
    """Answers the n-th question with the n-th list of addresses, as the DNS server of an attacker may."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0) for address in found
        ]

    async def close(self) -> None:
        """Hold nothing."""


def client(*patterns: str, answers: Sequence[Sequence[str]] = (["127.0.0.1"],), **options: Any) -> EndpointClient:
    names_ = ScriptedNames(*answers)
    return EndpointClient(StepHosts(patterns), resolver=lambda: names_, **options)


@pytest.mark.parametrize("address", [*PRIVATE, *NEAR])
async def test_a_name_that_leads_to_an_address_that_is_not_public_is_not_asked(address: str) -> None:
    with pytest.raises(HostRefused, match="--allow-step-hosts"):
        await client(answers=[[address]]).request("POST", "https://tests.example.com/", headers={}, body=b"{}")


@pytest.mark.parametrize("address", ["10.0.0.1", "169.254.169.254"])
async def test_one_private_address_among_public_ones_refuses_all(address: str) -> None:
    with pytest.raises(HostRefused):
        await client(answers=[["93.184.216.34", address]]).request("GET", "https://tests.example.com/", headers={})


@pytest.mark.parametrize("address", [*PRIVATE, *NEAR])
async def test_an_address_in_the_url_is_looked_at_as_well(address: str) -> None:
    written = f"[{address}]" if ":" in address else address
    with pytest.raises(HostRefused):
        await client().request("POST", f"https://{written}/", headers={}, body=b"{}")


@pytest.mark.parametrize("spelling", ["2130706433", "0x7f000001", "127.1", "0177.0.0.1", "localhost", "localhost."])
async def test_other_spellings_of_an_address_lead_to_it_and_are_refused(spelling: str) -> None:
    hosts = EndpointClient(StepHosts(()))
    with pytest.raises((HostRefused, EndpointUnavailable, EndpointFailed)) as caught:
        await hosts.request("POST", f"https://{spelling}/", headers={}, body=b"{}")
    assert not isinstance(caught.value, EndpointUnavailable) or "cannot be reached" in str(caught.value)


@pytest.mark.parametrize("address", NEAR)
def test_a_pattern_does_not_open_the_metadata_service_by_accident(address: str) -> None:
    for patterns in (("*",), ("*.internal",), ("metadata*",)):
        with pytest.raises(HostRefused, match="without"):
            StepHosts(patterns).check_address(address, "metadata.internal")
    StepHosts(("metadata.internal",)).check_address(address, "metadata.internal")


async def test_a_name_is_resolved_once_and_what_was_checked_is_connected_to() -> None:
    async with serving_endpoint() as endpoint:
        names_ = ScriptedNames(["127.0.0.1"], ["127.0.0.2"])
        host = f"tests.example.com:{endpoint.port}"
        asked = EndpointClient(StepHosts((host,)), resolver=lambda: names_)
        await asked.request("POST", f"http://{host}/", headers={}, body=b"{}")
    assert (names_.asked, len(endpoint.heard)) == (1, 1)


async def test_a_name_that_is_bound_anew_is_looked_at_again() -> None:
    async with serving_endpoint() as endpoint:
        near = f"tests.example.com:{endpoint.port}"
        asked = client("*.example.com:*", answers=[["127.0.0.1"], ["169.254.169.254"]])
        await asked.request("POST", f"http://{near}/", headers={}, body=b"{}")
        with pytest.raises(HostRefused, match="of a metadata service"):
            await asked.request("POST", f"http://{near}/", headers={}, body=b"{}")
    assert len(endpoint.heard) == 1


async def test_plain_http_is_for_listed_hosts() -> None:
    with pytest.raises(HostRefused, match="use https"):
        await client(answers=[["93.184.216.34"]]).request("POST", "http://tests.example.com/", headers={}, body=b"")


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving_endpoint() as endpoint, serving_endpoint() as proxy:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(variable, f"http://{proxy.host}")
        await EndpointClient(StepHosts((endpoint.host,))).request("POST", endpoint.url, headers={}, body=b"{}")
    assert len(endpoint.heard) == 1
    assert proxy.heard == []


async def test_a_redirect_to_a_private_address_is_not_followed(world: World, repository: GitRepository) -> None:
    async with serving_endpoint() as inside:
        moved = answering(307, {"success": True}, Location=inside.url)
        async with serving_endpoint(moved) as endpoint:
            await start_agent(world, allow_step_hosts=("127.0.0.1:*",))
            await create(world, asking(repository, endpoint))
            status = await reached(world, "Failed")
    assert "redirects are not followed" in status["message"]
    assert inside.heard == []


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest",
        "//127.0.0.2/jobs",
        "https://tests.example.com:8443/jobs",
        "http://tests.example.com/jobs",
        "https://tests.example.com@evil.example.org/",
        "https://me@tests.example.com/jobs",
        "https://tests.example.com\\@evil.example.org/",
        "/jobs/\r\nX-Injected: 1",
        "file:///etc/passwd",
        "https://[::1/",
        f"/{'x' * 3000}",
    ],
)
def test_a_location_on_another_host_is_not_asked(location: str) -> None:
    with pytest.raises(EndpointFailed, match="Location"):
        checked_location(location, "https://tests.example.com/validate")


def test_a_location_on_the_host_is_asked_wherever_it_is_there() -> None:
    url = "https://tests.example.com/validate"
    assert checked_location("jobs/7", url) == "https://tests.example.com/jobs/7"
    assert checked_location("https://TESTS.example.com:443/jobs/7", url) == "https://TESTS.example.com:443/jobs/7"


BEYOND = "Mon, 01 Jan 99999999999 00:00:00 GMT"


@pytest.mark.parametrize(
    ("after", "wait"), [("0", 1.0), ("999999999999", 300.0), ("-5", 10.0), ("²", 10.0), ("", 10), (BEYOND, 10)]
)
def test_the_endpoint_does_not_choose_how_often_it_is_asked(after: str, wait: float) -> None:
    reply = EndpointReply(202, {"location": "/jobs/7", "retry-after": after}, b"{}")
    answer = read_answer(reply, url="https://tests.example.com/", polled=None, secrets=(), now=NOW)
    assert isinstance(answer, Accepted)
    assert answer.wait == wait


async def test_a_body_without_an_end_is_cut_off() -> None:
    sent = 0

    async def pour(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" " * 65536)
            sent += 65536

    async with serving_endpoint(pour) as endpoint:
        with pytest.raises(EndpointFailed, match=f"more than {BODY_LIMIT:,} bytes"):
            await EndpointClient(StepHosts((endpoint.host,))).request("GET", endpoint.url, headers={})
    assert sent < 64 * BODY_LIMIT


async def test_a_body_that_drips_has_the_time_of_one_request() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    async with serving_endpoint(drip) as endpoint:
        asked = EndpointClient(StepHosts((endpoint.host,)), request_time=0.2)
        with pytest.raises(EndpointUnavailable, match=r"not answered within 0\.2 s"):
            await asked.request("GET", endpoint.url, headers={})


async def test_a_compressed_body_is_not_unpacked() -> None:
    packed = answering(200, "not unpacked", Content_Encoding="br")
    async with serving_endpoint(packed) as endpoint:
        reply = await EndpointClient(StepHosts((endpoint.host,))).request("GET", endpoint.url, headers={})
    with pytest.raises(EndpointFailed):
        read_answer(reply, url=endpoint.url, polled=None, secrets=(), now=NOW)


async def test_a_secret_that_the_endpoint_repeats_stands_nowhere(world: World) -> None:
    words = {"success": False, "message": f"wrong token {TOKEN} and {KEY}", "outputs": {TOKEN: [TOKEN]}}
    statuses = (200, 422, 503)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await answering(int(request.path.removeprefix("/validate/")), words)(request)

    async with serving_endpoint(answer) as endpoint:
        await start_agent(world, allow_step_hosts=(endpoint.host,))
        await world.apply(secret(endpoint.host, token=TOKEN, hmacKey=KEY))
        await create(
            world,
            *(
                alone(f"{DEV}-{status}", {"url": f"{endpoint.url}/{status}", "secretRef": {"name": "tests"}})
                for status in statuses
            ),
        )
        found = [await reached(world, "Failed", f"{DEV}-{status}") for status in statuses]
    for ended in found:
        assert "wrong token [redacted] and [redacted]" in ended["message"]
    events = json.dumps(await world.events())
    for text in (json.dumps(found), events):
        assert TOKEN not in text
        assert KEY not in text


def alone(environment: str, config: dict[str, Any]) -> JsonObject:
    """Return a PromotionStep that asks an endpoint once and needs no repository."""
    asked = {"uses": "run-tests", "config": config, "retry": {"attempts": 1}}
    return promotion_step("file:///no-repository", environment, steps=[asked, _PROOF])


async def test_a_secret_goes_only_to_hosts_that_it_names_for_steps(world: World) -> None:
    async with serving_endpoint() as endpoint:
        await start_agent(world, allow_step_hosts=(endpoint.host,))
        secrets = {
            "another-host": secret("tests.example.com", label=CREDENTIALS_STEP, token=TOKEN),
            "another-port": secret("127.0.0.1", label=CREDENTIALS_STEP, token=TOKEN),
            "for-git": secret(endpoint.host, label=CREDENTIALS_GIT, token=TOKEN),
            "other": secret(endpoint.host, label="other", token=TOKEN),
        }
        for name, made in secrets.items():
            made["metadata"]["name"] = name
        await world.apply(*secrets.values())
        steps = [alone(name, {"url": endpoint.url, "secretRef": {"name": name}}) for name in secrets]
        await create(world, *steps)
        for name in secrets:
            ended = await reached(world, "Failed", name)
            assert ended["conditions"][0]["reason"] == "SecretNotForHost"
            assert "is not marked as a credential of custom steps" in ended["message"]
            assert TOKEN not in ended["message"]
    assert endpoint.heard == []


AMBIGUOUS: list[tuple[dict[str, Any], str]] = [
    ({"url": "https://user:pw@tests.example.com/"}, "config.url"),
    ({"url": "https://tests.example.com\\@evil.example.org/"}, "config.url"),
    ({"url": "https://tests.example.com/\r\nX: 1"}, "config.url"),
    ({"url": "https://127.0.0.1%2f@evil.example.org/"}, "config.url"),
    ({"url": "file:///etc/passwd"}, "config.url"),
    ({"url": "https://\uff11\uff12\uff17.0.0.1/"}, "config.url"),
    ({"url": "https://x.example.com/", "headers": {"X-Team": "red\r\nX-Injected: 1"}}, "config.headers"),
    ({"url": "https://x.example.com/", "headers": {"X Team": "red"}}, "config.headers"),
    ({"url": "https://x.example.com/", "headers": {"Host": "evil.example.org"}}, "config.headers"),
    ({"url": "https://x.example.com/", "headers": {"authorization": "Bearer x"}}, "config.headers"),
    ({"url": "https://x.example.com/", "headers": {"Transfer-Encoding": "chunked"}}, "config.headers"),
    ({"url": "https://x.example.com/", "headers": {"X-Kardinal-Signature-256": "sha256=00"}}, "config.headers"),
]


async def test_a_url_or_a_header_that_says_more_than_one_thing_is_refused(world: World) -> None:
    await start_agent(world)
    await create(world, *(alone(f"e{number}", config) for number, (config, _) in enumerate(AMBIGUOUS)))
    for number, (_, field) in enumerate(AMBIGUOUS):
        ended = await reached(world, "Failed", f"e{number}")
        assert ended["conditions"][0]["reason"] == "InvalidSpec"
        assert ended["message"].startswith(f"steps[0].{field}: ")


async def test_a_header_that_an_endpoint_chooses_for_the_next_one_cannot_end_its_line(
    world: World, repository: GitRepository
) -> None:
    evil = answering(body={"success": True, "outputs": {"team": "red\r\nX-Injected: 1"}})
    async with serving_endpoint(evil) as endpoint:
        await start_agent(world, allow_step_hosts=(endpoint.host,))
        first = {"uses": "first", "config": {"url": endpoint.url}}
        second = {"uses": "second", "config": {"url": endpoint.url, "headers": {"X-Team": "${outputs.first.team}"}}}
        await create(world, promotion_step(repository, steps=[first, second, _PROOF]))
        ended = await reached(world, "Failed")
    assert ended["message"].startswith("second: config.headers: names and values of headers are of printable ASCII")
    assert len(endpoint.heard) == 1


async def test_a_url_that_an_endpoint_chooses_is_held_to_the_same_hosts(
    world: World, repository: GitRepository
) -> None:
    async with serving_endpoint() as inside:
        evil = answering(body={"success": True, "outputs": {"next": f"http://localhost:{inside.port}/"}})
        async with serving_endpoint(evil) as endpoint:
            await start_agent(world, allow_step_hosts=(endpoint.host,))
            first = {"uses": "first", "config": {"url": endpoint.url}}
            second = {"uses": "second", "config": {"url": "${outputs.first.next}"}}
            await create(world, promotion_step(repository, steps=[first, second, _PROOF]))
            ended = await reached(world, "Failed")
    assert "is not asked without TLS" in ended["message"]
    assert inside.heard == []


async def test_a_slow_endpoint_leaves_workers_to_others(world: World, repository: GitRepository) -> None:
    full = asyncio.Event()
    over = asyncio.Event()
    at_once = most = 0

    async def hang(request: web.Request) -> web.StreamResponse:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if at_once == QUARTER:
            full.set()
        await over.wait()
        at_once -= 1
        return await answering()(request)

    async with serving_endpoint(hang) as endpoint:
        await start_agent(world, allow_step_hosts=(endpoint.host,))
        step = {"uses": "run-tests", "config": {"url": endpoint.url, "timeout": "1h"}}
        slow = [
            promotion_step(repository, f"{DEV}-{index}", name=f"slow-{index}", steps=[step, _PROOF])
            for index in range(QUARTER + 4)
        ]
        await create(world, *slow)
        async with asyncio.timeout(30):
            await full.wait()
        over.set()
        await world.until(lambda: len(endpoint.heard) == QUARTER + 4)
    assert most == QUARTER


_PROOF = {"uses": "health-check"}
