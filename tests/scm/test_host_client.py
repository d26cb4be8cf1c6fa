"""Bad days of a host, on a real HTTP server: each ends in an error that says what to do and hides the token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from kardinal.clock import SystemClock
from kardinal.scm import (
    PROVIDERS,
    AccessDenied,
    CommitStatus,
    HostUnavailable,
    PullRequests,
    RateLimited,
    RepositoryHost,
    RequestRefused,
    UnknownAnswer,
)
from kardinal.scm.errors import PullRequestError
from kardinal.scm.http import HostSessions, client, sessions
from tests.support.clock import VirtualClock
from tests.support.secret_values import secret_value

TOKEN = secret_value("gt")
PULL = {
    "number": 7,
    "html_url": "https://git.example.org/acme/config/pulls/7",
    "title": "Promote",
    "body": "",
    "state": "open",
    "created_at": "2026-03-03T10:00:00Z",
    "head": {"label": "kardinal/app-1/prod", "ref": "kardinal/app-1/prod", "sha": "a" * 40, "repo_id": 1},
    "base": {"label": "main", "ref": "main", "sha": "b" * 40, "repo_id": 1},
}

Answering = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class FaultyHost:
    """An HTTP server that answers every request as a test wants, and what it was asked."""

    answer: Answering
    url: str = ""
    requests: list[web.Request] = field(default_factory=list)
    observed: list[tuple[str, str]] = field(default_factory=list)
    quotas: list[tuple[str, int]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        return await self.answer(request)


async def shown(request: web.Request) -> web.StreamResponse:
    return web.json_response(PULL)


@pytest.fixture
async def host() -> AsyncIterator[FaultyHost]:
    host = FaultyHost(shown)
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", host.handle)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield host
    await runner.cleanup()


@pytest.fixture
async def pulls(host: FaultyHost) -> AsyncIterator[PullRequests]:
    async with HostSessions(clock=SystemClock(), on_quota=lambda *told: host.quotas.append(told)) as http:
        yield connected(host, http)


def connected(host: FaultyHost, http: HostSessions) -> PullRequests:
    provider = PROVIDERS["gitea"]
    target = RepositoryHost(
        url=f"{host.url}/git/acme/config.git",
        clock=http.clock,
        sessions=http,
        on_request=lambda *told: host.observed.append(told),
    )
    authenticator = provider.authenticate({"token": f"{TOKEN}\n"}, target)
    assert authenticator is not None
    assert TOKEN not in repr(authenticator)
    assert provider.connect is not None
    return provider.connect(
        RepositoryHost(
            url=target.url,
            clock=http.clock,
            sessions=http,
            authenticator=authenticator,
            on_request=target.on_request,
        )
    )


def answering(status: int = 200, *, value: Any = None, text: str = "", **headers: str) -> Answering:
    async def answer(request: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        if value is not None:
            return web.json_response(value, status=status, headers=named)
        return web.Response(status=status, text=text, headers=named)

    return answer


async def test_the_api_of_an_installation_below_a_path_is_asked_with_the_token(
    host: FaultyHost, pulls: PullRequests
) -> None:
    assert (await pulls.get(7)).head_commit == "a" * 40
    (request,) = host.requests
    assert request.path == "/git/api/v1/repos/acme/config/pulls/7"
    assert request.headers["Authorization"] == f"token {TOKEN}"
    assert host.observed == [("get", "200")]


async def test_a_redirect_is_not_followed(host: FaultyHost, pulls: PullRequests) -> None:
    other = FaultyHost(shown)
    host.answer = answering(301, Location="https://elsewhere.example.org/acme/config")
    with pytest.raises(RequestRefused, match=r"git\.url") as refused:
        await pulls.get(7)
    assert not refused.value.transient
    assert len(host.requests) == 1
    assert other.requests == []


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408])
async def test_a_host_that_cannot_answer_now_is_asked_again_later_and_not_at_once(
    host: FaultyHost, pulls: PullRequests, status: int
) -> None:
    host.answer = answering(status, text="<html>upstream</html>")
    with pytest.raises(HostUnavailable) as unavailable:
        await pulls.get(7)
    assert (unavailable.value.transient, unavailable.value.status) == (True, status)
    assert len(host.requests) == 1


async def test_a_request_to_wait_is_honoured_for_every_request_of_the_credential(
    host: FaultyHost, clock: VirtualClock
) -> None:
    async with HostSessions(clock=clock) as http:
        pulls = connected(host, http)
        host.answer = answering(429, Retry_After="120")
        with pytest.raises(RateLimited) as limited:
            await pulls.get(7)
        assert limited.value.retry_after == 120.0
        host.answer = shown
        with pytest.raises(RateLimited):
            await connected(host, http).list("open")
        assert len(host.requests) == 1
        await clock.advance(121.0)
        assert (await pulls.get(7)).number == 7


async def test_a_lost_connection_is_not_repeated_because_the_write_may_have_happened(
    host: FaultyHost, pulls: PullRequests
) -> None:
    async def reset(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return await shown(request)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    host.answer = reset
    with pytest.raises(HostUnavailable) as unavailable:
        await pulls.update(7, title="Another")
    assert unavailable.value.transient
    assert [request.method for request in host.requests] == ["GET", "PATCH"]


async def test_a_host_that_never_answers_has_a_deadline(
    host: FaultyHost, pulls: PullRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silence(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        return web.Response()

    monkeypatch.setattr(sessions, "REQUEST_DEADLINE", 0.05)
    host.answer = silence
    with pytest.raises(HostUnavailable, match="no answer in time"):
        await pulls.get(7)
    assert host.observed == [("get", "timeout")]


async def test_a_host_that_trickles_for_ever_has_a_deadline(
    host: FaultyHost, pulls: PullRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    monkeypatch.setattr(sessions, "REQUEST_DEADLINE", 0.1)
    host.answer = trickle
    with pytest.raises(HostUnavailable, match="no answer in time"):
        await pulls.get(7)


async def test_an_answer_without_end_is_given_up(
    host: FaultyHost, pulls: PullRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_BODY", 2**20)
    host.answer = answering(text="x" * (2**20 + 1))
    with pytest.raises(RequestRefused, match="larger than 1 MiB"):
        await pulls.get(7)


async def test_pages_without_end_are_given_up(
    host: FaultyHost, pulls: PullRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_PAGES", 3)
    host.answer = answering(value=[PULL], Link='<https://elsewhere.example.org/?page=2>; rel="next"')
    with pytest.raises(RequestRefused, match="more than 3 pages"):
        await pulls.list("open")
    assert [request.query["page"] for request in host.requests] == ["1", "2", "3"]
    assert {request.host for request in host.requests} == {host.url.removeprefix("http://")}


@pytest.mark.parametrize(
    "value",
    [
        [],
        "pull request",
        {},
        {**PULL, "number": "7; DROP"},
        {**PULL, "number": -1},
        {**PULL, "created_at": "yesterday"},
        {**PULL, "created_at": "2026-03-03T10:00:00"},
        {**PULL, "head": None},
        {**PULL, "title": ["x"]},
    ],
)
async def test_an_answer_that_is_no_pull_request_is_tried_three_times(
    host: FaultyHost, pulls: PullRequests, value: Any
) -> None:
    host.answer = answering(value=value)
    with pytest.raises(UnknownAnswer) as unknown:
        await pulls.get(7)
    assert (unknown.value.transient, unknown.value.attempts) == (True, 3)


@pytest.mark.parametrize("text", ["", "<html>", "[[", "\x00", '{"number": 7', "null"])
async def test_an_answer_that_is_no_document_is_tried_three_times(
    host: FaultyHost, pulls: PullRequests, text: str
) -> None:
    host.answer = answering(text=text)
    with pytest.raises(UnknownAnswer):
        await pulls.get(7)


async def test_a_host_that_says_yes_and_does_nothing_is_not_believed(host: FaultyHost, pulls: PullRequests) -> None:
    for request in (pulls.merge(7, by="kardinal"), pulls.close(7, by="kardinal", comment="")):
        with pytest.raises(UnknownAnswer, match="did not") as unknown:
            await request
        assert unknown.value.attempts == 3
    host.answer = answering(value={"statuses": []})
    with pytest.raises(UnknownAnswer):
        await pulls.set_status("a" * 40, CommitStatus("kardinal", "pending"))


@pytest.mark.parametrize("status", [400, 401, 403, 405, 409, 418, 422, 500])
async def test_a_host_that_repeats_the_token_in_its_error_does_not_bring_it_into_ours(
    host: FaultyHost, pulls: PullRequests, status: int
) -> None:
    for before in ("bad header", "x" * 190):  # the second is cut in the middle of the token
        host.answer = answering(status, value={"message": f"{before} {TOKEN}"})
        for request in (pulls.get(7), pulls.merge(7, by="kardinal"), pulls.list("open"), pulls.access()):
            with pytest.raises(PullRequestError) as error:
                await request
            assert TOKEN[:6] not in str(error.value)
            assert TOKEN[:6] not in repr(error.value)


async def test_a_list_that_did_not_change_is_not_sent_again(host: FaultyHost, pulls: PullRequests) -> None:
    async def conditional(request: web.Request) -> web.StreamResponse:
        headers = {"ETag": '"v1"', "X-RateLimit-Remaining": str(100 - len(host.requests)), "X-RateLimit-Limit": "100"}
        if request.headers.get("If-None-Match") == '"v1"':
            return web.Response(status=304, headers=headers)
        return web.json_response([PULL], headers=headers)

    host.answer = conditional
    first = await pulls.list("open")
    assert await pulls.list("open") == first
    assert host.observed == [("list", "200"), ("list", "304")]
    assert [remaining for _, remaining in host.quotas] == [99, 98]


async def test_an_answer_kept_for_one_credential_is_not_given_to_another(host: FaultyHost) -> None:
    host.answer = answering(value=[PULL], ETag='"v1"')
    async with HostSessions(clock=SystemClock()) as http:
        await connected(host, http).list("open")
        provider = PROVIDERS["gitea"]
        target = RepositoryHost(url=f"{host.url}/git/acme/config.git", clock=http.clock, sessions=http)
        other = provider.authenticate({"username": "robot", "password": "another"}, target)
        assert provider.connect is not None
        await provider.connect(
            RepositoryHost(url=target.url, clock=http.clock, sessions=http, authenticator=other)
        ).list("open")
    assert [request.headers.get("If-None-Match") for request in host.requests] == [None, None]
    assert host.requests[1].headers["Authorization"].startswith("Basic ")


async def test_a_certificate_that_is_none_is_named(host: FaultyHost) -> None:
    async with HostSessions(clock=SystemClock()) as http:
        with pytest.raises(RequestRefused, match=r"ca\.crt"):
            await http.session("not a certificate")


async def test_a_secret_without_a_token_is_named(host: FaultyHost) -> None:
    provider = PROVIDERS["gitea"]
    async with HostSessions(clock=SystemClock()) as http:
        target = RepositoryHost(url=f"{host.url}/acme/config", clock=http.clock, sessions=http)
        for values in ({}, {"username": "robot"}, {"password": "x"}, {"token": "\n"}):
            assert provider.authenticate(values, target) is None
        assert provider.connect is not None
        with pytest.raises(AccessDenied, match=r"git\.secretRef"):
            provider.connect(target)


async def test_a_token_with_a_line_break_cannot_add_a_header(host: FaultyHost) -> None:
    provider = PROVIDERS["gitea"]
    async with HostSessions(clock=SystemClock()) as http:
        target = RepositoryHost(url=f"{host.url}/acme/config", clock=http.clock, sessions=http)
        for values in ({"token": "x\r\nHost: elsewhere"}, {"username": "a\nb", "password": "c"}, {"token": "\0"}):
            with pytest.raises(AccessDenied, match="control characters") as denied:
                provider.authenticate(values, target)
            assert "elsewhere" not in str(denied.value)
