"""Systems outside answer by requests that are signed as those of CI, with a token whose scope lists the answer."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kardinal.objects import SECRET, JsonObject
from kardinal.promotion.kinds import APPROVAL, POLICY_GATE
from tests.approvals.conftest import INSTANCE, Desk, opened
from tests.support.names import DEV, POLICIES, STAGING, TEAM, of_run
from tests.support.objects import gate
from tests.support.secret_values import secret_value
from tests.support.webhook import HMAC_KEY, TOKEN, Answer, Ci, token_entry, webhook_secret

CHANGE = secret_value("change-token")
CHANGE_KEY = secret_value("change-key")
PATH = f"/api/v1/namespaces/{TEAM}/approvals/change"


@pytest.fixture
async def change(desk: Desk) -> Ci:
    """Return the change management, whose answer the gate reads."""
    tokens = [
        token_entry("change", token=CHANGE, key=CHANGE_KEY, approvals=["change", "cab-*"]),
        token_entry("ci", token="ci-token", key="ci-key"),
    ]
    await desk.world.client.create(SECRET, webhook_secret(tokens_yaml=yaml.safe_dump(tokens), allowUnstamped="true"))
    await desk.world.apply(gate("signoff", 'externalApproval["change"].approved', applies_to=DEV, namespace=POLICIES))
    await desk.world.wait_for(
        POLICY_GATE, INSTANCE, lambda obj: "externalApproval" in obj.get("status", {}).get("reason", "")
    )
    return Ci(desk.controller.api_url, desk.session, desk.world.clock, token=CHANGE, key=CHANGE_KEY)


async def say(ci: Ci, *, path: str = PATH, signed: dict[str, Any] | None = None, **fields: Any) -> Answer:
    return await ci.post({"bundle": "app-1", "approved": True, **fields}, path=path, **(signed or {}))


async def test_answer_opens_the_gate(desk: Desk, change: Ci) -> None:
    answer = await say(change, environment=DEV, reason="CHG-17")

    assert answer.status == 201
    assert (await desk.opened())["status"]["reason"] == "externalApproval.change.approved = true"
    stored = await desk.world.get(APPROVAL, answer.body["name"])
    assert (stored["spec"]["approver"], stored["spec"]["reason"]) == ("token change", "CHG-17")
    assert stored["spec"]["external"]["name"] == "change"


async def test_later_answer_replaces_the_earlier(desk: Desk, change: Ci) -> None:
    await say(change, signed={"age": 60})
    await desk.opened()

    await say(change, approved=False)

    assert (await desk.closed())["status"]["reason"] == "externalApproval.change.approved = false"
    [left] = await desk.approvals()
    assert left["spec"]["external"]["approved"] is False


async def test_recorded_request_does_not_undo_a_later_answer(desk: Desk, change: Ci) -> None:
    """Sent again it is refused by nothing, and counts for nothing: the other was signed later."""
    body = {"bundle": "app-1", "approved": True}
    recorded = change.signed(body, path=PATH, age=60)
    await change.send(recorded)
    await desk.opened()
    refused = await say(change, approved=False)
    await desk.closed()

    assert (await change.send(recorded)).status == 201
    await desk.stays_closed()

    await desk.world.delete(APPROVAL, refused.body["name"])
    assert (await change.send(recorded)).status == 201
    await desk.stays_closed()
    assert not await desk.approvals()


async def test_recorded_request_is_not_one_for_another_name(desk: Desk, change: Ci) -> None:
    recorded = change.signed({"bundle": "app-1", "approved": True}, path=f"/api/v1/namespaces/{TEAM}/approvals/cab-1")
    assert (await change.send(recorded)).status == 201

    answer = await change.send(type(recorded)(PATH, recorded.headers, recorded.body))

    assert (answer.status, answer.body["title"]) == (409, "Conflict")
    await desk.stays_closed()


async def test_request_is_answered_once(desk: Desk, change: Ci) -> None:
    delivery = {"bundle": "app-1", "approved": True}
    first = await change.post(delivery, path=PATH, idempotency_key="CHG-17")
    again = await change.post(delivery, path=PATH, idempotency_key="CHG-17", age=1)
    other = await change.post({**delivery, "approved": False}, path=PATH, idempotency_key="CHG-17")

    assert [answer.status for answer in (first, again, other)] == [201, 201, 409]
    assert first.body == again.body
    assert len(await desk.approvals()) == 1


async def test_answer_for_another_environment_does_not_count(desk: Desk, change: Ci) -> None:
    assert (await say(change, environment=STAGING)).status == 201
    await desk.stays_closed()


async def test_token_answers_what_its_scope_lists(desk: Desk, change: Ci) -> None:
    for token, key in (("ci-token", "ci-key"), (TOKEN, HMAC_KEY)):
        ci = Ci(desk.controller.api_url, desk.session, desk.world.clock, token=token, key=key)
        assert (await say(ci)).status == 403, "also for a Bundle that does not exist"
        assert (await say(ci, bundle="app-9")).status == 403
    assert (await say(change, path=f"/api/v1/namespaces/{TEAM}/approvals/security")).status == 403
    assert (await say(change, path=f"/api/v1/namespaces/{TEAM}/approvals/cab-1")).status == 201
    await desk.stays_closed()


async def test_token_of_another_namespace_is_refused(desk: Desk, change: Ci) -> None:
    path = f"/api/v1/namespaces/{of_run('other')}/approvals/change"
    assert (await say(change, path=path)).status == 401


async def test_signature_has_a_time_and_covers_the_body(desk: Desk, change: Ci) -> None:
    """Also where the posts of Bundles need no time."""
    body = {"bundle": "app-1", "approved": False}
    unstamped = change.unstamped(body)
    assert (await change.send(type(unstamped)(PATH, unstamped.headers, unstamped.body))).status == 401
    delivery = change.signed(body, path=PATH)
    changed = type(delivery)(PATH, delivery.headers, delivery.body.replace(b"false", b"true "))
    assert (await change.send(changed)).status == 401
    assert (await say(change, signed={"age": 400})).status == 401
    assert (await say(change, signed={"key": "wrong"})).status == 401
    assert not await desk.approvals()


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"approved": "yes"}, "approved"),
        ({"approved": 1}, "approved"),
        ({"environment": "nowhere"}, "environment"),
        ({"reason": "a\x07"}, "reason"),
        ({"name": "change"}, "name"),
    ],
)
async def test_wrong_field_is_named(desk: Desk, change: Ci, fields: dict[str, Any], path: str) -> None:
    answer = await say(change, **fields)
    assert (answer.status, [error["field"] for error in answer.body["errors"]]) == (422, [path])


async def test_bundle_must_exist(desk: Desk, change: Ci) -> None:
    assert (await say(change, bundle="app-9")).status == 404


async def test_person_does_not_answer_for_a_system(desk: Desk, change: Ci) -> None:
    """An Approval that a person writes with every field of an answer is not signed."""
    answer = await say(change, approved=False)
    stored: JsonObject = await desk.world.get(APPROVAL, answer.body["name"])
    spec = {**stored["spec"], "external": {**stored["spec"]["external"], "approved": True}}
    copy = {**stored, "metadata": {"name": "copy", "namespace": TEAM}, "spec": spec}
    made = await desk.world.client.create(APPROVAL, copy)
    await desk.world.client.patch(
        APPROVAL, made["metadata"]["name"], TEAM, {"status": stored["status"]}, subresource="status"
    )

    found = await desk.stays_closed()
    assert not opened(found)
