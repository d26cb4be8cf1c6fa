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

from kardinal.api import BUNDLE, PROMOTION_STEP
from kardinal.kube import PatchType
from kardinal_controller.program import ControllerOptions
from kardinal_local.plane.audit import WRITES, LoggedRequest
from tests.bundles.reading import phase, states
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
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


async def test_a_sharded_environment_is_never_promoted_by_the_control_plane(
    world: World, repository: GitRepository
) -> None:
    await start_controller(world)
    await start_simulator(world, delay=timedelta(0))
    way = pipeline(repository, provider="git", environments=[DEV, environment(PROD, shard="eu")])
    await world.apply(way, bundle("app-1"))
    await world.wait_for(PROMOTION_STEP, f"app-1-{PROD}", lambda _: True)
    await world.idle(timedelta(seconds=50))
    assert (len(repository.promotions(DEV)), repository.promotions(PROD)) == (1, [])
    await start_agent(world, shard="eu")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))


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
    assert not options.allow_local_repositories
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


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--kubeconfig=/does/not/exist"], 1, "/does/not/exist"),
        (["--api-bind-address=8083"], 2, "write host:port"),
        (["--log-level=loud"], 2, "'loud' is not one of"),
    ],
)
async def test_a_process_that_cannot_start_says_what_to_do(arguments: list[str], code: int, says: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", START, *arguments, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == code
    assert says in errors.decode()
    assert "Traceback" not in errors.decode()


async def test_the_graph_of_an_older_version_is_recorded_and_goes_on(world: World, agent: ScriptedAgent) -> None:
    """Versions before the record wrote the name of the Graph alone."""
    controller = await start_controller(world, standalone=False)
    await world.apply(pipeline("file:///repo"), bundle("app-1"))
    await agent.verify(f"app-1-{DEV}")
    await world.settle()
    known = (await world.get(BUNDLE, "app-1"))["status"]["graph"]
    await world.stop(controller)
    forgotten = {"status": {"graph": None}}
    await world.client.patch(BUNDLE, "app-1", TEAM, forgotten, kind=PatchType.MERGE, subresource="status")
    await start_controller(world, standalone=False)
    found = await world.wait_for(BUNDLE, "app-1", lambda obj: "graph" in obj["status"])
    assert found["status"]["graph"] == known
    await agent.verify(f"app-1-{STAGING}", f"app-1-{PROD}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))


async def test_a_graph_whose_uid_was_not_recorded_before_a_crash_is_known_by_its_hash(
    world: World, agent: ScriptedAgent
) -> None:
    controller = await start_controller(world, standalone=False)
    await world.apply(pipeline("file:///repo"), bundle("app-1"))
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await world.settle()
    known = (await world.get(BUNDLE, "app-1"))["status"]["graph"]
    await world.stop(controller)
    before = {"graph": {"uid": None, "hash": None, "nextHash": known["hash"]}, "graphRef": None, "phase": None}
    await world.client.patch(BUNDLE, "app-1", TEAM, {"status": before}, kind=PatchType.MERGE, subresource="status")
    await start_controller(world, standalone=False)
    found = await world.wait_for(BUNDLE, "app-1", lambda obj: "uid" in obj["status"].get("graph", {}))
    assert found["status"]["graph"] == known
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}", f"app-1-{PROD}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
