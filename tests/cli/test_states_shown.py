"""The states of environments and gates beside controllers that really run, as every command shows them."""

from __future__ import annotations

import json

from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from tests.bundles.reading import phase
from tests.bundles.scripted_agent import ScriptedAgent
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.support.names import DEV, POLICIES, PROD, STAGING
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_agent, start_controller
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["cli"]

REPOSITORY = "https://git.example.com/acme/gitops.git"


async def shown(cli: Cli, *options: str) -> dict[str, str]:
    """Return the state of each environment that `kardinal status` shows."""
    document = json.loads(await cli("status", "my-app", "-o", "json", *options))
    return {each["name"]: each["state"] for each in document["environments"]}


async def test_gates_and_environments_are_shown_as_they_are(cli: Cli, world: World) -> None:
    agent = ScriptedAgent(world)
    await start_controller(world, standalone=False)
    await world.apply(
        pipeline(REPOSITORY, environments=[DEV, STAGING, PROD], provider="git"),
        gate("always", "true", applies_to=STAGING, namespace=POLICIES),
        gate("release", "bundle.labels.go == 'yes'", applies_to=STAGING, namespace=POLICIES, message="Ask the team"),
        gate("last", "true", applies_to=PROD, namespace=POLICIES),
        bundle("my-app-1", labels={"go": "no"}),
    )
    await world.wait_for(BUNDLE, "my-app-1", phase("Promoting"))
    await world.settle()
    assert (await shown(cli))[STAGING] == "Waiting"
    rows = (await cli("get", "steps", "my-app")).splitlines()
    assert all("PENDING" in row for row in rows if "gate " in row)
    assert not any("FAIL" in row for row in rows)

    await agent.verify(f"my-app-1-{DEV}")
    await world.wait_for(
        POLICY_GATE, f"my-app-1-{STAGING}-release", lambda obj: obj.get("status", {}).get("ready") is False
    )
    await world.settle()
    states = await shown(cli)
    assert (states[DEV], states[STAGING], states[PROD]) == ("Verified", "Blocked", "Waiting")
    told = await cli("explain", "my-app", "--env", STAGING)
    assert [line.split()[2] for line in told.splitlines() if "[org]" in line] == ["PASS", "FAIL"]
    assert "“Ask the team”" in told
    assert "BLOCKED by release" in told
    assert "PENDING" in await cli("explain", "my-app", "--env", PROD)


async def test_environments_that_are_left_out_are_shown_as_such(cli: Cli, world: World) -> None:
    await start_controller(world, standalone=False)
    intent = {"target": STAGING, "skip": [DEV]}
    await world.apply(pipeline(REPOSITORY, provider="git"), bundle("my-app-1", intent=intent))
    await world.wait_for(BUNDLE, "my-app-1", phase("Promoting"))
    states = await shown(cli)
    assert (states[DEV], states[PROD]) == ("Skipped", "NotTargeted")
    rows = {line.split()[0]: line for line in (await cli("get", "steps", "my-app")).splitlines()}
    assert "Skipped" in rows[DEV]
    assert "NotTargeted" in rows[PROD]
    assert "RESULT: SKIPPED" in await cli("explain", "my-app", "--env", DEV)
    assert "RESULT: NOT TARGETED" in await cli("explain", "my-app", "--env", PROD)


async def test_a_bundle_that_is_superseded_has_not_failed_anywhere(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    agent = ScriptedAgent(world)
    controller = await start_controller(world, standalone=False)
    await world.apply(
        pipeline(repository, environments=[DEV, environment(STAGING, approval="pr-review"), PROD]), bundle("my-app-1")
    )
    await agent.verify(f"my-app-1-{DEV}")
    await agent.step(f"my-app-1-{STAGING}", state="Promoting")
    await world.settle()
    await world.apply(bundle("my-app-2", tag="1.2.0"))
    await agent.land(f"my-app-2-{DEV}")
    await agent.verify(f"my-app-2-{DEV}")
    await agent.prepare(f"my-app-2-{STAGING}")
    await world.settle()
    assert controller.runner is None
    await start_agent(world)
    superseded = await world.wait_for(BUNDLE, "my-app-1", phase("Superseded"))
    await world.settle()
    assert superseded["status"]["environments"][DEV]["state"] == "Verified"
    states = await shown(cli, "--bundle", "my-app-1")
    assert (states[DEV], states[STAGING], states[PROD]) == ("Verified", "Superseded", "NotReached")
    assert "Failed" not in await cli("get", "steps", "my-app", "--bundle", "my-app-1")
    assert "RESULT: SUPERSEDED" in await cli("explain", "my-app", "--env", STAGING, "--bundle", "my-app-1")
