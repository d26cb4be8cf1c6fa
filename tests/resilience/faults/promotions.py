"""A promotion on a bad day, its agents, and all that can be seen of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from kardinal.kube import Client, ConnectionFailed
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal_agent.options import AgentOptions
from kardinal_agent.program import Agent
from tests.agent.hosted import git_secret
from tests.agent.promotion_steps import deploy
from tests.resilience.faults.strikes import Day
from tests.support.registry import EXTENSIONS
from tests.support.smart_server import PASSWORD
from tests.support.world import World

__all__ = ["assert_no_secret", "prepare", "start", "survive"]


def mortal(client: Client, day: Day) -> Client:
    """Let a client write nothing while the program that has it is dead."""
    patch = client.patch

    async def patched(*arguments: Any, **options: Any) -> Any:
        if day.dead.is_set():
            raise ConnectionFailed("the process is dead")
        return await patch(*arguments, **options)

    setattr(client, "patch", patched)  # noqa: B010 - a method of this one client
    return client


async def start(world: World, day: Day, **settings: Any) -> Agent:
    """Start an agent that the strikes of the day may kill."""
    options = AgentOptions(git_cache_dir=world.new_directory("agent-git"), allow_local_repositories=True, **settings)
    return await world.run(
        lambda client: Agent(options, mortal(client, day), clock=world.clock, extensions=EXTENSIONS), identity="agent"
    )


async def prepare(world: World, day: Day, **secret: Any) -> None:
    """Make the Secret of the host, and have the new version deployed as soon as it is asked for."""
    await deploy(world)
    await world.apply(git_secret(day.host, **secret))


async def survive(world: World, day: Day, agent: Agent, **settings: Any) -> None:
    """Start another agent when the first has been killed."""
    await world.until(day.dead.is_set)
    await world.stop(agent)
    day.dead.clear()
    await start(world, day, **settings)


async def assert_no_secret(world: World, lines: list[Any], *others: str) -> None:
    """Look for the password in what the API server has, in the log, and in the files of the agents."""
    objects = [*await world.objects(PROMOTION_STEP), *await world.objects(BUNDLE), *await world.events()]
    shown = orjson.dumps([*objects, *lines], default=str)
    for value in (PASSWORD, *others):
        assert value.encode() not in shown
        assert [path for path in _files(world.directory) if value.encode() in path.read_bytes()] == []


def _files(directory: Path) -> Iterator[Path]:
    for cache in directory.glob("agent-git-*"):
        yield from (path for path in cache.rglob("*") if path.is_file() and not path.is_symlink())
