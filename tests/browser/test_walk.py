"""A Bundle walks through the sample's Pipeline while a person watches the page, and merges by its button."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.browser.sample import create, link_of, make_sample
from tests.browser.screen import Screen
from tests.resilience.processes import Local, Shell

pytestmark = [
    pytest.mark.local_only("the page that `kardinal local up` serves"),
    pytest.mark.timeout(240),
]

VERSION = "6.12.0"


async def test_a_bundle_walks_while_the_page_is_open_and_is_merged_by_its_button(
    shell: Shell, local: Local, screen: Screen, tmp_path: Path
) -> None:
    await screen.go(await link_of(local))
    await screen.sees("kardinal init")
    await screen.check_accessibility()
    await make_sample(shell, local, tmp_path / "sample")
    await screen.sees("podinfo")
    await create(shell, local, VERSION)

    # The overview tells that a person is needed, without a reload.
    await screen.sees("Waiting for merge")
    await screen.check_accessibility()
    await screen.page.get_by_text("podinfo", exact=True).click()
    node = screen.page.locator(".react-flow__node")
    await node.nth(4).wait_for()
    await node.filter(has_text="staging-soak").click()
    await screen.sees("bundle.upstreamSoakMinutes")
    await screen.check_accessibility()
    await node.filter(has_text="prod").click()
    await screen.page.get_by_role("button", name="Merge …").click()
    dialog = screen.page.get_by_role("dialog").filter(has_text="kardinal pr merge 1")
    await screen.check_accessibility()
    await dialog.get_by_role("button", name="Merge", exact=True).click()
    await node.filter(has_text="prod").get_by_text("Verified").wait_for()

    # The picture in the end is that of the API.
    status = await shell.run("kardinal", "status", "podinfo", kubeconfig=local.kubeconfig)
    assert re.search(r"Verified +Verified +Verified", status)
