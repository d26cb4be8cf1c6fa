"""Killed between any two lines, a promotion loses nothing and does nothing twice.

The process dies at its n-th status write: either before the API server has it, so that an effect was made and nobody
noted it, or after, so that it was noted and the process knows of nothing. Whatever it still tries to write is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kardinal.kube import Client, ConnectionFailed
from kardinal.scm import PullRequests
from kardinal_agent.program import Agent, AgentOptions
from tests.agent.promotion_steps import deploy, order, place, reached, start_agent, state
from tests.support.names import DEV
from tests.support.repository import GitRepository
from tests.support.world import World


class Death:
    """Lets `writes` status writes through, and then none; `noted` decides whether the server gets the fatal one."""

    def __init__(self, writes: int, *, noted: bool) -> None:
        self._left = writes
        self._noted = noted
        self._end: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.happened = False
        self.over: asyncio.Task[None] | None = None

    def strike(self, client: Client) -> Client:
        patch = client.patch

        async def mortal(*arguments: Any, **options: Any) -> Any:
            if self.happened:
                raise ConnectionFailed("the process is dead")
            if self._left == 0:
                self.happened = True
                if self._noted:
                    await patch(*arguments, **options)
                assert self._end is not None
                # At once: what is dead tries nothing again.
                self.over = asyncio.create_task(self._end())
                raise ConnectionFailed("the process died here")
            self._left -= 1
            return await patch(*arguments, **options)

        setattr(client, "patch", mortal)  # noqa: B010 - a method of this one client
        return client

    def ends(self, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Say how the process is ended."""
        self._end = end


async def start_mortal(world: World, death: Death) -> None:
    options = AgentOptions(git_cache_dir=world.new_directory("agent-git"), allow_local_repositories=True)
    mortal = await world.run(lambda client: Agent(options, death.strike(client), clock=world.clock), identity="agent")
    death.ends(lambda: world.stop(mortal))


async def until_dead(world: World, death: Death) -> None:
    await world.until(lambda: death.over is not None)
    assert death.over is not None
    await death.over


@pytest.mark.parametrize("noted", [False, True], ids=["unnoted", "noted"])
@pytest.mark.parametrize("writes", range(3))
async def test_a_push_is_made_once(world: World, repository: GitRepository, writes: int, noted: bool) -> None:
    death = Death(writes, noted=noted)
    await start_mortal(world, death)
    await deploy(world)
    await place(world, order(repository))
    await until_dead(world, death)
    repository.commit({"README": "somebody else goes on"})

    await start_agent(world)
    status = await reached(world, "Verified")
    (commit,) = repository.promotions(DEV)
    assert status["commit"] == commit.sha


@pytest.mark.parametrize("noted", [False, True], ids=["unnoted", "noted"])
@pytest.mark.parametrize("writes", range(5))
async def test_a_pull_request_is_opened_and_merged_once(
    world: World, repository: GitRepository, reviewer: PullRequests, writes: int, noted: bool
) -> None:
    death = Death(writes, noted=noted)
    await start_mortal(world, death)
    await deploy(world)
    await place(world, order(repository, pr=True))
    await until_dead(world, death)
    repository.commit({"README": "somebody else goes on"})

    await start_agent(world)
    status = await reached(world, "Verified")
    (found,) = await reviewer.list()
    (commit,) = repository.promotions(DEV)
    assert found.state == "merged"
    assert status["commit"] == commit.sha
    assert status["prURL"] == found.url


Act = Callable[[PullRequests], Any]


@pytest.mark.parametrize(
    ("act", "ends"),
    [
        (lambda reviewer: reviewer.merge(1, by="alice"), "Verified"),
        (lambda reviewer: reviewer.close(1, by="bob", comment=""), "Failed"),
    ],
    ids=["merged", "closed"],
)
async def test_what_a_person_decided_while_nobody_watched_is_found(
    world: World, repository: GitRepository, reviewer: PullRequests, act: Act, ends: str
) -> None:
    death = Death(2, noted=False)
    await start_mortal(world, death)
    await deploy(world)
    await place(world, order(repository, approval="pr-review"))
    await until_dead(world, death)
    assert "pullRequest" not in await state(world)
    await act(reviewer)

    await start_agent(world)
    await reached(world, ends)
    assert len(await reviewer.list()) == 1
    assert len(repository.promotions(DEV)) == (1 if ends == "Verified" else 0)
