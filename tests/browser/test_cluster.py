"""The page of a controller with `--ui-auth=token`, as in a cluster: its viewers, their tokens, and its restart."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kardinal.objects import SERVICE_ACCOUNT
from kardinal.promotion.kinds import BUNDLE
from kardinal_controller.program import ControlPlane
from kardinal_controller.ui.options import UiOptions
from tests.browser.conftest import start_chromium
from tests.browser.screen import Screen
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import DEV, STAGING, TEAM
from tests.support.objects import bundle, namespace, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import APPLICATION, GitRepository
from tests.support.world import World
from tests.ui.viewers import OTHER, bind, token_of

pytestmark = [
    pytest.mark.timeout(240),
]

ENVIRONMENTS = [DEV, STAGING]

Opened = Callable[[str], Awaitable[Screen]]


async def start_page(world: World, *, port: int = 0) -> ControlPlane:
    """Start a controller that serves the page on 127.0.0.1."""
    return await start_controller(world, ui=UiOptions(auth="token", listen_address=f"127.0.0.1:{port}"))


@pytest.fixture
async def controller(world: World) -> ControlPlane:
    """Return a controller with the rights and roles of deploy/, and Pipelines in two namespaces."""
    await world.apply(namespace(OTHER))
    for role in documents_of("roles.yaml"):
        await world.client.apply(RESOURCES[role["kind"]], role, field_manager="test", force=True)
    url = "https://git.example.com/acme/gitops.git"
    await world.apply(pipeline(url, name="search", provider="git"))
    await world.apply(pipeline(url, name="billing", namespace=OTHER, provider="git"))
    return await start_page(world)


@pytest.fixture
async def opened(controller: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    """Open a window of a person in which a token is pasted; its errors fail the test."""
    windows: list[Screen] = []
    async with AsyncExitStack() as stack:
        browser = await stack.enter_async_context(start_chromium())

        async def open_window(token: str) -> Screen:
            window = await Screen.open(browser)
            windows.append(window)
            # Before the log in the viewer is not known, and the browser says so.
            window.expected += [f"status of {HTTPStatus.UNAUTHORIZED:d}"]
            await window.go(f"{controller.page_url}/ui/")
            await log_in(window, token)
            return window

        yield open_window
        for number, window in enumerate(windows):
            await window.keep_picture(tmp_path / f"{request.node.name}-{number}.png")
            window.check_errors()


def user_of(account: str) -> str:
    return f"system:serviceaccount:{TEAM}:{account}"


async def log_in(window: Screen, token: str) -> None:
    """Paste a token into the page."""
    await window.page.get_by_label("Paste a token").fill(token)
    await window.page.get_by_role("button", name="Log in").click()


@pytest.mark.virtual_time("rights are asked for once a minute")
async def test_two_viewers_see_what_each_may_list(world: World, controller: ControlPlane, opened: Opened) -> None:
    await bind(world, user_of("dana"), "kardinal-viewer", namespace=TEAM)
    await bind(world, user_of("erin"), "kardinal-viewer", namespace=None)
    dana = await opened(await token_of(world, "dana"))
    erin = await opened(await token_of(world, "erin"))
    await erin.sees("search")
    await erin.sees("billing")
    await erin.page.get_by_role("button", name="all namespaces").wait_for()
    await dana.sees("search")
    assert await dana.page.get_by_text("billing").count() == 0
    assert await dana.page.get_by_role("button", name="all namespaces").count() == 0

    # The address of what a viewer may not see is answered as one that does not exist.
    dana.expected += [f"status of {HTTPStatus.NOT_FOUND:d}"]
    await dana.visit(f"/pipelines/{OTHER}/billing")
    await dana.sees("there is no Pipeline in namespace")
    assert await dana.page.get_by_text("lost since").count() == 0
    assert await dana.violations() == []
    await erin.visit(f"/pipelines/{OTHER}/billing")
    await erin.sees("No Bundle has been created yet")

    # The page changes nothing here: a dialog has the command alone.
    await erin.page.get_by_role("button", name="Pause …").click()
    await erin.dialog().get_by_text("This page changes nothing").wait_for()
    await erin.dialog().get_by_text("kardinal pause billing").wait_for()
    assert await erin.dialog().get_by_role("button", name="Pause", exact=True).count() == 0
    assert await erin.violations() == []

    # A right that is given or taken is seen within a minute, without a reload.
    await dana.page.get_by_role("link", name="Pipelines", exact=True).click()
    await dana.sees("search")
    await bind(world, user_of("dana"), "kardinal-viewer", namespace=OTHER)
    await world.live(timedelta(seconds=61))
    await dana.sees("billing")
    await dana.page.get_by_role("button", name="all namespaces").wait_for()

    await dana.page.locator(".bar").get_by_role("button").last.click()
    await dana.page.get_by_role("menuitem", name="Log out").click()
    await dana.sees("Paste a token")
    assert await dana.violations() == []


@pytest.mark.local_only("a real API server lets a token expire by its own clock")
async def test_a_token_that_expires_while_the_page_is_open_is_asked_for_again(world: World, opened: Opened) -> None:
    await bind(world, user_of("dana"), "kardinal-viewer", namespace=TEAM)
    dana = await opened(await token_of(world, "dana"))
    await dana.page.get_by_role("link", name="search").click()
    await dana.sees("No Bundle has been created yet")
    assert await dana.page.get_by_role("status").get_by_text("live").count() == 1

    await world.live(timedelta(hours=1, seconds=1))
    await dana.sees("Paste a token")
    assert await dana.violations() == []
    await world.client.delete(SERVICE_ACCOUNT, "dana", TEAM)
    await log_in(dana, await token_of(world, "dana"))
    await dana.sees("No Bundle has been created yet")
    await dana.page.get_by_role("status").get_by_text("live").wait_for()


async def verified(world: World, name: str) -> None:
    """Live until a Bundle is Verified everywhere."""
    await world.wait_for(BUNDLE, name, lambda found: found.get("status", {}).get("phase") == "Verified")


async def picture(window: Screen, environments: list[str]) -> dict[str, tuple[str, str]]:
    """Return the version and the state that the page shows for each environment."""
    found = {}
    for name in environments:
        box = window.node(name)
        found[name] = (await box.locator(".version").inner_text(), await box.locator(".state").inner_text())
    return found


async def test_the_page_heals_after_a_restart_and_shows_what_the_api_says(
    world: World, repository: GitRepository, controller: ControlPlane, opened: Opened
) -> None:
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=ENVIRONMENTS), bundle("first", tag="1.1.0"))
    await bind(world, user_of("dana"), "kardinal-viewer", namespace=TEAM)
    await verified(world, "first")
    dana = await opened(await token_of(world, "dana"))
    dana.expected += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING"]
    await dana.page.get_by_role("link", name=APPLICATION).click()
    await dana.node(STAGING).get_by_text("Verified").wait_for()

    port = urlsplit(controller.page_url).port
    await world.stop(controller)
    await dana.sees("lost since")
    await world.apply(bundle("second", tag="1.2.0"))
    await start_page(world, port=port or 0)
    await verified(world, "second")
    await dana.node(STAGING).get_by_text("1.2.0").first.wait_for()
    await dana.node(STAGING).get_by_text("Verified").wait_for()
    await dana.page.get_by_role("status").get_by_text("live").wait_for()

    status: dict[str, Any] = (await world.get(BUNDLE, "second"))["status"]["environments"]
    assert await picture(dana, ENVIRONMENTS) == {name: ("1.2.0", each["state"]) for name, each in status.items()}
