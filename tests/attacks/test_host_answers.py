"""A host of a tenant answers with what costs a reader most: it costs that tenant's requests, and no memory."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from kardinal.clock import SystemClock
from kardinal.scm import PROVIDERS, HostUnavailable, PullRequests, RepositoryHost, RequestRefused, UnknownAnswer
from kardinal.scm.http import HostSessions, client
from kardinal.scm.http.sessions import MAX_SESSIONS
from tests.scm.test_host_client import PULL, FaultyHost, answering, host
from tests.support.smart_server import self_signed

__all__ = ["host"]

BOUND = 64 << 20
NESTED = b"[" + b",".join([b"[[[[[[]]]]]]"] * 300_000) + b"]"
"""3.6 MB, of which 1.8 million lists are made."""


def of_namespace(host: FaultyHost, sessions: HostSessions, namespace: str) -> PullRequests:
    provider = PROVIDERS["gitea"]
    target = RepositoryHost(url=f"{host.url}/a/b", clock=sessions.clock, sessions=sessions, namespace=namespace)
    authenticator = provider.authenticate({"token": "of-a-tenant"}, target)
    assert provider.connect is not None
    return provider.connect(
        RepositoryHost(
            url=target.url, clock=sessions.clock, sessions=sessions, authenticator=authenticator, namespace=namespace
        )
    )


@pytest.fixture
async def sessions() -> AsyncIterator[HostSessions]:
    async with HostSessions(clock=SystemClock()) as opened:
        yield opened


@pytest.fixture
def peak() -> Iterator[list[int]]:
    """Yield a list to which the end of the test adds the memory that was allocated at once."""
    tracemalloc.start()
    yield []
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < BOUND


@pytest.mark.usefixtures("peak")
async def test_nested_lists_are_not_decoded(host: FaultyHost, sessions: HostSessions) -> None:
    host.answer = answering(text=NESTED.decode())
    with pytest.raises(RequestRefused, match="more than 20,000 lists and objects"):
        await of_namespace(host, sessions, "team").heads()


async def test_an_answer_that_is_compressed_is_not_unpacked(host: FaultyHost, sessions: HostSessions) -> None:
    packed = gzip.compress(NESTED)

    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    host.answer = answer
    with pytest.raises(UnknownAnswer, match="answers compressed"):
        await of_namespace(host, sessions, "team").heads()
    assert [request.headers["Accept-Encoding"] for request in host.requests] == ["identity"]


async def test_answers_of_one_namespace_wait_for_its_share_and_those_of_others_do_not(
    host: FaultyHost, sessions: HostSessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions.reading, "_patience", 0.2)
    reading = asyncio.Semaphore(0)
    finish = asyncio.Event()

    async def large(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        if request.query.get("page"):
            await response.write(b"[" + b" " * 200_000)
            reading.release()
            await finish.wait()
            await response.write(b"]")
        return response

    host.answer = large
    pulls = of_namespace(host, sessions, "hostile")
    lists = [asyncio.create_task(pulls.heads()) for _ in range(4)]
    for _ in lists:
        await reading.acquire()
    # Three of four megabytes each may be read at once.
    done, _ = await asyncio.wait(lists, return_when=asyncio.FIRST_COMPLETED)
    assert [type(each.exception()) for each in done] == [HostUnavailable]
    assert sessions.reading.held == 3 * client.MAX_BODY
    other = asyncio.create_task(of_namespace(host, sessions, "honest").heads())
    await reading.acquire()
    finish.set()
    assert list(await other) == []
    await asyncio.gather(*lists, return_exceptions=True)


async def test_one_page_takes_room_at_a_time_and_none_when_it_was_read(
    host: FaultyHost, sessions: HostSessions
) -> None:
    held = []

    async def page(request: web.Request) -> web.StreamResponse:
        held.append(sessions.holding.held)
        number = int(request.query["page"])
        items = [{**PULL, "number": number * 50 + each, "body": "x" * 10_000} for each in range(50)]
        headers = {"Link": f'<{host.url}?page={number + 1}>; rel="next"'} if number < 4 else {}
        return web.json_response(items, headers=headers)

    host.answer = page
    assert len(await of_namespace(host, sessions, "team").heads()) == 200
    await asyncio.sleep(0)
    assert held == [0, 0, 0, 0]
    assert (sessions.holding.held, sessions.reading.held) == (0, 0)


async def test_certificates_of_one_namespace_close_no_session_of_another(
    sessions: HostSessions, tmp_path: Path
) -> None:
    certificate = self_signed(tmp_path).read_text()
    others = await sessions.session(f"\n{certificate}", "team")
    for number in range(MAX_SESSIONS + 1):
        await sessions.session(certificate + "\n" * number, "hostile")
    assert not others.closed
    assert await sessions.session(f"\n{certificate}", "team") is others


async def test_sessions_of_many_namespaces_have_a_bound(sessions: HostSessions, tmp_path: Path) -> None:
    certificate = self_signed(tmp_path).read_text()
    opened = [await sessions.session(certificate + "\n" * (number % 100), f"n{number}") for number in range(200)]
    await asyncio.sleep(0)
    assert sum(not one.closed for one in set(opened)) <= MAX_SESSIONS
    assert await sessions.session(certificate + "\n" * 99, "another") is opened[-1]
