"""Promotions in bad weather: the API server conflicts, expires, stalls and breaks off, and the order is still kept.

The agent has no word for any of this. What it was sent to do is done once, whatever it heard on the way.
"""

from __future__ import annotations

import pytest

from tests.agent.promotion_steps import deploy, order, place, reached, start_agent
from tests.support.names import DEV
from tests.support.repository import GitRepository
from tests.support.world import World

SEEDS = (1, 2, 3)


@pytest.mark.local_only("only the local plane injects faults")
@pytest.mark.usefixtures("weather")
@pytest.mark.parametrize("weather", SEEDS)
async def test_a_promotion_is_verified_whatever_befalls_the_agent(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await place(world, order(repository))
    await reached(world, "HealthChecking")
    await deploy(world)
    status = await reached(world, "Verified")
    (commit,) = repository.promotions(DEV)
    assert commit.sha == status["commit"] == repository.head()
