"""People approve with a token of the API server: the controller checks their right, and signs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.kube import Invalid, PatchType
from kardinal.objects.conditions import format_time
from kardinal.promotion.kinds import APPROVAL, BUNDLE, POLICY_GATE
from kardinal_controller.approvals.posts import APPROVALS_PER_MINUTE, FRESH, REVIEWS_PER_MINUTE
from tests.approvals.conftest import GATE, INSTANCE, SIGNED_OFF, Desk, closed, opened, user_of
from tests.support.names import DEV, POLICIES, STAGING, TEAM
from tests.support.objects import bundle, gate
from tests.support.secret_values import secret_value
from tests.ui.viewers import token_of

STRANGER = secret_value("stranger")


async def test_approval_opens_the_gate_and_says_who(desk: Desk) -> None:
    status, body = await desk.post(await desk.approver(), reason="tested by hand")

    assert (status, body["namespace"]) == (201, TEAM)
    found = await desk.opened()
    assert found["status"]["reason"] == f"approvals = {user_of('dana')}"
    stored = await desk.world.get(APPROVAL, body["name"])
    assert stored["spec"] == {
        "bundle": "app-1",
        "uid": desk.bundle["metadata"]["uid"],
        "environment": DEV,
        "gate": GATE,
        "approver": user_of("dana"),
        "reason": "tested by hand",
        "via": "controller",
    }
    assert [owner["uid"] for owner in stored["metadata"]["ownerReferences"]] == [desk.bundle["metadata"]["uid"]]


async def test_deletion_revokes(desk: Desk) -> None:
    _, body = await desk.post(await desk.approver())
    await desk.opened()

    await desk.world.delete(APPROVAL, body["name"])

    assert (await desk.closed())["status"]["reason"] == "approvals = none"


@pytest.mark.virtual_time("an approval that expires")
async def test_approval_ends_at_its_second(desk: Desk) -> None:
    world = desk.world
    ends = format_time((world.clock.now() + timedelta(seconds=3)).replace(microsecond=0))
    status, _ = await desk.post(await desk.approver(), expiresAt=ends)
    assert status == 201

    assert (await desk.opened())["status"]["nextTransitionAt"] == ends
    shut = await world.wait_for(POLICY_GATE, INSTANCE, lambda obj: not opened(obj), within=timedelta(seconds=10))
    assert shut["status"]["lastEvaluatedAt"] >= ends


async def test_approvals_of_one_person_count_once(desk: Desk) -> None:
    await desk.world.apply(gate("signoff", "approvals.size() >= 2", applies_to=DEV, namespace=POLICIES))
    dana = await desk.approver()
    for _ in range(2):
        assert (await desk.post(dana))[0] == 201
    await desk.stays_closed()

    assert (await desk.post(await desk.approver("lee")))[0] == 201
    assert (await desk.opened())["status"]["reason"] == f"approvals = {user_of('dana')}, {user_of('lee')}"


async def test_gate_of_the_team_is_named_without_its_namespace(desk: Desk) -> None:
    await desk.world.apply(gate("own", SIGNED_OFF, applies_to=DEV))
    await desk.world.settle()
    await desk.world.apply(bundle("app-2"))
    await desk.closed(f"app-2-{DEV}-own")

    status, _ = await desk.post(await desk.approver(namespace=TEAM), bundle="app-2", gate="own")

    assert status == 201
    await desk.opened(f"app-2-{DEV}-own")


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"bundle": None}, "bundle"),
        ({"gate": "Sign Off"}, "gate"),
        ({"gate": "a/b/c"}, "gate"),
        ({"environment": None}, "environment"),
        ({"reason": "a\x1b[31mb"}, "reason"),
        ({"reason": "a\nb"}, "reason"),
        ({"reason": "x" * 1025}, "reason"),
        ({"expiresAt": "soon"}, "expiresAt"),
        ({"approver": "lee"}, "approver"),
        ({"uid": "0"}, "uid"),
    ],
)
async def test_wrong_field_is_named(desk: Desk, fields: dict[str, Any], path: str) -> None:
    status, body = await desk.post(await desk.approver(), **fields)
    assert (status, [error["field"] for error in body["errors"]]) == (422, [path])
    assert not await desk.approvals()


async def test_time_that_is_over_is_refused(desk: Desk) -> None:
    status, body = await desk.post(await desk.approver(), expiresAt=format_time(desk.world.clock.now()))
    assert (status, body["detail"]) == (422, "expiresAt is not in the future")


@pytest.mark.parametrize(
    "fields", [{"bundle": "app-9"}, {"namespace": "elsewhere"}, {"environment": "nowhere"}, {"gate": f"{POLICIES}/no"}]
)
async def test_existence_is_told_to_approvers_alone(desk: Desk, fields: dict[str, Any]) -> None:
    dana = await desk.approver()
    viewer = await token_of(desk.world, "viewer")

    assert (await desk.post(dana, **fields))[0] == 404
    told, without = [(await desk.post(viewer, **each))[1] for each in (fields, {})]
    assert (told["status"], without["status"]) == (403, 403)
    assert "may not approve" in told["detail"]
    assert (await desk.post(None, **fields))[0] == 401
    assert (await desk.post(STRANGER, **fields))[1] == (await desk.post(STRANGER))[1]


async def test_right_is_for_the_named_gate_alone(desk: Desk) -> None:
    """The verb on a gate of the team's own namespace, or on another gate, gives nothing at this one."""
    world = desk.world
    await world.apply(gate("signoff", "true", applies_to=DEV))
    token = await desk.approver("mallory", namespace=TEAM)

    status, body = await desk.post(token)

    assert (status, body["title"]) == (403, "Forbidden")
    assert not await desk.approvals()
    await desk.stays_closed()


@pytest.mark.parametrize("token", ["", "a b", "\u00e9", STRANGER])
async def test_token_that_is_none_is_refused(desk: Desk, token: str) -> None:
    status, body = await desk.post(token)
    assert (status, body["title"]) == (401, "Unauthorized")


async def test_failed_attempts_are_limited_by_address(desk: Desk) -> None:
    answers = [(await desk.post(f"{STRANGER}{number}", data=b"x"))[0] for number in range(31)]
    assert answers == [401] * 30 + [429]


async def test_strangers_do_not_keep_an_approver_from_a_review(desk: Desk) -> None:
    dana = await desk.approver()
    lee = await desk.approver("lee")
    assert (await desk.post(dana))[0] == 201
    for number in range(REVIEWS_PER_MINUTE):
        await desk.post(f"{STRANGER}{number}", data=b"x")
    await desk.world.live(timedelta(seconds=FRESH + 1))

    assert (await desk.post(lee))[1]["detail"].startswith("too many tokens to review")
    assert (await desk.post(dana))[0] == 201


async def test_approvals_of_a_bundle_are_limited(desk: Desk) -> None:
    dana = await desk.approver()
    answers = [(await desk.post(dana))[0] for _ in range(APPROVALS_PER_MINUTE)]
    assert set(answers) == {201}
    status, refused = await desk.post(dana)
    assert (status, refused["detail"].startswith("too many approvals of Bundle app-1; try again in ")) == (429, True)
    await desk.world.apply(bundle("app-2", tag="2.0.0"))
    await desk.world.wait_for(POLICY_GATE, f"app-2-{DEV}-signoff", closed)
    assert (await desk.post(dana, bundle="app-2"))[0] == 201


async def test_large_body_is_refused_and_not_read_before_the_token(desk: Desk) -> None:
    assert (await desk.post(STRANGER, data=b"x" * (1 << 21)))[0] == 401
    assert (await desk.post(await desk.approver(), data=b"x" * (1 << 21)))[0] == 413
    nested = b'{"reason":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    assert (await desk.post(await desk.approver("lee"), data=nested))[0] == 422


async def test_spec_cannot_be_changed(desk: Desk) -> None:
    _, body = await desk.post(await desk.approver())
    for change in ({"approver": "lee"}, {"environment": STAGING}, {"expiresAt": None, "reason": "other"}):
        with pytest.raises(Invalid, match="does not change"):
            await desk.world.client.patch(APPROVAL, body["name"], TEAM, {"spec": change}, kind=PatchType.MERGE)


async def test_later_bundle_of_the_same_name_is_not_approved(desk: Desk) -> None:
    world = desk.world
    assert (await desk.post(await desk.approver()))[0] == 201
    await desk.opened()
    await world.delete(BUNDLE, "app-1")

    async def is_gone() -> bool:
        return await world.find(BUNDLE, "app-1") is None and await world.find(POLICY_GATE, INSTANCE) is None

    await world.until(is_gone)
    await world.apply(bundle("app-1"))

    assert (await desk.closed())["status"]["reason"] == "approvals = none"
