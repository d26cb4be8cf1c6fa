"""The agent as a program: its command line, its two clusters, its figures."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from kardinal.kube import Client, load_connection
from kardinal.objects import DEPLOYMENT
from kardinal.promotion.api import names
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_agent.health.workloads import missing_workload
from kardinal_agent.main import main
from kardinal_agent.options import AgentOptions
from kardinal_agent.program import Agent
from kardinal_local.plane import Authority, LocalPlane
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, reached, start_agent
from tests.support.names import DEV, STAGING, TEAM
from tests.support.registry import EXTENSIONS
from tests.support.repository import GitRepository
from tests.support.world import World

REAL_SECONDS = 30.0


@asynccontextmanager
async def agent_process(world: World, *arguments: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from kardinal_agent.main import main; main()",
        "--shard=east",
        f"--control-plane-kubeconfig={world.server.kubeconfig_for('agent')}",
        f"--git-cache-dir={world.new_directory('agent-git')}",
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
        *arguments,
        stderr=PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_process_executes_its_shard_and_ends_cleanly(world: World, repository: GitRepository) -> None:
    await deploy(world)
    label = {names.LABEL_SHARD: "east"}
    await create(world, promotion_step(repository, shard="east", labels=label))
    async with agent_process(world, "--allow-local-repositories") as process:
        async with (
            asyncio.timeout(REAL_SECONDS),
            world.client.watch(PROMOTION_STEP, TEAM, initial_events=True) as events,
        ):
            async for event in events:
                if (event.object.get("status") or {}).get("state") == "Verified":
                    break
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(REAL_SECONDS):
            _, errors = await process.communicate()
        assert process.returncode == 0, errors.decode()
    assert len(repository.promotions(DEV)) == 1


async def test_secrets_and_deployments_are_those_of_the_agents_own_cluster(
    world: World, repository: GitRepository, authority: Authority, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        own = await LocalPlane.start(tmp_path / "own", clock=world.clock, authority=authority)
        stack.push_async_callback(own.stop)
        connection = await load_connection(own.kubeconfig)
        local = await stack.enter_async_context(Client(connection, user_agent="test"))
        options = AgentOptions(
            git_cache_dir=world.new_directory("agent-git"), allow_local_repositories=True, shard="east"
        )
        agent = await world.run(
            lambda client: Agent(options, client, clock=world.clock, extensions=EXTENSIONS, local_client=local),
            identity="agent",
        )
        await deploy(world)
        await create(world, promotion_step(repository, shard="east", labels={names.LABEL_SHARD: "east"}))
        status = await reached(world, "HealthChecking")
        assert status["message"] == missing_workload(DEPLOYMENT, DEV, "my-app").message
        await deploy(world, client=local)
        await reached(world, "Verified")
        await world.stop(agent)


async def test_every_figure_of_a_promotion_moves(world: World, repository: GitRepository) -> None:
    agent = await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository, pr=True), promotion_step(repository, STAGING, path="nowhere"))
    await reached(world, "Verified")
    await reached(world, "Failed", STAGING)

    figures: CollectorRegistry = agent.manager.metrics

    def value(name: str, **labels: str) -> float | None:
        return figures.get_sample_value(name, labels)

    assert value("kardinal_promotions_opened_total", environment=DEV, approval="auto") == 1
    assert value("kardinal_promotions_merged_total", environment=DEV) == 1
    assert value("kardinal_promotions_failed_total", environment=STAGING, reason="EditError") == 1
    assert value("kardinal_health_check_duration_seconds_count", environment=DEV, result="healthy") == 1
    assert value("kardinal_git_operation_duration_seconds_count", operation="propose", result="ok") == 2
    assert value("kardinal_scm_api_requests_total", endpoint="merge", status="ok") == 1
    assert value("kardinal_promotion_lead_time_seconds_count", environment=DEV) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing option '--shard'"),
        (["--shard=Not_One"], "'Not_One' is not a shard"),
        (["--shard=east", "--metrics-bind-address=nowhere"], "Invalid value for '--metrics-bind-address'"),
        (["--shard=east", "--control-plane-kubeconfig=/does/not/exist"], "does not exist"),
    ],
)
def test_a_wrong_command_line_ends_with_two(arguments: list[str], words: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert words in result.output


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    result = CliRunner().invoke(main, ["--shard=east", f"--git-cache-dir={in_the_way / 'below'}"])
    assert result.exit_code == 1
    assert "--git-cache-dir" in result.output


async def test_two_agents_of_one_shard_land_a_promotion_once(world: World, repository: GitRepository) -> None:
    for _ in range(2):
        await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository))
    status = await reached(world, "Verified")
    (commit,) = repository.promotions(DEV)
    assert status["commit"] == commit.sha
    assert commit.trailers["Kardinal-Bundle"] == BUNDLE_NAME
