"""The button *Approve* of the page does what `kardinal approve` does, as the viewer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kardinal.kube import Client, load_connection
from tests.approvals.conftest import GATE, Desk, user_of
from tests.support.names import DEV, POLICIES, TEAM
from tests.support.people import people_of
from tests.ui.test_actions import Buttons, buttons_of

APPROVED: dict[str, Any] = {"bundle": "app-1", "environment": DEV, "gate": GATE}


@asynccontextmanager
async def buttons_of_dana(desk: Desk, *, approver: bool, approvals: str | None) -> AsyncIterator[Buttons]:
    """Return the buttons of an account that promotes in the team and, if `approver`, approves at gates of the org."""
    home = desk.world.new_directory("home")
    home.mkdir()
    user = user_of("dana")
    async with people_of(desk.world) as people:
        kubeconfig = await people.kubeconfig_of_account("dana", home)
        await people.bind(user, "kardinal-promoter")
        await people.until_allowed(user, ("create", "approvals.kardinal.io"), ("get", "graphs.experimental.kro.run"))
        if approver:
            await people.bind(user, "kardinal-approver", namespace=POLICIES)
            await people.until_allowed(user, ("approve", "policygates.kardinal.io", "signoff"), namespace=POLICIES)
    connection = await load_connection(kubeconfig)
    async with (
        Client(connection, user_agent="test") as client,
        buttons_of(desk.world, client, approvals=approvals) as buttons,
    ):
        yield buttons


async def test_button_has_the_controller_approve_as_the_viewer(desk: Desk) -> None:
    async with buttons_of_dana(desk, approver=True, approvals=desk.controller.api_url) as buttons:
        status, told = await buttons.press("approve", dry_run=True, **APPROVED)
        line = f"Bundle app-1 would be approved at gate {GATE} before {DEV}"
        assert (status, told["lines"]) == (200, [line]), told
        assert await desk.approvals() == []
        status, done = await buttons.press("approve", reason="looks\n good", **APPROVED)
        assert status == 200, done
    [stored] = await desk.approvals()
    assert done["lines"] == [
        f"Bundle app-1 is approved at gate {GATE} before {DEV}: Approval {stored['metadata']['name']}"
    ]
    spec = stored["spec"]
    assert (spec["approver"], spec["reason"], spec["via"]) == (user_of("dana"), "looks good", "controller")
    await desk.opened()


async def test_button_says_that_the_viewer_has_created_the_approval(desk: Desk) -> None:
    async with buttons_of_dana(desk, approver=True, approvals=None) as buttons:
        status, done = await buttons.press("approve", **APPROVED)
    assert status == 200, done
    assert "it counts if the controller runs with --approvals-by-admission" in done["lines"][1]
    [stored] = await desk.approvals()
    assert stored["spec"]["via"] == "admission"
    await desk.stays_closed()


async def test_button_approves_nothing_without_the_right(desk: Desk) -> None:
    async with buttons_of_dana(desk, approver=False, approvals=desk.controller.api_url) as buttons:
        for dry_run in (True, False):
            status, refused = await buttons.press("approve", dry_run=dry_run, **APPROVED)
            assert (status, refused["message"]) == (403, f"you may not approve at gate {GATE}"), refused
            assert refused["command"] == f"kardinal approve app-1 --env {DEV} --gate {GATE} -n {TEAM}"
    assert await desk.approvals() == []
