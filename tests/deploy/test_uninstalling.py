"""The commands that uninstall kardinal drain it first: no review stays open that an agent could have closed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kardinal.promotion.kinds import PROMOTION_STEP
from tests.deploy.test_installation import NEWEST, commands
from tests.support.kubectl import Kubectl
from tests.support.names import DEV
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.reviewer import open_pull_requests
from tests.support.world import World

WRITTEN = commands("docs/installation.md", "Uninstalling")
DRAINING = [words for words in WRITTEN if "--all" in words]


@pytest.mark.parametrize("kubectl", [NEWEST], indirect=True)
async def test_draining_closes_reviews_before_anything_is_uninstalled(
    world: World,
    repository: GitRepository,
    kubectl: Callable[[Path], Kubectl],
) -> None:
    assert WRITTEN[: len(DRAINING)] == DRAINING
    run = kubectl(world.server.kubeconfig_for("admin"))
    await start_controller(world)
    await world.apply(
        pipeline(repository, environments=[environment(DEV, approval="pr-review")]), bundle("app-1"), bundle("app-2")
    )
    await world.until(lambda: has_a_review(world, repository))
    for words in DRAINING:
        await run(*words[1:])
    assert await open_pull_requests(world, repository) == []
    assert repository.branches() == ["main"]
    assert await world.objects(PROMOTION_STEP) == []


async def has_a_review(world: World, repository: GitRepository) -> bool:
    return bool(await open_pull_requests(world, repository))
