"""Viewers with a bearer token see what RBAC lets them list, for as long as the API server accepts the token."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs
from yarl import URL

from kardinal.objects import NAMESPACE, SECRET, SERVICE_ACCOUNT
from kardinal_controller.ui.access import Reviews, SessionKey, TokenAccess
from kardinal_controller.ui.access.token import LOG_INS
from kardinal_controller.ui.actions import ActionRoutes
from tests.support.identities import RESOURCES, SYSTEM_NAMESPACE, documents_of
from tests.support.names import TEAM
from tests.support.objects import pipeline
from tests.support.secret_values import secret_value
from tests.support.world import World
from tests.ui.viewers import OTHER, Page, answer_of, bind, reception_of, serve, token_of

SESSION = "/api/ui/v1/session"
VIEWER = "/api/ui/v1/viewer"
GUESS = secret_value("guess")
REVIEWS = ("tokenreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io")


@pytest.fixture
async def page(world: World) -> AsyncIterator[Page]:
    """Return the page of a controller with the rights of deploy/."""
    await world.client.apply(RESOURCES["Namespace"], namespace(OTHER), field_manager="test", force=True)
    for role in documents_of("roles.yaml"):
        await world.client.apply(RESOURCES[role["kind"]], role, field_manager="test", force=True)
    async with replica(world) as served:
        yield served


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": {"name": name}}


@asynccontextmanager
async def replica(world: World, *, actions: bool = False, **options: Any) -> AsyncIterator[Page]:
    """Run a replica of the controller, with the routes of actions if a test presses their buttons."""
    client = await world.connect("controller")
    key = SessionKey(client, namespace=SYSTEM_NAMESPACE, path="/", clock=world.clock)
    await key.start()
    reviews = Reviews(client, clock=world.clock)
    access = TokenAccess(
        client,
        reviews=reviews,
        reception=reception_of(world, reviews),
        cookies=key.cookies,
        clock=world.clock,
        **options,
    )
    async with serve(access, groups=[ActionRoutes(access).group()] if actions else ()) as page:
        yield page


@pytest.fixture
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield session


async def log_in(browser: aiohttp.ClientSession, page: Page, token: str, **headers: str) -> tuple[int, Any]:
    async with browser.post(page.url + SESSION, json={"token": token}, headers=headers) as answer:
        return await answer_of(answer)


async def get(browser: aiohttp.ClientSession, page: Page, path: str, **headers: str) -> tuple[int, Any]:
    async with browser.get(page.url + path, headers={k.replace("_", "-"): v for k, v in headers.items()}) as answer:
        return await answer_of(answer)


def user_of(account: str) -> str:
    return f"system:serviceaccount:{TEAM}:{account}"


def reviewed(world: World) -> int:
    user = world.user("controller")
    return sum(world.audit.count(verbs={"create"}, resource=resource, user=user) for resource in REVIEWS)


async def test_a_viewer_sees_the_namespaces_that_rbac_lets_them_list(
    world: World, page: Page, browser: aiohttp.ClientSession
) -> None:
    token = await token_of(world, "dana")
    await bind(world, user_of("dana"), "kardinal-viewer", namespace=TEAM)
    status, answer = await log_in(browser, page, token)
    assert status == 200
    assert answer["viewer"]["user"] == user_of("dana")
    assert answer["viewer"]["namespaces"] == [TEAM]
    assert (answer["viewer"]["mayAct"], answer["viewer"]["readsAsViewer"]) == (False, True)
    assert "secret" not in answer
    assert (await get(browser, page, VIEWER))[1] == answer["viewer"]
    assert await get(browser, page, f"/may/{TEAM}/bundles") == (200, True)
    assert await get(browser, page, f"/may/{OTHER}/bundles") == (200, False)
    asked = reviewed(world)
    for _ in range(5):
        await get(browser, page, VIEWER)
        await get(browser, page, f"/may/{TEAM}/bundles")
    assert reviewed(world) == asked, "an answer is used for a minute"


async def test_a_right_to_list_all_namespaces_is_one_review(
    world: World, page: Page, browser: aiohttp.ClientSession
) -> None:
    token = await token_of(world, "erin")
    await bind(world, user_of("erin"), "kardinal-viewer", namespace=None)
    before = reviewed(world)
    _, answer = await log_in(browser, page, token)
    assert answer["viewer"]["namespaces"] == sorted((TEAM, OTHER))
    assert reviewed(world) == before + 2


async def test_each_kind_needs_its_own_right(world: World, page: Page, browser: aiohttp.ClientSession) -> None:
    rules = [{"apiGroups": ["kardinal.io"], "resources": ["pipelines"], "verbs": ["list"]}]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "pipelines-alone"},
        "rules": rules,
    }
    await world.client.apply(RESOURCES["ClusterRole"], role, field_manager="test", force=True)
    token = await token_of(world, "finn")
    await bind(world, user_of("finn"), "pipelines-alone", namespace=TEAM)
    await log_in(browser, page, token)
    assert await get(browser, page, f"/may/{TEAM}/pipelines") == (200, True)
    for plural in ("bundles", "policygates"):
        assert await get(browser, page, f"/may/{TEAM}/{plural}") == (200, False)


async def test_a_viewer_reads_with_their_own_token_and_nothing_of_the_controller(
    world: World, page: Page, browser: aiohttp.ClientSession
) -> None:
    await world.apply(pipeline("https://git.example.com/acme/gitops.git", provider="git"))
    token = await token_of(world, "dana")
    await log_in(browser, page, token)
    assert await get(browser, page, f"/read/{TEAM}") == (200, "Forbidden")
    await bind(world, user_of("dana"), "kardinal-viewer", namespace=TEAM)
    assert await get(browser, page, f"/read/{TEAM}") == (200, ["my-app"])
    assert world.audit.count(verbs={"list"}, resource="pipelines.kardinal.io", user=world.user("controller")) == 0


async def test_a_session_is_known_to_every_replica_with_the_key(
    world: World, page: Page, browser: aiohttp.ClientSession
) -> None:
    await log_in(browser, page, await token_of(world, "dana"))
    async with replica(world) as other:
        browser.cookie_jar.update_cookies(browser.cookie_jar.filter_cookies(URL(page.url)), URL(other.url))
        assert (await get(browser, other, VIEWER))[0] == 200
    await world.client.delete(SECRET, "kardinal-ui", SYSTEM_NAMESPACE)
    async with replica(world) as later:
        browser.cookie_jar.update_cookies(browser.cookie_jar.filter_cookies(URL(page.url)), URL(later.url))
        assert (await get(browser, later, VIEWER))[0] == 401


async def test_a_token_that_the_api_server_does_not_know_is_refused(page: Page, browser: aiohttp.ClientSession) -> None:
    with capture_logs():
        for token in ("", GUESS, f"{GUESS} and more", "Ünbekannt", f"{GUESS}\n", "a.b.c", "a.bm8.c"):
            status, answer = await log_in(browser, page, token)
            assert (status, answer["auth"]) == (401, "token"), token
            assert "kubectl create token" in answer["remedy"]
    assert (await get(browser, page, VIEWER))[0] == 401


async def test_a_malformed_log_in_is_refused(page: Page, browser: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": "application/json"}
    for body in (b"", b"[]", b'{"token": 3}', b'{"token": "x", "more": 1}', b"\xff", b"{" * 9_000):
        async with browser.post(page.url + SESSION, data=body, headers=headers) as answer:
            assert answer.status == 400, body
    async with browser.post(page.url + SESSION, data={"token": GUESS}) as answer:
        assert answer.status == 415, "a form, which a page of another origin can send"


async def test_a_huge_log_in_is_refused(page: Page, browser: aiohttp.ClientSession) -> None:
    assert (await log_in(browser, page, "t" * 6_000))[0] == 413
    assert (await log_in(browser, page, "t" * 60_000))[0] == 413
    async with browser.get(page.url + VIEWER, headers={"Cookie": f"kardinal-ui={'x' * 60_000}"}) as answer:
        assert answer.status == 400


async def test_a_request_of_another_origin_is_refused(world: World, page: Page, browser: aiohttp.ClientSession) -> None:
    await log_in(browser, page, await token_of(world, "dana"))
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example.com"},
        {"Origin": "null"},
        {"Origin": "http://[bad"},
    ):
        for method, path in (("GET", VIEWER), ("DELETE", SESSION), ("POST", SESSION), ("POST", "/act")):
            async with browser.request(method, page.url + path, headers=headers) as answer:
                assert answer.status == 403, (method, headers)


async def test_the_page_itself_is_answered(world: World, page: Page, browser: aiohttp.ClientSession) -> None:
    await log_in(browser, page, await token_of(world, "dana"), **{"Sec-Fetch-Site": "same-origin"})
    assert (await get(browser, page, VIEWER, Sec_Fetch_Site="same-origin"))[0] == 200
    assert (await get(browser, page, VIEWER, Sec_Fetch_Site="none"))[0] == 200
    assert (await get(browser, page, VIEWER, Origin=page.url))[0] == 200


async def test_log_in_is_limited_by_address(page: Page, browser: aiohttp.ClientSession) -> None:
    with capture_logs():
        statuses = [(await log_in(browser, page, f"{GUESS}-{number}"))[0] for number in range(LOG_INS + 1)]
    assert statuses == [401] * LOG_INS + [429]


async def test_log_out_deletes_the_cookies(world: World, page: Page, browser: aiohttp.ClientSession) -> None:
    await log_in(browser, page, await token_of(world, "dana"))
    async with browser.delete(page.url + SESSION) as answer:
        assert answer.status == 204
    assert (await get(browser, page, VIEWER))[0] == 401


@pytest.mark.local_only("a real API server lets a token expire by its own clock")
async def test_a_session_ends_with_its_token(world: World, page: Page, browser: aiohttp.ClientSession) -> None:
    await log_in(browser, page, await token_of(world, "dana"))
    kept = browser.cookie_jar.filter_cookies(URL(page.url))
    async with browser.get(page.url + "/stream") as stream:
        assert await stream.content.readline() == b"begun\n"
        page.looks.put_nowait(None)
        assert await stream.content.readline() == b"goes on\n"
        await world.live(timedelta(hours=1, seconds=1))
        page.looks.put_nowait(None)
        assert await stream.content.readline() == b"the session has ended\n"
        assert await stream.content.readline() == b""
    headers = {"Cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in kept.items())}
    async with browser.get(page.url + VIEWER, headers=headers) as answer:
        assert answer.status == 401


@pytest.mark.local_only("a real API server accepts a token for some seconds after it was revoked")
async def test_a_revoked_token_ends_the_stream_and_the_session(
    world: World, page: Page, browser: aiohttp.ClientSession
) -> None:
    await log_in(browser, page, await token_of(world, "dana"))
    async with browser.get(page.url + "/stream") as stream:
        await stream.content.readline()
        await world.delete(SERVICE_ACCOUNT, "dana")
        await world.live(timedelta(seconds=60))
        page.looks.put_nowait(None)
        assert b"does not accept the token" in await stream.content.readline()
    assert (await get(browser, page, VIEWER))[0] == 401


@pytest.mark.virtual_time("rights are asked for once a minute")
async def test_a_right_that_was_taken_ends_the_stream(world: World, page: Page, browser: aiohttp.ClientSession) -> None:
    token = await token_of(world, "dana")
    await bind(world, user_of("dana"), "kardinal-viewer", namespace=TEAM)
    await log_in(browser, page, token)
    async with browser.get(page.url + "/stream") as stream:
        await stream.content.readline()
        await world.client.delete(RESOURCES["RoleBinding"], "dana-kardinal-viewer", TEAM)
        await world.live(timedelta(seconds=60))
        page.looks.put_nowait(None)
        assert b"have changed" in await stream.content.readline()
    assert (await get(browser, page, VIEWER))[1]["namespaces"] == []


async def test_a_token_over_plain_http_of_a_network_is_refused(
    world: World, browser: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aiohttp.web.BaseRequest.remote", "10.1.2.3")
    token = await token_of(world, "dana")
    async with replica(world) as plain:
        status, answer = await log_in(browser, plain, token)
        assert status == 403
        assert "--ui-behind-tls" in answer["remedy"]
    async with (
        replica(world, behind_tls=True) as behind,
        browser.post(behind.url + SESSION, json={"token": token}) as answered,
    ):
        assert answered.status == 200
        assert answered.cookies["kardinal-ui"]["secure"]


@pytest.mark.virtual_time("rights are asked for once a minute")
async def test_many_requests_of_a_viewer_ask_once(world: World, page: Page, browser: aiohttp.ClientSession) -> None:
    token = await token_of(world, "dana")
    await bind(world, user_of("dana"), "kardinal-viewer", namespace=TEAM)
    await log_in(browser, page, token)
    await world.live(timedelta(seconds=61))
    before = reviewed(world)
    answers = await asyncio.gather(*(get(browser, page, VIEWER) for _ in range(20)))
    assert {status for status, _ in answers} == {200}
    assert reviewed(world) == before + 1 + 1 + 2, "the token, all namespaces, and each of two"


async def test_without_the_right_to_review_it_says_so_once(
    world: World, page: Page, browser: aiohttp.ClientSession
) -> None:
    token = await token_of(world, "dana")
    await world.client.delete(RESOURCES["ClusterRoleBinding"], "kardinal-controller")
    with capture_logs() as logs:
        for _ in range(3):
            status, answer = await log_in(browser, page, token)
            assert (status, answer["remedy"].startswith("Try again")) == (503, True)
    [line] = [entry for entry in logs if "could not be reviewed" in entry["event"]]
    assert "subjectaccessreviews" in line["event"]
