"""Many promotions of one repository at once, by two agents, beside other commits: every commit is there."""

from __future__ import annotations

import asyncio

import pytest

from kardinal.promotion.api import names
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent
from tests.support.names import DEV
from tests.support.repository import GitRepository
from tests.support.world import World

PROMOTIONS = 12
OTHERS = 6
ATTEMPTS = 50


async def test_no_commit_is_lost_and_none_is_made_twice(world: World, repository: GitRepository) -> None:
    overlay = repository.read(f"environments/{DEV}/kustomization.yaml")
    environments = [f"env-{number}" for number in range(PROMOTIONS)]
    repository.commit({f"environments/{name}/kustomization.yaml": overlay for name in environments})
    for shard in ("east", "west"):
        await start_agent(world, shard=shard)
    for name in environments:
        await deploy(world, name)

    steps = [
        promotion_step(repository, name, shard=shard, labels={names.LABEL_SHARD: shard})
        for name, shard in zip(environments, ["east", "west"] * (PROMOTIONS // 2), strict=True)
    ]
    for number in range(OTHERS):
        await create(world, *steps[number * 2 : number * 2 + 2])
        await _push(repository, number)

    for name in environments:
        await reached(world, "Verified", name)
        assert len(repository.promotions(name)) == 1
        assert "1.1.0" in repository.read(f"environments/{name}/kustomization.yaml")
    assert sum(commit.subject.startswith("Note ") for commit in repository.commits()) == OTHERS
    assert all(repository.read(f"notes/{number}") == str(number) for number in range(OTHERS))


async def _push(repository: GitRepository, number: int) -> None:
    """Push a commit from another process, again and again while Git refuses it because the branch moves."""
    for _ in range(ATTEMPTS):
        try:
            await asyncio.to_thread(repository.commit, {f"notes/{number}": str(number)}, message=f"Note {number}")
        except AssertionError:
            continue
        return
    pytest.fail("no push of another process was accepted")
