"""Attacks on rollbacks: they go past environments, so what they bring must have been proven, and only there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from kardinal.kube import Invalid
from kardinal.objects import GRAPH, SECRET, JsonObject
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.policy.hold_gate import hold_gate
from kardinal_controller.program import ControlPlane
from tests.bundles.reading import REPOSITORY, condition, patch, phase
from tests.bundles.rollbacks import identity, rollback
from tests.bundles.scripted_agent import ScriptedAgent, agent, controller
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import DEV, PROD, STAGING, TEAM
from tests.support.objects import bundle, pipeline
from tests.support.people import people_of
from tests.support.webhook import Ci, body_of, webhook_secret
from tests.support.world import World

__all__ = ["agent", "controller"]

EVIL = {"artifacts": {"images": [{"name": "app", "reference": "ghcr.io/acme/my-app:evil"}]}}


@pytest.fixture
async def proven(world: World, controller: ControlPlane, agent: ScriptedAgent) -> tuple[JsonObject, JsonObject]:
    """Return two Bundles, of which the first was Verified in dev and staging, and the second in dev."""
    await world.apply(pipeline(REPOSITORY), bundle("app-1", tag="1.0.0", intent={"target": STAGING}))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    before = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.apply(bundle("app-2", tag="2.0.0", intent={"target": DEV}))
    await agent.verify(f"app-2-{DEV}")
    return before, await world.wait_for(BUNDLE, "app-2", phase("Verified"))


@pytest.fixture
async def ci(world: World, controller: ControlPlane) -> AsyncIterator[Ci]:
    await world.client.create(SECRET, webhook_secret())
    async with aiohttp.ClientSession() as session:
        yield Ci(controller.api_url, session, world.clock)


FORGED: dict[str, tuple[tuple[str, ...], JsonObject, str, str]] = {
    "other artifacts": ((STAGING,), EVIL, "OtherArtifacts", "are not those of Bundle app-1"),
    "another type": ((STAGING,), {"type": "mixed"}, "OtherArtifacts", "are not those of Bundle app-1"),
    "an environment in which it was never proven": ((PROD,), {}, "NeverVerified", f"never Verified in {PROD}"),
    "one of several environments": ((STAGING, PROD), {}, "NeverVerified", f"never Verified in {PROD}"),
    "an unknown environment": (("nowhere",), {}, "NeverVerified", "never Verified in nowhere"),
    "a Bundle that is gone": (
        (STAGING,),
        {"rollback": {"restores": {"name": "app-9", "uid": "x"}}},
        "NothingToRestore",
        "there is no Bundle app-9",
    ),
    "the name of a Bundle with another uid": (
        (STAGING,),
        {"rollback": {"restores": {"name": "app-1", "uid": "x"}}},
        "NothingToRestore",
        "there is no Bundle app-1 with uid x",
    ),
    "a way beyond its environments": (
        (STAGING,),
        {"intent": {"target": PROD}},
        "RollbackElsewhere",
        "to no other",
    ),
    "a skip": ((STAGING,), {"intent": {"skip": [DEV]}}, "RollbackElsewhere", "to no other"),
}


@pytest.mark.timeout(120)
async def test_a_forged_rollback_is_refused_and_goes_nowhere(
    world: World, proven: tuple[JsonObject, JsonObject]
) -> None:
    before, after = proven
    for number, (environments, fields, reason, message) in enumerate(FORGED.values()):
        name = f"forged-{number}"
        await world.apply(rollback(name, *environments, of=after, restores=before, **dict(fields)))
        refused = await world.wait_for(BUNDLE, name, phase("Failed"))
        invalid = condition(refused, "InvalidSpec")
        assert invalid is not None
        assert (invalid["reason"], message in invalid["message"]) == (reason, True), invalid["message"]
        assert "; " in invalid["message"], "says what to do"
    assert sorted(each["metadata"]["name"] for each in await world.objects(GRAPH)) == ["app-1", "app-2"]

    # A Bundle of another Pipeline is not restored.
    await world.apply(pipeline(REPOSITORY, name="other"))
    forged = rollback("of-another", STAGING, of=after, restores=before)
    forged["metadata"]["labels"]["kardinal.io/pipeline"] = "other"
    await world.apply(forged)
    refused = await world.wait_for(BUNDLE, "of-another", phase("Failed"))
    assert "belongs to Pipeline my-app, and not to other" in str(condition(refused, "InvalidSpec"))

    # Proof that is written by the author counts for nothing.
    moment = "2026-01-01T00:00:00Z"
    proof = {"pipeline": "my-app", "environments": {PROD: {"state": "Verified", "verifiedAt": moment}}}
    await world.apply({**bundle("evil", tag="evil", intent={"target": DEV}), "status": proof})
    evil = await world.wait_for(BUNDLE, "evil", phase("Promoting"))
    await world.apply(rollback("proven", PROD, of=after, restores=evil))
    refused = await world.wait_for(BUNDLE, "proven", phase("Failed"))
    assert f"never Verified in {PROD}" in str(condition(refused, "InvalidSpec"))


CHANGES: dict[str, Any] = {
    "elsewhere": {"environments": [PROD]},
    "what it restores": {"restores": {"name": "app-2", "uid": "x"}},
    "emergency": {"emergency": True},
    "taken off": None,
}


async def test_a_rollback_never_changes_and_no_bundle_becomes_one(
    world: World, proven: tuple[JsonObject, JsonObject], ci: Ci
) -> None:
    """Neither by a patch nor by CI."""
    before, after = proven
    wanted = {"environments": [STAGING], "of": identity(after), "restores": identity(before), "emergency": True}
    answer = await ci.post(body_of(artifacts=before["spec"]["artifacts"], intent={"rollback": wanted}))
    assert answer.status == 422
    (error,) = answer.body["errors"]
    assert (error["field"], "kardinal rollback" in error["message"]) == ("intent.rollback", True)
    assert len(await world.objects(BUNDLE)) == 2

    await world.apply(rollback("back", STAGING, of=after, restores=before))
    for change in CHANGES.values():
        with pytest.raises(Invalid, match="rollback is immutable"):
            await patch(world, "back", {"spec": {"intent": {"rollback": change}}})
    wanted = {"environments": [DEV], "of": identity(after), "restores": identity(before)}
    with pytest.raises(Invalid, match="rollback is immutable"):
        await patch(world, "app-2", {"spec": {"intent": {"rollback": wanted}}})
    await world.wait_for(PROMOTION_STEP, f"back-{STAGING}", lambda _: True)


async def test_author_of_bundles_can_neither_hold_an_environment_nor_end_a_hold(world: World) -> None:
    hold = hold_gate("my-app", PROD, namespace=TEAM, bundle="app-1", message="rolled back")
    for document in documents_of("roles.yaml"):
        await world.client.apply(RESOURCES["ClusterRole"], document, field_manager="test", force=True)
    async with people_of(world) as people:
        await people.bind("dana", "kardinal-developer")
        await people.until_allowed("dana", ("create", "bundles.kardinal.io"))
        assert (await people["dana"].create(POLICY_GATE, hold)).status == 403
        await world.apply(hold)
        name = hold["metadata"]["name"]
        answer = await people["dana"].patch(POLICY_GATE, name, {"spec": {"exceptBundle": "app-2"}})
        assert answer.status == 403
        assert (await people["dana"].delete(POLICY_GATE, name)).status == 403
