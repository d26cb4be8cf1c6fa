"""Every page, drawer and dialog of the sample: for everyone, on a telephone, by keyboard, and by its address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import pytest_asyncio

from kardinal.objects import NAMESPACE as NAMESPACES
from tests.browser.sample import NAMESPACE, POLICIES, apply, create, make_sample, reaches
from tests.browser.screen import NARROW, WIDE, Screen
from tests.resilience.processes import Local
from tests.support.objects import namespace, pipeline

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.local_only("the page that `kardinal local up` serves"),
    pytest.mark.timeout(300),
]

PODINFO = f"/pipelines/{NAMESPACE}/podinfo"
SOAK = f"{PODINFO}/gates/prod/{POLICIES}/staging-soak"
OTHER = "shop"

ADDRESSES = {
    "/": "Waiting for merge",
    "/?view=matrix": "Waiting for merge",
    "/?q=nothing-has-this-name": "Show all",
    f"/pipelines/{OTHER}/search": "No Bundle has been created yet",
    "/pipelines/default/absent": "absent",
    PODINFO: "staging-soak",
    f"{PODINFO}/environments/dev": "What was promoted here",
    f"{PODINFO}/environments/prod": "Planned change",
    SOAK: "bundle.upstreamSoakMinutes",
    "/bundles": "only these",
    "/graphs": "what each Bundle was translated to",
    f"/yaml/pipeline/{NAMESPACE}/podinfo": "apiVersion",
    "/nowhere": "There is no such page.",
}
"""The addresses of all pages and drawers but those of one Bundle, with a text that each shows when it is complete."""

DIALOGS = (
    ("", "Pause …"),
    ("", "Promote …"),
    ("/environments/prod", "Merge …"),
    ("/environments/staging", "Roll back …"),
)
"""The drawer of the sample and the button that open each dialog."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bundles(local: Local, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return two Bundles of the sample: one was superseded before prod, where the other waits for its merge."""
    await make_sample(local, tmp_path_factory.mktemp("made") / "sample")
    async with local.client() as client:
        await client.apply(NAMESPACES, namespace(OTHER), field_manager="test")
    await apply(local, pipeline("https://git.example.com/acme/gitops.git", name="search", namespace=OTHER))
    first = await create(local, "6.12.0")
    await reaches(local, first, staging="Verified")
    second = await create(local, "6.13.0")
    await reaches(local, second, prod="WaitingForMerge")
    return [first, second]


Look = Callable[[Screen], Awaitable[list[str]]]


async def look_everywhere(screen: Screen, bundles: list[str], look: Look) -> list[str]:
    """Return all that `look` finds on each page and drawer, in each dialog and menu."""
    # A Pipeline that is not there, and a promotion that is under way already.
    screen.expected += ["status of 404", "status of 409"]
    first, second = bundles
    of_bundles = {
        f"{PODINFO}?bundle={second}&compare={first}": "CI run",
        f"/bundles/{NAMESPACE}/{second}": "Where the time went",
        f"/graphs/{NAMESPACE}/{second}": "Accepted",
    }
    found = []
    for path, text in (ADDRESSES | of_bundles).items():
        await screen.visit(path)
        await screen.sees(text)
        found += await look(screen)
    found += await look_at_dialogs(screen, look)
    found += await look_at_menus(screen, look)
    return [*found, *await look_at_tooltip(screen, look)]


async def look_at_dialogs(screen: Screen, look: Look) -> list[str]:
    found = []
    for drawer, button in DIALOGS:
        await screen.visit(f"{PODINFO}{drawer}")
        await screen.page.get_by_role("button", name=button).first.click()
        await screen.dialog().get_by_role("button", name=button.removesuffix(" …"), exact=True).wait_for()
        await screen.dialog().get_by_text("kardinal ").first.wait_for()
        found += await look(screen)
    return found


async def look_at_menus(screen: Screen, look: Look) -> list[str]:
    await screen.visit("/")
    await screen.page.get_by_role("button", name="all namespaces").click()
    await screen.page.get_by_role("menuitemradio", name=OTHER).wait_for()
    found = await look(screen)
    await screen.page.keyboard.press("Escape")
    await screen.page.locator(".bar").get_by_role("button").last.click()
    await screen.sees("Log out")
    found += await look(screen)
    await screen.page.keyboard.press("Escape")
    await screen.page.keyboard.press("?")
    await screen.dialog().get_by_text("this list").wait_for()
    return [*found, *await look(screen)]


async def look_at_tooltip(screen: Screen, look: Look) -> list[str]:
    await screen.visit(SOAK)
    await screen.page.locator("time[tabindex]").filter(visible=True).first.focus()
    await screen.page.get_by_role("tooltip").wait_for()
    # A tooltip is drawn outside of all landmarks; it belongs to what it describes.
    return [each for each in await look(screen) if ": region: " not in each]


@pytest.mark.long_story
async def test_no_page_has_a_violation_in_light_or_dark(screen: Screen, bundles: list[str]) -> None:
    found = await look_everywhere(screen, bundles, Screen.violations)
    assert not found, "\n".join(found)


async def test_nothing_is_wider_than_a_telephone(screen: Screen, bundles: list[str]) -> None:
    await screen.page.set_viewport_size(NARROW)
    found = await look_everywhere(screen, bundles, Screen.overflow)
    await screen.visit(PODINFO)
    await screen.page.locator(".dag-list").get_by_text("staging-soak").click()
    await screen.sees("bundle.upstreamSoakMinutes")
    assert await screen.page.locator(".react-flow").count() == 0
    await screen.page.set_viewport_size(WIDE)
    assert not found, "\n".join(found)


async def test_everything_is_reached_by_keyboard(screen: Screen, bundles: list[str]) -> None:
    press = screen.page.keyboard.press
    await screen.visit("/")
    await screen.sees("podinfo")
    await press("/")
    await screen.page.keyboard.type("podinfo")
    await screen.page.wait_for_url("**/ui/?q=podinfo")
    await press("Escape")
    await screen.page.wait_for_url("**/ui/")
    await press("Escape")
    assert [await focused_by(screen, key) for key in "jjk"] == ["podinfo", "search", "podinfo"]
    await press("Enter")
    await screen.page.wait_for_url(f"**{PODINFO}")

    await screen.node("dev").get_by_role("link").focus()
    assert "staging" in await focused_by(screen, "ArrowRight")
    one = await focused_by(screen, "ArrowRight")
    other = await focused_by(screen, "ArrowUp" if "not-on" in one else "ArrowDown")
    assert "staging-soak" in one + other
    assert "not-on" in one + other
    assert "prod" in await focused_by(screen, "ArrowRight")
    await press("Enter")
    await screen.page.wait_for_url(f"**{PODINFO}/environments/prod")
    await screen.sees("Planned change")
    await press("Escape")
    await screen.page.wait_for_url(f"**{PODINFO}")

    await press("?")
    await screen.dialog().get_by_text("this list").wait_for()
    await press("Escape")
    await screen.dialog().wait_for(state="detached")
    for key, address in {"b": "bundles", "g": "graphs", "p": ""}.items():
        await press("g")
        await press(key)
        await screen.page.wait_for_url(f"**/ui/{address}")


async def focused_by(screen: Screen, key: str) -> str:
    """Press a key and return the text of what has the focus then."""
    await screen.page.keyboard.press(key)
    return str(await screen.page.evaluate("document.activeElement.textContent"))


async def test_filters_and_links_survive_a_reload(screen: Screen, bundles: list[str]) -> None:
    page = screen.page
    await screen.visit("/")
    await page.get_by_role("button", name="wait for a person").click()
    await page.wait_for_url("**/ui/?need=person")
    await page.get_by_role("article").filter(has_text="podinfo").wait_for()
    assert await page.get_by_role("article").count() == 1
    await page.get_by_role("button", name="all namespaces").click()
    await page.get_by_role("menuitemradio", name=OTHER).click()
    await page.reload()
    await screen.sees("No Pipeline is among those that are “wait for a person”")
    await page.get_by_role("button", name="Show all").click()
    await page.get_by_role("button", name="as matrix of versions").click()
    await page.reload()
    await page.get_by_role("table").get_by_role("link", name="search").wait_for()
    assert page.url.endswith(f"/ui/?namespace={OTHER}&view=matrix")

    first, second = bundles
    await screen.visit(PODINFO)
    await page.get_by_role("button", name="6.12.0").first.click()
    await page.wait_for_url(f"**{PODINFO}?bundle={first}")
    await screen.node("staging").click()
    await page.wait_for_url(f"**{PODINFO}/environments/staging?bundle={first}")
    await page.reload()
    await page.get_by_role("complementary", name="Environment staging").get_by_text(f"Bundle {first}").wait_for()
    await page.go_back()
    await page.get_by_role("complementary").wait_for(state="detached")
    await page.get_by_role("button", name="Compare 6.13.0 with the selected Bundle").click()
    await page.wait_for_url(f"**{PODINFO}?bundle={first}&compare={second}")
    await page.reload()
    await page.get_by_role("region", name="Comparison of two Bundles").wait_for()
