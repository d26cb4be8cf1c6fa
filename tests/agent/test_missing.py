"""One rule for a repository, a branch and a Secret that do not exist: they are looked for again, which the status says.

Nothing but making them is needed: the promotion that waits goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, reached, start_agent, state
from tests.agent.sites import Site
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_controller
from tests.support.repository import GitRepository, create_repository, sample_files
from tests.support.world import World


async def missing(world: World, made: JsonObject) -> JsonObject:
    """Return the status of a promotion that lacks something, which it has looked for once."""
    await start_agent(world)
    await deploy(world)
    await create(world, made)
    await world.wait_for(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}", lambda obj: "retry" in obj.get("status", {}))
    status = await state(world)
    assert status["message"] == f"will be tried again: {status['retry']['lastError']}"
    assert status["state"] != "Failed"
    events = [event for event in await world.events("Retrying") if event["type"] == "Warning"]
    assert [event["note"] for event in events] == [status["retry"]["lastError"]]
    return status


async def test_a_repository_that_is_made_later_is_promoted_to(world: World, tmp_path: Path) -> None:
    path = tmp_path / "late.git"
    status = await missing(world, promotion_step(f"file://{path}"))
    assert status["retry"]["lastError"] == (
        f"git-clone: git.url: there is no repository at {path}. Create one: git init --bare {path}"
    )
    create_repository(path, sample_files([DEV]))
    assert "retry" not in await reached(world, "Verified")


async def test_a_branch_that_is_made_later_is_promoted_to(world: World, repository: GitRepository) -> None:
    made = promotion_step(repository)
    made["spec"]["git"]["branch"] = "release"
    status = await missing(world, made)
    assert status["retry"]["lastError"] == (
        f"git-clone: git.branch: {repository.url} has no branch release. "
        "Create it with a first commit, or name another branch"
    )
    repository.git("branch", "release", "main")
    assert "retry" not in await reached(world, "Verified")


async def test_a_secret_that_is_made_later_is_used(world: World, site: Site) -> None:
    status = await missing(world, hosted_step(site, approval="auto"))
    assert status["retry"]["lastError"] == (
        f"git-clone: git.secretRef: Secret {TEAM}/git does not exist. "
        "Create it in the agent's cluster with username and password, or token"
    )
    await world.apply(git_secret(site))
    assert "retry" not in await reached(world, "Verified")


async def test_the_bundle_says_what_is_missing_until_it_is_there(world: World, repository: GitRepository) -> None:
    await start_controller(world)
    made = pipeline(repository, environments=[DEV])
    made["spec"]["git"]["branch"] = "release"
    await world.apply(made, bundle("my-app-1"))

    def message(holds: Callable[[str], bool]) -> Callable[[JsonObject], bool]:
        return lambda obj: holds(obj.get("status", {}).get("environments", {}).get(DEV, {}).get("message") or "")

    await world.wait_for(BUNDLE, "my-app-1", message(lambda text: "has no branch release" in text))
    repository.git("branch", "release", "main")
    await world.wait_for(BUNDLE, "my-app-1", message(lambda text: "branch" not in text))


async def test_a_secret_that_is_there_and_of_no_use_ends_the_promotion(world: World, site: Site) -> None:
    await start_agent(world)
    await world.apply(git_secret(site, hosts="git.example.com"))
    await create(world, hosted_step(site))
    status = await reached(world, "Failed")
    assert status["conditions"][0]["reason"] == "SecretNotForHost"
