"""A promotion beside an API server that answers with conflicts, expired lists, stalls and broken connections.

The agent has no code for any of this. Its change lands once, whatever the answers were.
"""

from __future__ import annotations

import pytest

from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent
from tests.support.names import DEV
from tests.support.repository import GitRepository
from tests.support.world import World

SEEDS = (1, 2, 3)


@pytest.mark.local_only("only the local plane fails on demand")
@pytest.mark.usefixtures("fault_seed")
@pytest.mark.parametrize("fault_seed", SEEDS)
async def test_a_promotion_is_verified_whatever_the_api_server_answers(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    await deploy(world)
    status = await reached(world, "Verified")
    (commit,) = repository.promotions(DEV)
    assert commit.sha == status["commit"] == repository.head()
