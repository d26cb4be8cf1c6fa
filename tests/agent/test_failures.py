"""A failure that may pass is retried ever more rarely and shown; any other ends the promotion with field and remedy."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import PROMOTION_STEP
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, put, reached, start_agent, state
from tests.support.clock import VirtualClock
from tests.support.names import DEV
from tests.support.objects import bundle
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

STEP = f"{BUNDLE_NAME}-{DEV}"
WRITES = ("create", "update", "patch", "delete")


async def failed(world: World, made: JsonObject, **artifacts: Any) -> tuple[str, str]:
    """Return the reason and message of a PromotionStep that must fail."""
    await start_agent(world)
    await create(world, made, **artifacts)
    status = await reached(world, "Failed", within=timedelta(seconds=5))
    (condition,) = status["conditions"]
    assert condition["message"] == status["message"]
    assert "retry" not in status
    return condition["reason"], status["message"]


@pytest.mark.virtual_time("an hour of attempts")
async def test_attempts_come_ever_more_rarely_whatever_changes_meanwhile(world: World, tmp_path: Path) -> None:
    await start_agent(world)
    await create(world, promotion_step(f"file://{tmp_path}/missing.git"))
    await world.live(timedelta(minutes=3))
    attempts = (await state(world))["retry"]["attempts"]
    assert 6 <= attempts <= 9
    await world.live(timedelta(hours=1))
    now = (await state(world))["retry"]
    assert attempts + 9 <= now["attempts"] <= attempts + 15
    writes = world.audit.count(verbs=WRITES, resource="promotionsteps.kardinal.io", user=world.user("agent"))
    assert writes == now["attempts"]

    for message in ("a", "b", "c"):
        await put(
            world, promotion_step(f"file://{tmp_path}/missing.git", health={"timeout": "9m"}, labels={"x": message})
        )
        await world.settle()
    assert (await state(world))["retry"] == now


def _attempts(step: JsonObject) -> int | None:
    attempts: int | None = step.get("status", {}).get("retry", {}).get("attempts")
    return attempts


async def test_a_wait_survives_a_restart(world: World, tmp_path: Path) -> None:
    agent = await start_agent(world)
    await create(world, promotion_step(f"file://{tmp_path}/missing.git"))
    step = await world.wait_for(PROMOTION_STEP, STEP, lambda step: _attempts(step) == 3)
    before = step["status"]["retry"]
    await world.stop(agent)
    await start_agent(world)
    await world.settle()
    assert (await state(world))["retry"] == before
    due = datetime.fromisoformat(before["nextAt"]) - world.clock.now()
    await world.live(due + timedelta(seconds=1))
    assert (await state(world))["retry"]["attempts"] == before["attempts"] + 1


async def test_a_missing_overlay_is_named(world: World, repository: GitRepository) -> None:
    reason, message = await failed(world, promotion_step(repository, path="environments/nowhere"))
    assert reason == "EditError"
    assert message.startswith("kustomize-set-image: environments/nowhere: no such directory")
    assert repository.promotions(DEV) == []


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({f"environments/{DEV}/kustomization.yaml": "images: x\n"}, "kustomization.yaml: images: must be a list"),
        ({f"environments/{DEV}/kustomization.yaml": "images: {\n"}, "kustomization.yaml: invalid YAML: line 2"),
        (
            {f"environments/{DEV}/Kustomization": "{}"},
            f"environments/{DEV}: holds kustomization.yaml and Kustomization",
        ),
    ],
)
async def test_an_overlay_that_cannot_be_edited_is_named(
    world: World, repository: GitRepository, files: dict[str, str], words: str
) -> None:
    repository.commit(files)
    reason, message = await failed(world, promotion_step(repository))
    assert reason == "EditError"
    assert words in message


async def test_a_directory_without_a_kustomization_is_named(world: World, repository: GitRepository) -> None:
    reason, message = await failed(world, promotion_step(repository, path="environments"))
    assert (reason, message) == (
        "EditError",
        "kustomize-set-image: environments: holds no kustomization: "
        "none of kustomization.yaml, kustomization.yml, Kustomization",
    )


async def test_unsupported_fields_are_refused_and_never_ignored(world: World, repository: GitRepository) -> None:
    reason, message = await failed(world, promotion_step(repository, update={"strategy": "oci"}))
    assert reason == "InvalidSpec"
    assert message.startswith("update.strategy: 'oci' is not available")
    assert repository.promotions(DEV) == []


async def test_a_wrong_image_reference_is_named(world: World, repository: GitRepository) -> None:
    reason, message = await failed(world, promotion_step(repository), image=f"{IMAGE}:", tag="1")
    assert reason == "InvalidSpec"
    assert message.startswith(f"bundle {BUNDLE_NAME}: spec.artifacts.images[0]: image reference '{IMAGE}::1'")


async def test_a_local_repository_is_refused_where_it_is_not_allowed(world: World, repository: GitRepository) -> None:
    await start_agent(world, allow_local_repositories=False)
    await create(world, promotion_step(repository))
    status = await reached(world, "Failed")
    assert status["conditions"][0]["reason"] == "LocalRepositoryRefused"
    assert "git.url" in status["message"]
    assert "--allow-local-repositories" in status["message"]


async def test_a_promotion_step_that_no_graph_made_is_not_executed(world: World, repository: GitRepository) -> None:
    await deploy(world)
    await world.apply(bundle(BUNDLE_NAME), promotion_step(repository))
    await start_agent(world)
    await world.live(timedelta(seconds=1))
    assert await state(world) == {}
    await world.live(timedelta(seconds=2))
    status = await state(world)
    assert (status["state"], status["message"]) == ("Pending", "not executed: no Graph controls it")
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [("NotOwned", "True")]
    assert len(await world.events("NotOwned")) == 1
    assert repository.promotions(DEV) == []

    await put(world, promotion_step(repository))
    status = await reached(world, "Verified", within=timedelta(0))
    assert ("NotOwned", "False") in [(each["type"], each["status"]) for each in status["conditions"]]


@pytest.mark.virtual_time("turns the clock back")
async def test_a_promotion_step_is_pending_though_the_clock_of_its_agent_is_behind(
    world: World, repository: GitRepository, clock: VirtualClock
) -> None:
    await put(world, promotion_step(repository, upstreamVerified="Promoting"))
    clock.turn_to(clock.now() - timedelta(hours=1))
    await start_agent(world)
    await reached(world, "Pending", within=timedelta(seconds=3))


@pytest.mark.virtual_time("looks at the timers")
async def test_a_deleted_promotion_step_is_forgotten(
    world: World, repository: GitRepository, clock: VirtualClock
) -> None:
    agent = await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    await world.delete(PROMOTION_STEP, STEP)
    await world.settle()
    watching = [timer for timer in clock.timers if timer.deadline < clock.monotonic() + 60]
    assert watching == []
    assert agent.manager.idle
