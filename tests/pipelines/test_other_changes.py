"""The status of a Pipeline says which environments changes may reach that no Bundle brings."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import PIPELINE, POLICY_GATE
from kardinal_controller.program import ControlPlane
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import gate, pipeline
from tests.support.world import World

REPOSITORY = "https://git.example.com/acme/gitops.git"
DECIDES_ABOUT_BUNDLES = "it decides about Bundles; bring the change by a promotion"


def asking() -> JsonObject:
    made = pipeline(REPOSITORY, provider="gitea")
    made["spec"]["git"]["statusOnOthers"] = True
    return made


async def held(world: World) -> dict[str, str]:
    await world.settle()
    found = await world.wait_for(PIPELINE, "my-app", lambda one: "otherChanges" in (one.get("status") or {}))
    answer = found["status"]["otherChanges"]
    assert answer["observedGeneration"] == found["metadata"]["generation"]
    return {one["environment"]: one["reason"] for one in answer.get("held", ())}


async def test_gates_of_time_and_place_decide_and_those_about_bundles_hold(
    world: World, controller: ControlPlane
) -> None:
    await world.apply(
        gate("always", "true"),
        gate("soak", "bundle.upstreamSoakMinutes >= 30", namespace=POLICIES),
        gate("unset", "!has(bundle.labels) || !has(previousBundle.version)", applies_to=STAGING),
        gate("place", 'environment.approval == "pr-review"', applies_to=DEV, namespace=POLICIES),
        gate("skip", "false", labels={"kardinal.io/type": "skip-permission"}, namespace=POLICIES),
        asking(),
    )
    assert await held(world) == {
        PROD: f"gate soak: {DECIDES_ABOUT_BUNDLES}",
        # Nothing of a Bundle is there, which must not open what asks for it.
        STAGING: f"gate unset: {DECIDES_ABOUT_BUNDLES}",
        DEV: "gate place: environment.approval = auto",
    }
    await world.delete(POLICY_GATE, "unset")
    await world.delete(POLICY_GATE, "place", namespace=POLICIES)
    assert set(await held(world)) == {PROD}


async def test_a_pause_holds_every_environment_until_it_ends(world: World, controller: ControlPlane) -> None:
    await world.apply(asking())
    assert await held(world) == {}
    labels = {"kardinal.io/type": "freeze"}
    freeze = gate("my-app-freeze", "false", applies_to=None, labels=labels, message="incident 7")
    await world.apply(freeze)
    found = await held(world)
    assert set(found) == {DEV, STAGING, PROD}
    assert set(found.values()) == {"held by a freeze of my-app: incident 7"}
    await world.delete(POLICY_GATE, "my-app-freeze")
    assert await held(world) == {}


@pytest.mark.virtual_time("a gate that time opens")
async def test_time_is_told_beforehand_and_written_only_when_it_changes_the_answer(
    world: World, controller: ControlPlane
) -> None:
    hour = world.clock.now().hour
    await world.apply(gate("late", f"schedule.hour >= {hour + 2}", namespace=POLICIES), asking())
    assert set(await held(world)) == {PROD}
    status = (await world.get(PIPELINE, "my-app"))["status"]["otherChanges"]
    assert status["until"].startswith(f"{world.clock.now():%Y-%m-%d}T{hour + 2:02}:00:00")
    writes = world.audit.writes
    # The reason shows another hour by then, and nothing that matters has changed.
    await world.live(timedelta(hours=1))
    assert world.audit.writes == writes
    await world.live(timedelta(hours=1))
    assert await held(world) == {}


async def test_a_pipeline_that_asks_no_more_loses_the_answer_and_one_that_never_asked_has_none(
    world: World, controller: ControlPlane
) -> None:
    await world.apply(asking(), pipeline(REPOSITORY, name="quiet", provider="gitea"))
    await held(world)
    assert "otherChanges" not in (await world.get(PIPELINE, "quiet"))["status"]
    await world.apply(pipeline(REPOSITORY, provider="gitea") | {})
    changed = await world.get(PIPELINE, "my-app")
    if changed["spec"]["git"].get("statusOnOthers"):
        body = {"spec": {"git": {"statusOnOthers": False}}}
        await world.client.patch(PIPELINE, "my-app", TEAM, body)
    await world.wait_for(PIPELINE, "my-app", lambda one: "otherChanges" not in one["status"])


async def test_a_provider_without_statuses_is_refused_by_name(world: World, controller: ControlPlane) -> None:
    made = asking()
    made["spec"]["git"]["provider"] = "git"
    await world.apply(made)
    found = await world.wait_for(PIPELINE, "my-app", lambda one: bool((one.get("status") or {}).get("conditions")))
    ready = next(one for one in found["status"]["conditions"] if one["type"] == "Ready")
    assert ready["status"] == "False"
    assert "spec.git.statusOnOthers" in ready["message"]
    assert "provider git shows no commit statuses" in ready["message"]
