"""The three programs of kardinal, started in a world as their composition roots start them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from kardinal.clock import Clock
from kardinal.extensions import Extensions
from kardinal.git import GitRunner, Repositories
from kardinal.kube import Client
from kardinal.runtime import Manager
from kardinal_agent.options import AgentOptions
from kardinal_agent.program import Agent
from kardinal_controller.options import ControllerOptions
from kardinal_controller.program import ControlPlane
from kardinal_local.simulator import BuiltInRenderer, DirectoryRenderer, Simulator
from kardinal_local.simulator.gitops import GitOps
from tests.support.names import POLICIES
from tests.support.permissions import Permission, hold_to_permissions
from tests.support.registry import EXTENSIONS
from tests.support.world import World

__all__ = ["controller_options", "start_agent", "start_controller", "start_simulator"]


async def start_controller(
    world: World,
    *,
    extensions: Extensions = EXTENSIONS,
    clock: Clock | None = None,
    beyond: Collection[Permission] = (),
    **options: Any,
) -> ControlPlane:
    """Start a controller in standalone mode; `options` are those that matter to the test, its agent's included.

    `clock`: that of its machine, if it is not the one of the world. `beyond`: what an operator lets it do beside what
    deploy/ allows.
    """
    hold_to_permissions(world, "controller", beyond=beyond)
    settings: dict[str, Any] = {
        "policy_namespaces": (POLICIES,),
        "allow_local_repositories": True,
        "git_cache_dir": world.new_directory("controller-git"),
        "api_address": "127.0.0.1:0",
        "metrics_address": "127.0.0.1:0",
        "metrics_auth": "none",
        "probe_address": "127.0.0.1:0",
    }
    chosen = controller_options(**settings | options)
    return await world.run(
        lambda client: ControlPlane(chosen, client, clock=clock or world.clock, extensions=extensions),
        identity="controller",
    )


def controller_options(**options: Any) -> ControllerOptions:
    """Return options of a controller, of which those that it does not have itself are those of its agent."""
    own = {field.name for field in fields(ControllerOptions)}
    agent = AgentOptions(**{name: value for name, value in options.items() if name not in own})
    return ControllerOptions(agent=agent, **{name: value for name, value in options.items() if name in own})


async def start_agent(world: World, *, clock: Clock | None = None, **options: Any) -> Agent:
    """Start an agent of its own; `options` are those of AgentOptions that matter to the test, `clock` as above."""
    hold_to_permissions(world, "agent")
    settings: dict[str, Any] = {
        "allow_local_repositories": True,
        "git_cache_dir": world.new_directory("agent-git"),
        "metrics_address": "127.0.0.1:0",
        "metrics_auth": "none",
        "probe_address": "127.0.0.1:0",
    }
    chosen = AgentOptions(**settings | options)
    return await world.run(
        lambda client: Agent(chosen, client, clock=clock or world.clock, extensions=EXTENSIONS), identity="agent"
    )


class GitOpsTool:
    """A program that applies the rendered directories of a repository, in a cluster that runs what it is given."""

    def __init__(
        self,
        client: Client,
        repositories: Repositories,
        *,
        runner: GitRunner,
        clock: Clock,
        renderer: DirectoryRenderer,
    ) -> None:
        self.runner = runner
        self.manager = Manager(client, clock=clock, name="gitops")
        self._gitops = GitOps(self.manager, client, repositories, renderer=renderer, clock=clock)

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        self._gitops.close()
        await self.manager.stop()


async def start_simulator(
    world: World,
    *,
    delay: timedelta = timedelta(seconds=1),
    find: Callable[[GitRunner, Path], Awaitable[DirectoryRenderer]] | None = None,
) -> GitOpsTool | Simulator:
    """Start the stand-in for a GitOps tool, and for a kubelet where there is no node; a rollout takes `delay` there.

    `find` finds a renderer; otherwise it is the one that needs no other program.
    """
    async with AsyncExitStack() as needs:
        runner = GitRunner(workers=2)
        needs.callback(runner.close)
        directory = world.new_directory("simulator-git")
        repositories = Repositories(directory, runner=runner, clock=world.clock, allow_local=True)
        needs.push_async_callback(repositories.close)
        tools: dict[str, Any] = {
            "runner": runner,
            "clock": world.clock,
            "renderer": await find(runner, world.new_directory("exports")) if find else BuiltInRenderer(),
        }

        def build(client: Client) -> GitOpsTool | Simulator:
            if world.server.runs_workloads:
                return GitOpsTool(client, repositories, **tools)
            return Simulator(client, repositories, delay=delay, **tools)

        return await world.run(build, identity="simulator", needs=needs.pop_all())
