"""Many promotions of one repository at once, by two agents, beside somebody who pushes: every commit is there."""

from __future__ import annotations

import asyncio

import pytest

from kardinal.api import names
from tests.agent.promotion_steps import deploy, order, place, reached, start_agent
from tests.support.names import DEV
from tests.support.repository import GitRepository
from tests.support.world import World

CROWD = 20
OTHERS = 10
ATTEMPTS = 50


async def test_no_commit_is_lost_and_none_is_made_twice(world: World, repository: GitRepository) -> None:
    overlay = repository.read(f"environments/{DEV}/kustomization.yaml")
    environments = [f"env-{number}" for number in range(CROWD)]
    repository.commit({f"environments/{name}/kustomization.yaml": overlay for name in environments})
    for shard in ("east", "west"):
        await start_agent(world, shard=shard)
    for name in environments:
        await deploy(world, name)

    orders = [
        order(repository, name, shard=shard, labels={names.LABEL_SHARD: shard})
        for name, shard in zip(environments, ["east", "west"] * (CROWD // 2), strict=True)
    ]
    for number in range(OTHERS):
        await place(world, *orders[number * 2 : number * 2 + 2])
        await _push(repository, number)

    for name in environments:
        await reached(world, "Verified", name)
        assert len(repository.promotions(name)) == 1
        assert "1.1.0" in repository.read(f"environments/{name}/kustomization.yaml")
    assert sum(commit.subject.startswith("Note ") for commit in repository.commits()) == OTHERS
    assert all(repository.read(f"notes/{number}") == str(number) for number in range(OTHERS))


async def _push(repository: GitRepository, number: int) -> None:
    """Somebody else's commit, from another process; Git refuses it while the branch moves, and they try again."""
    for _ in range(ATTEMPTS):
        try:
            await asyncio.to_thread(repository.commit, {f"notes/{number}": str(number)}, message=f"Note {number}")
        except AssertionError:
            continue
        return
    pytest.fail("somebody else never got their turn")
