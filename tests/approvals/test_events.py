"""Events of a Bundle tell of its approvals, and of those that are revoked."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.promotion.kinds import APPROVAL, BUNDLE
from tests.approvals.conftest import GATE, Desk, approval, user_of
from tests.support.names import DEV, TEAM
from tests.support.programs import start_controller


async def notes(desk: Desk, reason: str) -> list[tuple[str, str]]:
    """Return the Bundle and the note of each Event with a reason."""
    await desk.world.settle()
    found = await desk.world.events(reason)
    return [(event["regarding"]["name"], event["note"]) for event in found]


async def test_approval_and_its_end_are_told(desk: Desk) -> None:
    status, made = await desk.post(await desk.approver(), reason="looks good")
    assert status == 201, made
    await desk.opened()
    where = f"at gate {GATE} before {DEV}"
    assert await notes(desk, "Approved") == [("app-1", f"{user_of('dana')} approves {where}: looks good")]
    await desk.world.client.delete(APPROVAL, made["name"], TEAM)
    await desk.closed()
    assert await notes(desk, "ApprovalRevoked") == [("app-1", f"the approval of {user_of('dana')} {where} is revoked")]


async def test_approval_that_does_not_count_is_not_told(desk: Desk) -> None:
    await desk.world.apply(approval("forged", desk.bundle, via="controller"))
    await desk.stays_closed()
    assert await notes(desk, "Approved") == []
    await desk.world.client.delete(APPROVAL, "forged", TEAM)
    assert await notes(desk, "ApprovalRevoked") == []


async def test_end_of_a_bundle_revokes_nothing(desk: Desk) -> None:
    await desk.post(await desk.approver())
    assert len(await notes(desk, "Approved")) == 1
    await desk.world.delete(BUNDLE, "app-1")

    async def gone() -> bool:
        return not await desk.approvals()

    await desk.world.until(gone)
    assert await notes(desk, "ApprovalRevoked") == []


@pytest.mark.local_only("the age of an Approval is by the clock of the server, which no test moves")
async def test_start_of_the_controller_does_not_tell_again(desk: Desk) -> None:
    await desk.post(await desk.approver())
    assert len(await notes(desk, "Approved")) == 1
    [before] = await desk.world.events("Approved")
    await desk.world.stop(desk.controller)
    await desk.world.live(timedelta(minutes=2))
    await start_controller(desk.world, standalone=False)
    await desk.world.settle()
    assert await desk.world.events("Approved") == [before]
