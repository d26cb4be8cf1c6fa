"""A whole walk with injected faults: every program meets them, and everything happens once and in order.

Writes conflict, requests are turned away, answers get lost after the deed, watches expire, break off and lag. What a
program does about it may take more requests and more time; the result is that of a promotion without faults.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from tests.support.names import DEV, POLICIES, PROD, STAGING
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_agent
from tests.support.repository import GitRepository
from tests.support.reviewer import merge_pull_request
from tests.support.world import World

Reached = Callable[..., Awaitable[dict[str, Any]]]

SEEDS = (5, 22, 30)
SOAK = timedelta(minutes=1)


@pytest.mark.local_only("only the local plane injects faults")
@pytest.mark.usefixtures("fault_seed")
@pytest.mark.parametrize("fault_seed", SEEDS)
async def test_a_bundle_walks_through_every_environment_once_and_in_order(
    world: World, repository: GitRepository, running: ControlPlane, phase: Reached, state: Reached
) -> None:
    await start_agent(world, shard="edge")
    await world.apply(
        pipeline(
            repository,
            environments=[DEV, environment(STAGING, shard="edge"), environment(PROD, approval="pr-review")],
        ),
        gate("soak", "bundle.upstreamSoakMinutes >= 1", namespace=POLICIES),
        bundle("b"),
    )
    await state("b", STAGING, "Verified")
    verified = world.clock.now()
    step = await state("b", PROD, "WaitingForMerge")
    assert world.clock.now() - verified >= SOAK
    await merge_pull_request(world, repository, step["status"]["pullRequest"]["number"])
    await phase("b", "Verified")

    promoted = [commit.trailers["Kardinal-Environment"] for commit in repository.commits() if commit.trailers]
    assert promoted == [PROD, STAGING, DEV]
    assert {one["status"]["state"] for one in await world.objects(PROMOTION_STEP)} == {"Verified"}
