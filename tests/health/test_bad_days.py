"""Tools on bad days: a controller that is down, a namesake elsewhere, an object that is deleted and made again."""

from __future__ import annotations

from datetime import timedelta

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.objects.conditions import find_condition
from kardinal.promotion.api import names
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_agent.health.argocd_application import APPLICATION
from tests.agent.promotion_steps import BUNDLE_NAME, create, promotion_step, reached, start_agent, state
from tests.health.served_tools import annotate, application, put, serve
from tests.support.names import DEV, STAGING, TEAM, of_run
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.repository import APPLICATION as APP
from tests.support.repository import GitRepository
from tests.support.world import World

OTHERS = of_run("other-project")
STEP = names.step_name(BUNDLE_NAME, DEV)
NAMED = {"type": "argocd", "argocd": {"name": APP, "namespace": TEAM}}


async def message_with(world: World, words: str) -> JsonObject:
    """Live until the message of the step has these words; returns its status."""
    step = await world.wait_for(
        PROMOTION_STEP,
        STEP,
        lambda step: words in ((step.get("status") or {}).get("message") or ""),
    )
    status: JsonObject = step["status"]
    return status


async def test_a_controller_that_is_down_is_told_by_when_it_moved_last(world: World, repository: GitRepository) -> None:
    """Argo CD leaves Synced and Healthy of the version before, and nothing says that it does not look any more."""
    await serve(world, APPLICATION)
    await put(world, APPLICATION, TEAM, **application(repository, repository.head()))
    await start_agent(world)
    await create(world, promotion_step(repository, health={**NAMED, "timeout": "2s"}))
    status = await reached(world, "Failed")
    assert status["message"].startswith("health-check: not healthy within 2s: waits for Application")
    assert status["message"].endswith("; nothing has moved since 2026-03-03T10:00:00Z")


async def test_an_application_of_the_same_name_in_another_namespace_proves_nothing(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION)
    await annotate(world, OTHERS, TEAM)
    await put(world, APPLICATION, TEAM, **application(repository, repository.head()))
    await start_agent(world)
    await create(world, promotion_step(repository, health=NAMED))
    commit = (await reached(world, "HealthChecking"))["commit"]
    await put(world, APPLICATION, OTHERS, **application(repository, commit))
    await world.live(timedelta(seconds=1))
    assert (await state(world))["state"] == "HealthChecking"
    await put(world, APPLICATION, TEAM, **application(repository, commit))
    assert (await reached(world, "Verified"))["message"].startswith(f"Application {TEAM}/{APP} ")


async def test_found_object_that_was_deleted_is_waited_for_and_must_be_the_same_again(
    world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION)
    await put(world, APPLICATION, TEAM, **application(repository))
    await start_agent(world)
    step = promotion_step(repository)
    step["spec"]["health"] = {"timeout": "10m"}
    await create(world, step)
    commit = (await reached(world, "HealthChecking"))["commit"]
    await world.client.delete(APPLICATION, APP, TEAM)
    await message_with(world, f"Application {TEAM}/{APP} to exist")
    await put(world, APPLICATION, TEAM, **application(repository, commit, path="environments/other"))
    await message_with(world, f"does not read environments/{DEV}")
    await put(world, APPLICATION, TEAM, **application(repository, commit))
    await reached(world, "Verified")


async def test_environment_verified_by_a_detected_object_needs_it(world: World, repository: GitRepository) -> None:
    """Unseen holds what follows: an object that speaks for something else must not be taken for health."""
    await serve(world, APPLICATION)
    await annotate(world, OTHERS, TEAM)
    await put(world, APPLICATION, OTHERS, **application(repository))
    await start_controller(world)
    dev = environment(DEV, health={"degradedAfter": "1s"})
    await world.apply(pipeline(repository, environments=[dev, environment(STAGING, approval="pr-review")]))
    await world.apply(bundle(BUNDLE_NAME))
    commit = (await reached(world, "HealthChecking"))["commit"]
    await put(world, APPLICATION, OTHERS, **application(repository, commit))
    found = (await reached(world, "Verified"))["health"]
    for change in ("namespace", "path", "status"):
        if change == "namespace":
            await annotate(world, OTHERS, None)
        elif change == "path":
            await put(world, APPLICATION, OTHERS, **application(repository, commit, path="environments/other"))
        else:
            await note(world, None)
            await put(world, APPLICATION, OTHERS, **application(repository, commit, health="Progressing"))
        unseen = await world.wait_for(PROMOTION_STEP, STEP, lambda step: step["status"].get("healthy") is False)
        condition = find_condition(unseen["status"], "Degraded") or {}
        assert (condition["status"], condition["reason"]) == ("Unknown", "CannotBeSeen"), change
        await note(world, found)
        await annotate(world, OTHERS, TEAM)
        await put(world, APPLICATION, OTHERS, **application(repository, commit))
        await world.wait_for(PROMOTION_STEP, STEP, lambda step: step["status"].get("healthy") is True)


async def note(world: World, health: JsonObject | None) -> None:
    """Write what was found, as an administrator may."""
    body = {"status": {"health": health}}
    await world.client.patch(PROMOTION_STEP, STEP, TEAM, body, kind=PatchType.MERGE, subresource="status")
