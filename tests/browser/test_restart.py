"""Programs are killed and started again behind an open page, which heals without a reload."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser.sample import NAMESPACE, create, make_sample, reaches
from tests.browser.screen import Screen
from tests.resilience.processes import Local, Process, Shell

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.local_only("the page of `kardinal ui` beside `kardinal local up`"),
    pytest.mark.long_story,
    pytest.mark.timeout(300),
]


async def serve(shell: Shell, local: Local, *, port: int = 0) -> tuple[Process, str]:
    """Start `kardinal ui`; return its process and the link."""
    process = await shell.start("kardinal", "ui", "--no-browser", f"--port={port}", kubeconfig=local.kubeconfig)
    return process, await process.says("http://127.0.0.1:")


async def test_the_page_heals_after_the_api_server_and_its_own_server_were_killed(
    shell: Shell, local: Local, chromium: Any, tmp_path: Path
) -> None:
    await make_sample(local, tmp_path / "sample")
    server, link = await serve(shell, local)
    screen = await Screen.open(chromium)
    await screen.go(link)
    await screen.page.get_by_role("link", name="podinfo").click()
    await screen.sees("No Bundle has been created yet")

    await local.kill()
    await local.up()
    bundle = await create(local, "6.12.0")
    await reaches(local, bundle, prod="WaitingForMerge")
    await screen.node("prod").get_by_text("Waiting for merge").wait_for()
    await local.kardinal("pr", "merge", "1")
    await screen.node("prod").get_by_text("Verified").wait_for()

    # The session of a link ends with the program that printed it, and the page says how to go on.
    server.kill()
    await screen.sees("lost since")
    screen.expected += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "status of 401"]
    _, link = await serve(shell, local, port=urlsplit(link).port or 0)
    await screen.sees("Each link to this page works once")
    assert await screen.violations() == []
    await screen.go(link)
    await screen.page.get_by_role("link", name="podinfo").wait_for()
    await screen.visit(f"/pipelines/{NAMESPACE}/podinfo")
    for name in ("dev", "staging", "prod"):
        await screen.node(name).get_by_text("Verified").wait_for()
    screen.check_errors()
    await screen.close()
