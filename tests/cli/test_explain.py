"""`kardinal explain` and `kardinal get steps` beside a promotion that is really under way."""

from __future__ import annotations

import asyncio
import json

from kardinal.objects import GRAPH
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from tests.agent.promotion_steps import deploy
from tests.cli.conftest import Cli
from tests.cli.in_process import InProcess, cli
from tests.support.commands import KARDINAL
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import APPLICATION, GitRepository
from tests.support.world import World

__all__ = ["cli"]


async def _held_before_prod(world: World, repository: GitRepository, *, minutes: float = 2) -> None:
    """Return a Bundle that soaks in staging, with a team gate of its own open."""
    await start_controller(world)
    await start_simulator(world)
    await world.apply(
        pipeline(repository, environments=[STAGING, environment(PROD, approval="pr-review")]),
        gate(f"{STAGING}-soak", f"bundle.upstreamSoakMinutes >= {minutes}", namespace=POLICIES),
        gate("any-day", f"environment.name == '{PROD}'"),
        bundle("my-app-1", tag="1.29.0"),
    )
    await world.wait_for(
        POLICY_GATE, f"my-app-1-{PROD}-{STAGING}-soak", lambda obj: obj.get("status", {}).get("ready") is False
    )
    await world.settle()


async def test_explain_shows_each_gate_with_what_it_saw_and_when_it_opens(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await _held_before_prod(world, repository)
    lines = (await cli("explain", "my-app", "--env", PROD)).splitlines()
    assert lines[:2] == [f"PROMOTION: my-app / {PROD}", "  Bundle: my-app-1 (1.29.0)"]
    (soak,) = [line for line in lines if f"{STAGING}-soak  [org]" in line]
    assert "FAIL" in soak
    assert "bundle.upstreamSoakMinutes = 0 (threshold: >= 2)" in soak
    assert "ETA: ~" in lines[lines.index(soak) + 1]
    (other,) = [line for line in lines if "any-day" in line]
    assert "[team]" in other
    assert "PASS" in other
    assert lines[-1] == f"RESULT: BLOCKED by {STAGING}-soak"

    answer = json.loads(await cli("explain", "my-app", "--env", PROD, "-o", "json"))
    assert answer["result"] == f"BLOCKED by {STAGING}-soak"
    assert {entry["name"]: entry["result"] for entry in answer["gates"]} == {
        f"{STAGING}-soak": "FAIL",
        "any-day": "PASS",
    }

    rows = [line.split() for line in (await cli("get", "steps", "my-app")).splitlines()]
    assert rows[0] == ["ENVIRONMENT", "NODE", "STATE", "MESSAGE"]
    assert rows[1][:3] == [STAGING, "step", "Verified"]
    assert {row[2] for row in rows[2:4]} == {f"{STAGING}-soak", "any-day"}
    assert rows[4][:2] == [PROD, "step"]


async def test_explain_names_a_pause_a_missing_template_and_a_changed_graph(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await _held_before_prod(world, repository)
    await cli("pause", "my-app", "--reason", "release freeze")
    await world.settle()
    last = (await cli("explain", "my-app", "--env", PROD)).splitlines()[-1]
    assert last == "RESULT: PAUSED: the Pipeline is frozen until kardinal resume (release freeze)"
    await cli("resume", "my-app")

    await world.delete(POLICY_GATE, f"{STAGING}-soak", POLICIES)
    await world.settle()
    lines = (await cli("explain", "my-app", "--env", PROD)).splitlines()
    assert any(f"its template {POLICIES}/{STAGING}-soak does not exist" in line for line in lines)
    assert lines[-1] == f"RESULT: BLOCKED by {STAGING}-soak"

    body = {"spec": {"nodes": (await world.get(GRAPH, "my-app-1"))["spec"]["nodes"][:-2]}}
    await world.client.patch(GRAPH, "my-app-1", TEAM, body)
    await world.settle()
    last = (await cli("explain", "my-app", "--env", PROD)).splitlines()[-1]
    assert last.startswith("RESULT: REFUSED: spec.nodes: ")


async def test_watch_prints_again_when_the_answer_changes(cli: Cli, world: World, repository: GitRepository) -> None:
    await _held_before_prod(world, repository, minutes=0.1)
    process = await asyncio.create_subprocess_exec(
        *(KARDINAL, "explain", "my-app", "--env", PROD, "--watch"),
        env=cli.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        await _read_until(process.stdout, f"RESULT: BLOCKED by {STAGING}-soak")
        await world.wait_for(
            PROMOTION_STEP, f"my-app-1-{PROD}", lambda obj: obj.get("status", {}).get("state") == "WaitingForMerge"
        )
        await _read_until(process.stdout, "RESULT: WaitingForMerge")
    finally:
        process.terminate()
        await process.communicate()


async def _read_until(stream: asyncio.StreamReader, words: str) -> None:
    async with asyncio.timeout(30):
        while words not in (line := (await stream.readline()).decode()):
            assert line, "the command ended"


async def test_render_failure_of_the_simulator_is_shown_until_mended(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    path = f"environments/{DEV}/kustomization.yaml"
    repository.commit({path: repository.read(path).replace("  - ../../base\n", "  - ../../base\n  - missing.yaml\n")})
    await start_controller(world)
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=[DEV]), bundle("my-app-1"))
    await world.wait_for(PROMOTION_STEP, f"my-app-1-{DEV}", lambda step: step["status"]["state"] == "HealthChecking")
    await world.settle()
    failure = json.loads(await cli("explain", "my-app", "--env", DEV, "-o", "json"))["failure"]
    assert failure.startswith(f"simulator: {DEV}: {path}: resource missing.yaml ")
    (row,) = [line for line in (await cli("get", "steps", "my-app")).splitlines() if line.startswith(DEV)]
    assert row.endswith(failure)
    assert failure in (await cli("explain", "my-app", "--env", DEV)).splitlines()
    repository.commit({path: repository.read(path).replace("  - missing.yaml\n", "")})
    await world.until(lambda: world.events("Rendered"))
    assert "simulator: " not in await cli("get", "steps", "my-app")
    assert json.loads(await cli("explain", "my-app", "--env", DEV, "-o", "json"))["failure"] is None


async def test_degraded_environment_is_shown_everywhere(cli: Cli, world: World, repository: GitRepository) -> None:
    await deploy(world)
    await start_controller(world)
    health = {"resource": {"name": APPLICATION}, "degradedAfter": "1s"}
    await world.apply(
        pipeline(repository, environments=[environment(DEV, health=health), STAGING]),
        gate("never", 'bundle.labels.go == "yes"', applies_to=STAGING),
        bundle("my-app-1"),
    )
    await world.wait_for(POLICY_GATE, f"my-app-1-{STAGING}-never", lambda obj: "status" in obj)
    await deploy(world, available=False)
    await world.wait_for(BUNDLE, "my-app-1", lambda obj: obj["status"]["environments"][DEV]["healthy"] is False)
    await world.settle()
    why = f"waits for Deployment {DEV}/{APPLICATION}: "
    result = (await cli("explain", "my-app", "--env", DEV)).splitlines()[-1]
    assert result.startswith("RESULT: DEGRADED: ")
    assert why in result
    result = (await cli("explain", "my-app", "--env", STAGING)).splitlines()[-1]
    assert result.startswith(f"RESULT: HELD: {DEV} ")
    assert why in result
    (row,) = [line for line in (await cli("get", "steps", "my-app")).splitlines() if line.startswith(f"{DEV} ")]
    assert row.split()[1:3] == ["step", "Degraded"]
    assert f"Verified, and no longer healthy: {why}" in row
    lines = [line.strip() for line in (await cli("status", "my-app")).splitlines()]
    assert f"kardinal explain my-app --env {DEV}" in lines
    assert any(line.startswith(f"{DEV}: Verified, and no longer healthy: {why}") for line in lines)
    assert any(line.startswith(f"{STAGING}: waits until {DEV} ") for line in lines)
    found = json.loads(await cli("status", "my-app", "-o", "json"))["environments"][0]
    assert (found["state"], found["health"]) == ("Verified", "Degraded")


async def test_graph_is_explained_node_by_node(world: World, repository: GitRepository, cli: Cli) -> None:
    await _held_before_prod(world, repository)
    shown = await cli("explain", "graph/my-app-1")
    assert "GRAPH: my-app-1" in shown
    found = json.loads(await cli("explain", "graph/my-app-1", "-o", "json"))
    states = {node["id"]: node["state"] for node in found["nodes"]}
    assert states["bundle"] == "Ready"
    assert found["result"].startswith("WAITING at ")
    assert "status.ready == true" in found["result"]


async def test_graph_that_is_not_there_is_named(world: World, cli: InProcess) -> None:
    done = await cli.attempt("explain", "graph/nope")
    assert (done.code, "there is no Graph nope" in done.err) == (1, True)
