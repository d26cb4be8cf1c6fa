"""The control plane as one program: with the agent inside, with an agent elsewhere, and as a process."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal_controller.main import main
from kardinal_controller.options import ControllerOptions
from kardinal_local.plane.audit import WRITES, LoggedRequest
from tests.bundles.reading import condition, phase, states
from tests.support.names import DEV, POLICIES, PROD, STAGING
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_agent, start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.world import World

START = "from kardinal_controller.main import main; main()"


async def test_a_bundle_walks_through_all_environments_by_real_commits(world: World, repository: GitRepository) -> None:
    await start_controller(world)
    await start_simulator(world, delay=timedelta(0))
    # A proof that is named has no Event that says that none was found.
    named = [environment(name, health={"type": "resource"}) for name in (DEV, STAGING, PROD)]
    await world.apply(
        pipeline(repository, environments=named, provider="git"), gate("always", "true", namespace=POLICIES)
    )
    await world.settle()
    writes: Counter[str] = Counter()

    def count(request: LoggedRequest) -> None:
        if request.user == world.user("controller") and request.verb in WRITES and request.code < 300:
            writes[f"{request.resource.partition('.')[0]}/{request.subresource}"] += 1

    subscription = world.audit.subscribe(count)
    await world.apply(bundle("app-1"))
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.settle()
    subscription.close()
    assert states(done) == {DEV: "Verified", STAGING: "Verified", PROD: "Verified"}
    for name in (DEV, STAGING, PROD):
        assert len(repository.promotions(name)) == 1
        assert done["status"]["environments"][name]["commit"] == repository.promotions(name)[0].sha
    # Statuses that report progress take several transitions together when those are quick, and one by one beside a busy
    # machine: at most one for each transition of a node, and of an environment, is owed.
    progress = {name: writes.pop(f"{name}/status") for name in ("graphs", "bundles")}
    assert max(progress.values()) <= 3 * 3 + 2, progress
    # The rest does not depend on time: one gate, Graph and revision; a step with three statuses for each environment;
    # for each that is Verified an Event; one of the gate, and two for the Bundle.
    assert sum(writes.values()) <= 22, writes


async def test_the_control_plane_leaves_promotions_to_agents_where_it_is_told_to(
    world: World, repository: GitRepository
) -> None:
    controller = await start_controller(world, standalone=False)
    assert controller.runner is None
    await world.apply(pipeline(repository, provider="git", environments=[DEV]), bundle("app-1"))
    await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda _: True)
    await world.idle(timedelta(minutes=5))
    assert repository.promotions(DEV) == []
    await start_simulator(world, delay=timedelta(0))
    await start_agent(world)
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))


@pytest.mark.virtual_time("waits for a minute, which an agent has to take a step")
async def test_a_sharded_environment_is_promoted_by_its_agent_alone_and_says_that_there_is_none(
    world: World, repository: GitRepository
) -> None:
    await start_controller(world)
    await start_simulator(world, delay=timedelta(0))
    way = pipeline(repository, provider="git", environments=[DEV, environment(PROD, shard="eu")])
    await world.apply(way, bundle("app-1"))
    await world.wait_for(PROMOTION_STEP, f"app-1-{PROD}", lambda obj: condition(obj, "NoAgent") is not None)
    await world.wait_for(BUNDLE, "app-1", lambda obj: condition(obj, "NoAgent") is not None)
    assert (len(repository.promotions(DEV)), repository.promotions(PROD)) == (1, [])
    await start_agent(world, shard="eu")
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert condition(done, "NoAgent") is None
    assert condition(await world.get(PROMOTION_STEP, f"app-1-{PROD}"), "NoAgent") is None


async def test_the_graph_of_a_superseded_bundle_is_deleted_when_the_agent_has_abandoned_its_steps(
    world: World, repository: GitRepository
) -> None:
    await start_controller(world)
    await start_simulator(world, delay=timedelta(0))
    await world.apply(pipeline(repository, environments=[DEV, environment(PROD, approval="pr-review")]))
    await world.apply(bundle("app-1", tag="1.1.0"))
    await world.wait_for(
        PROMOTION_STEP, f"app-1-{PROD}", lambda step: step.get("status", {}).get("state") == "WaitingForMerge"
    )
    await world.live(timedelta(seconds=2))
    await world.apply(bundle("app-2", tag="1.2.0"))
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))
    await world.until(lambda: _gone(world, f"app-1-{PROD}"))
    ended = await world.get(BUNDLE, "app-1")
    assert states(ended) == {DEV: "Verified", PROD: "Superseded"}
    assert ended["status"]["phase"] == "Superseded"
    assert repository.promotions(PROD) == []


async def _gone(world: World, name: str) -> bool:
    return await world.find(PROMOTION_STEP, name) is None


def test_the_options_have_the_documented_defaults() -> None:
    options = ControllerOptions()
    assert options.policy_namespaces == ("platform-policies",)
    assert not options.agent.allow_local_repositories
    assert options.standalone


async def test_the_process_serves_and_ends_cleanly_on_a_signal(world: World, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = [
        f"--kubeconfig={world.server.kubeconfig_for('controller')}",
        f"--health-probe-bind-address=127.0.0.1:{port}",
        "--api-bind-address=127.0.0.1:0",
        "--metrics-bind-address=127.0.0.1:0",
        f"--git-cache-dir={tmp_path / 'git'}",
        "--log-format=json",
    ]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", START, *arguments, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with aiohttp.ClientSession() as session, asyncio.timeout(50):
            while not await _answers(session, f"http://127.0.0.1:{port}/readyz"):
                assert process.returncode is None, (await process.communicate())[1].decode()
                await asyncio.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode()
    assert b"Traceback" not in errors


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def test_a_process_that_finds_no_cluster_says_what_to_do() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", START, "--kubeconfig=/does/not/exist", stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == 1
    assert "/does/not/exist" in errors.decode()
    assert "Traceback" not in errors.decode()


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("--api-bind-address=8083", "write host:port"),
        ("--graph-engine=external", "no external controller can be run"),
        ("--graph-engine=kro", "'kro' is not builtin"),
        ("--log-level=loud", "'loud' is not one of"),
    ],
)
def test_a_wrong_option_is_told_with_what_it_may_be(argument: str, says: str) -> None:
    done = CliRunner().invoke(main, [argument])
    assert (done.exit_code, says in done.stderr) == (2, True), done.stderr
