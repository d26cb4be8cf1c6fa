"""A promotion into a repository on this machine that has hooks."""

from __future__ import annotations

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import PIPELINE, PROMOTION_STEP
from tests.support.names import DEV
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.world import World


def _protect(repository: GitRepository) -> None:
    hook = repository.path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'main is protected' >&2\nexit 1\n")
    hook.chmod(0o755)


async def test_promotion_fails_with_the_remedy_and_the_pipeline_says_so_before(
    world: World, repository: GitRepository
) -> None:
    _protect(repository)
    head = repository.head()
    await start_controller(world)
    await world.apply(pipeline(repository, environments=[DEV]))
    ready = await world.wait_for(PIPELINE, "my-app", lambda obj: bool(_readiness(obj)))
    assert "hooks" in _readiness(ready)
    assert "pre-receive" in _readiness(ready)
    await world.apply(bundle("my-app-1"))
    step = await world.wait_for(
        PROMOTION_STEP, f"my-app-1-{DEV}", lambda obj: obj.get("status", {}).get("state") == "Failed"
    )
    assert "--allow-bypassing-hooks" in step["status"]["message"]
    assert repository.head() == head


async def test_one_that_may_bypass_hooks_lands(world: World, repository: GitRepository) -> None:
    _protect(repository)
    await start_controller(world, allow_bypassing_hooks=True)
    await world.apply(pipeline(repository, environments=[DEV]), bundle("my-app-1"))
    await world.until(lambda: repository.promotions(DEV))


def _readiness(pipeline: JsonObject) -> str:
    """Return what RepositoryReady says; empty until it says something."""
    conditions = pipeline.get("status", {}).get("conditions", ())
    return "".join(each["message"] for each in conditions if each["type"] == "RepositoryReady")
