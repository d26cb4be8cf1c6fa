"""On loopback a link opens one session, and nothing but the secret of the session authorises a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from kardinal_controller.ui.access import SESSION_HEADER, KubeconfigAccess, Reviews
from kardinal_controller.ui.access.kubeconfig import CODES
from tests.support.names import TEAM
from tests.support.objects import pipeline
from tests.support.secret_values import know_secret
from tests.support.world import World
from tests.ui.viewers import OTHER, Page, answer_of, reception_of, serve

SESSION = "/api/ui/v1/session"
VIEWER = "/api/ui/v1/viewer"


@pytest.fixture
async def page(world: World) -> AsyncIterator[Page]:
    """Return the page of the administrator of a world."""
    client = await world.connect("admin")
    reviews = Reviews(client, clock=world.clock)
    person = await reviews.own_person()
    async with serve(KubeconfigAccess(client, person=person, reception=reception_of(world, reviews))) as page:
        yield page


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


def code_of(page: Page) -> str:
    assert isinstance(page.access, KubeconfigAccess)
    link = urlsplit(page.access.link(page.url))
    assert (link.path, link.query) == ("/ui/", ""), "a server and its log see neither path nor query with the code"
    return know_secret(link.fragment.removeprefix("code="))


async def log_in(browser: aiohttp.ClientSession, page: Page, code: str, **headers: str) -> tuple[int, Any]:
    async with browser.post(page.url + SESSION, json={"code": code}, headers=headers) as answer:
        assert not answer.cookies
        return await answer_of(answer)


async def secret_of(browser: aiohttp.ClientSession, page: Page) -> str:
    _, answer = await log_in(browser, page, code_of(page))
    return know_secret(answer["secret"])


async def get(browser: aiohttp.ClientSession, url: str, **headers: str) -> int:
    async with browser.get(url, headers=headers) as answer:
        return answer.status


async def test_a_link_opens_the_page_as_the_user_of_the_kubeconfig(
    world: World, page: Page, browser: aiohttp.ClientSession
) -> None:
    await world.apply(pipeline("https://git.example.com/acme/gitops.git", provider="git"))
    status, answer = await log_in(browser, page, code_of(page))
    assert status == 200
    viewer = answer["viewer"]
    assert viewer["user"]
    assert (viewer["auth"], viewer["mayAct"], viewer["readsAsViewer"]) == ("kubeconfig", True, True)
    assert viewer["namespaces"] == sorted((TEAM, OTHER))
    async with browser.get(f"{page.url}/read/{TEAM}", headers={SESSION_HEADER: answer["secret"]}) as read:
        assert await answer_of(read) == (200, ["my-app"])


async def test_a_code_is_used_once_even_by_two_requests_at_once(page: Page, browser: aiohttp.ClientSession) -> None:
    code = code_of(page)
    answers = await asyncio.gather(*(log_in(browser, page, code) for _ in range(5)))
    assert sorted(status for status, _ in answers) == [200, 401, 401, 401, 401]
    status, answer = await log_in(browser, page, code)
    assert (status, answer["remedy"]) == (401, "Open a new link: kardinal ui")
    for guess in ("", "guess", code[:-1], code + "x"):
        assert (await log_in(browser, page, guess))[0] == 401


async def test_codes_that_are_not_used_do_not_pile_up(page: Page, browser: aiohttp.ClientSession) -> None:
    codes = [code_of(page) for _ in range(CODES + 1)]
    assert (await log_in(browser, page, codes[0]))[0] == 401
    assert (await log_in(browser, page, codes[-1]))[0] == 200


async def test_a_cookie_authorises_nothing(page: Page, browser: aiohttp.ClientSession) -> None:
    secret = await secret_of(browser, page)
    for path in (VIEWER, "/stream", f"/read/{TEAM}"):
        assert await get(browser, page.url + path) == 401
        for name in ("kardinal-ui", SESSION_HEADER):
            assert await get(browser, page.url + path, Cookie=f"{name}={secret}") == 401
        assert await get(browser, f"{page.url}{path}?{SESSION_HEADER}={secret}") == 401
        assert await get(browser, page.url + path, Authorization=f"Bearer {secret}") == 401
    assert await get(browser, page.url + VIEWER, **{SESSION_HEADER: secret}) == 200
    for guess in ("", secret[:-1], "Ünbekannt", "x" * 8_000):
        assert await get(browser, page.url + VIEWER, **{SESSION_HEADER: guess}) == 401


async def test_a_name_that_was_rebound_to_this_machine_is_refused(page: Page, browser: aiohttp.ClientSession) -> None:
    secret = await secret_of(browser, page)
    port = urlsplit(page.url).port
    for host in ("evil.example.com", f"evil.example.com:{port}", "127.0.0.1", "localhost:1", f"0.0.0.0:{port}", ""):
        assert await get(browser, page.url + VIEWER, **{SESSION_HEADER: secret, "Host": host}) == 403, host
        assert (await log_in(browser, page, code_of(page), Host=host))[0] == 403
    for host in (f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
        assert await get(browser, page.url + VIEWER, **{SESSION_HEADER: secret, "Host": host}) == 200


async def test_a_page_of_another_origin_is_refused(page: Page, browser: aiohttp.ClientSession) -> None:
    secret = await secret_of(browser, page)
    for headers in ({"Origin": "http://127.0.0.1:1"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "null"}):
        assert await get(browser, page.url + VIEWER, **{SESSION_HEADER: secret, **headers}) == 403
        assert (await log_in(browser, page, code_of(page), **headers))[0] == 403


async def test_log_out_ends_the_session_and_its_streams(page: Page, browser: aiohttp.ClientSession) -> None:
    secret = await secret_of(browser, page)
    other = await secret_of(browser, page)
    async with browser.get(page.url + "/stream", headers={SESSION_HEADER: secret}) as stream:
        await stream.content.readline()
        page.looks.put_nowait(None)
        assert await stream.content.readline() == b"goes on\n"
        async with browser.delete(page.url + SESSION, headers={SESSION_HEADER: secret}) as answer:
            assert answer.status == 204
        page.looks.put_nowait(None)
        assert await stream.content.readline() == b"the session has ended\n"
    assert await get(browser, page.url + VIEWER, **{SESSION_HEADER: secret}) == 401
    assert await get(browser, page.url + VIEWER, **{SESSION_HEADER: other}) == 200
