"""The three programs of kardinal, started in a world as their composition roots start them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from kardinal.git import GitRunner, Repositories
from kardinal.localplane.simulator import BuiltInRenderer, Simulator
from kardinal_agent.program import Agent, AgentOptions
from kardinal_controller.program import Controller, ControllerOptions
from tests.support.permissions import hold_to_permissions
from tests.support.world import World

__all__ = ["start_agent", "start_controller", "start_simulator"]


async def start_controller(world: World, **options: Any) -> Controller:
    """A controller in standalone mode; `options` are those of ControllerOptions that matter to the test."""
    hold_to_permissions(world, "kardinal:controller")
    settings: dict[str, Any] = {
        "policy_namespaces": ("platform-policies",),
        "allow_local_repositories": True,
        "git_cache_dir": world.new_directory("controller-git"),
        "api_address": "127.0.0.1:0",
        "metrics_address": "127.0.0.1:0",
        "probe_address": "127.0.0.1:0",
    }
    chosen = ControllerOptions(**settings | options)
    return await world.run(lambda client: Controller(chosen, client, clock=world.clock), identity="controller")


async def start_agent(world: World, **options: Any) -> Agent:
    """An agent of its own; `options` are those of AgentOptions that matter to the test."""
    hold_to_permissions(world, "kardinal:agent")
    settings: dict[str, Any] = {
        "allow_local_repositories": True,
        "git_cache_dir": world.new_directory("agent-git"),
        "metrics_address": "127.0.0.1:0",
        "probe_address": "127.0.0.1:0",
    }
    chosen = AgentOptions(**settings | options)
    return await world.run(lambda client: Agent(chosen, client, clock=world.clock), identity="agent")


async def start_simulator(world: World, *, delay: timedelta = timedelta(seconds=1)) -> Simulator:
    """The stand-in for a GitOps tool and a kubelet, with the renderer that needs no other program."""
    async with AsyncExitStack() as needs:
        runner = GitRunner(workers=2)
        needs.callback(runner.close)
        directory = world.new_directory("simulator-git")
        repositories = Repositories(directory, runner=runner, clock=world.clock, allow_local=True)
        needs.push_async_callback(repositories.close)
        renderer = BuiltInRenderer()
        return await world.run(
            lambda client: Simulator(
                client, repositories, runner=runner, clock=world.clock, delay=delay, renderer=renderer
            ),
            identity="simulator",
            needs=needs.pop_all(),
        )
