"""A Bundle walks through the sample's Pipeline while a person watches the page, and merges by its button."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.browser.sample import create, make_sample
from tests.browser.screen import Screen
from tests.resilience.processes import Local

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.local_only("the page that `kardinal local up` serves"),
    pytest.mark.timeout(240),
]

VERSION = "6.12.0"


async def test_a_bundle_walks_while_the_page_is_open_and_is_merged_by_its_button(
    local: Local, screen: Screen, tmp_path: Path
) -> None:
    for tab, command in {"Bundles": "kardinal create bundle", "Graphs": "each Bundle gets one"}.items():
        await screen.page.get_by_role("link", name=tab, exact=True).click()
        await screen.sees(command)
    await screen.page.get_by_role("link", name="Pipelines", exact=True).click()
    await screen.sees("kardinal init")
    assert await screen.violations() == []
    await make_sample(local, tmp_path / "sample")
    await screen.sees("podinfo")
    await create(local, VERSION)

    # The overview tells that a person is needed, without a reload.
    await screen.sees("Waiting for merge")
    await screen.page.get_by_text("podinfo", exact=True).click()
    await screen.node("staging-soak").click()
    await screen.sees("bundle.upstreamSoakMinutes")
    await screen.node("prod").click()
    await screen.page.get_by_role("button", name="Merge …").click()
    dialog = screen.dialog().filter(has_text="kardinal pr merge 1")
    assert await screen.violations() == []
    await dialog.get_by_role("button", name="Merge", exact=True).click()
    await screen.node("prod").get_by_text("Verified").wait_for()

    # The picture in the end is that of the API.
    status = await local.kardinal("status", "podinfo")
    assert re.search(r"Verified +Verified +Verified", status)
