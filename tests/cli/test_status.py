"""`kardinal status` and `kardinal watch` beside a promotion that is really under way."""

from __future__ import annotations

import asyncio
import json

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.steps.pull_request_text import waiting_message
from kardinal_agent.health.argocd_application import APPLICATION
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.cli.terminal import terminal
from tests.health.served_tools import put, serve
from tests.support.commands import KARDINAL
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.promoted import step_of
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["cli"]

REPOSITORY = "https://git.example.com/acme/gitops.git"


async def _held_before_prod(world: World, repository: GitRepository) -> None:
    """Return with a Bundle that waits before prod for a gate with a message of its author."""
    await start_controller(world)
    await start_simulator(world)
    await world.apply(
        pipeline(repository, environments=[STAGING, environment(PROD, approval="pr-review")]),
        gate("release", 'bundle.labels.go == "yes"', namespace=POLICIES, message="Ask the release team"),
        bundle("my-app-1", tag="1.29.0", labels={"go": "no"}),
    )
    await world.wait_for(
        POLICY_GATE, f"my-app-1-{PROD}-release", lambda obj: obj.get("status", {}).get("ready") is False
    )
    await world.settle()


async def test_status_shows_what_holds_who_opens_it_and_what_to_type_next(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await _held_before_prod(world, repository)
    printed = await cli("status")
    words = " ".join(printed.split())
    assert "BUNDLE my-app-1 (1.29.0" in words
    assert f"{STAGING} {PROD} 1.29.0 - Verified Blocked" in words
    assert f"{PROD}: held by release" in words
    assert "gate release [org] FAIL" in words
    assert "“Ask the release team”" in words
    assert f"who may change PolicyGate {POLICIES}/release can" in words
    assert f"NEXT kardinal explain my-app --env {PROD}" in words
    document = json.loads(await cli("status", "my-app", "-o", "json"))
    assert [each["state"] for each in document["environments"]] == ["Verified", "Blocked"]
    assert document["environments"][0]["runs"] == "1.29.0"
    assert document["next"][0]["command"] == f"kardinal explain my-app --env {PROD}"

    # A person who follows it on a terminal is told how to merge.
    async with terminal(cli, "watch", "my-app", columns=80) as screen:
        await screen.says("Blocked")
        await world.apply(gate("release", "true", namespace=POLICIES))
        await world.wait_for(
            PROMOTION_STEP, f"my-app-1-{PROD}", lambda obj: obj.get("status", {}).get("state") == "WaitingForMerge"
        )
        await screen.says("kardinal pr merge 1")
        assert await screen.interrupt() == 130


async def test_create_bundle_waits_for_the_end_and_says_each_change(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await start_controller(world)
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=[DEV]))
    process = await asyncio.create_subprocess_exec(
        *(KARDINAL, "create", "bundle", "my-app", "--image", "ghcr.io/acme/my-app:1.2.3", "--wait"),
        env=cli.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        name = await _created(process)
        await world.wait_for(BUNDLE, name, lambda obj: obj.get("status", {}).get("phase") == "Verified")
        out, _ = await asyncio.wait_for(process.communicate(), 30)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    lines = [line.partition("  ")[2] or line for line in out.decode().splitlines()]
    assert f"Bundle {name} (1.2.3): Verified: Verified in {DEV}" in lines


async def _created(process: asyncio.subprocess.Process) -> str:
    """Return the name in the first line that the command prints."""
    assert process.stdout is not None
    async with asyncio.timeout(30):
        line = (await process.stdout.readline()).decode()
    return line.removeprefix("bundle.kardinal.io/").removesuffix(" created\n")


async def test_waiting_for_a_bundle_that_was_superseded_ends_with_3(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    process = await asyncio.create_subprocess_exec(
        *(KARDINAL, "create", "bundle", "my-app", "--image", "ghcr.io/acme/my-app:1.2.3", "--wait"),
        env=cli.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        name = await _created(process)
        status = {"phase": "Superseded", "observedGeneration": 1}
        await world.client.patch(BUNDLE, name, TEAM, {"status": status}, subresource="status")
        await asyncio.wait_for(process.communicate(), 30)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 3


async def test_without_a_bundle_or_a_pipeline_status_says_what_to_create(cli: Cli, world: World) -> None:
    done = await cli.attempt("status")
    assert done.code == 1
    assert "kardinal init" in done.err
    await world.apply(pipeline(REPOSITORY))
    assert "kardinal create bundle my-app --image REPOSITORY:TAG" in await cli("status")
    await world.apply(pipeline(REPOSITORY, name="other"))
    done = await cli.attempt("status")
    assert done.code == 1
    assert "Choose one: my-app, other" in done.err


async def test_commands_that_show_what_a_controller_does_say_that_none_runs(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("my-app-1"))
    told = "No controller has looked at Pipeline my-app yet: is one running?"
    # A Pipeline that was made a moment ago is not remarked upon; the clock of a real server can not be moved past that.
    async with asyncio.timeout(30):
        while told not in " ".join((await cli("status", "my-app")).split()):
            pass
    for command in (("get", "steps", "my-app"), ("explain", "my-app", "--env", DEV)):
        assert told in (await cli.attempt(*command)).err


async def test_a_pause_is_shown_with_the_command_that_ends_it(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("my-app-1"))
    await cli("pause", "my-app", "--reason", "audit week")
    words = " ".join((await cli("status", "my-app")).split())
    assert "my-app: held: audit week" in words
    assert "NEXT kardinal resume my-app" in words


PULL = {"number": 7, "url": "https://git.example.com/acme/gitops/pulls/7", "branch": "kardinal/team/my-app-1/prod"}


def _condition(name: str, message: str) -> JsonObject:
    moment = "2026-01-01T00:00:00Z"
    return {"type": name, "status": "True", "reason": name, "message": message, "lastTransitionTime": moment}


async def _waits_for_its_merge(world: World, message: str) -> None:
    """Return with a Bundle in whose only environment a pull request is open."""
    (_, way, _) = await world.apply(
        bundle("my-app-1"), pipeline(REPOSITORY, environments=["prod"]), step_of("my-app-1", "prod")
    )
    await _notes(world, state="WaitingForMerge", message=message, pullRequest=PULL, observedGeneration=1)
    seen = {"observedGeneration": 1}
    await world.client.patch(PIPELINE, way["metadata"]["name"], TEAM, {"status": seen}, subresource="status")
    status = {"phase": "Promoting", "observedGeneration": 1}
    await world.client.patch(BUNDLE, "my-app-1", TEAM, {"status": status}, subresource="status")


async def _notes(world: World, **status: object) -> None:
    """Write into the status of the step."""
    name = step_of("my-app-1", "prod")["metadata"]["name"]
    await world.client.patch(PROMOTION_STEP, name, TEAM, {"status": status}, subresource="status")


@pytest.mark.virtual_time("waits for a minute, which an agent has to take a step")
async def test_status_says_that_no_agent_serves_the_shard_of_an_environment(cli: Cli, world: World) -> None:
    await start_controller(world)
    await world.apply(pipeline(REPOSITORY, provider="git", environments=[environment(DEV, shard="eu")]))
    await world.apply(bundle("my-app-1"))
    await world.wait_for(
        PROMOTION_STEP, f"my-app-1-{DEV}", lambda obj: "no agent" in (obj.get("status") or {}).get("message", "")
    )
    words = " ".join((await cli("status")).split())
    assert f"{DEV}: no agent serves shard eu: " in words
    assert f"NEXT kardinal-agent --shard=eu to serve {DEV}" in words
    assert "no agent serves shard eu" in await cli("explain", "my-app", "--env", DEV)


async def test_status_says_what_an_open_pull_request_waits_for(cli: Cli, world: World) -> None:
    told = f"prod: {PULL['url']} was merged although a gate was closed"
    await _waits_for_its_merge(world, waiting_message(str(PULL["url"])))
    words = " ".join((await cli("status")).split())
    assert f"waits for its merge: {PULL['url']} NEXT" in words
    assert "MergedOutOfBand" not in words
    assert json.loads(await cli("status", "-o", "json"))["pullRequests"][0]["why"] is None

    lacks = f"{PULL['url']} lacks, of git.pullRequest: reviewers bob (no user has this name)"
    await _notes(world, conditions=[_condition("NotAssigned", lacks)])
    assert f"prod: {lacks}" in " ".join((await cli("status")).split())
    assert f"prod: {lacks}" in json.loads(await cli("status", "-o", "json"))["notes"]

    await _notes(world, message='the host does not merge yet: Required status check "build" is expected.')
    words = " ".join((await cli("status")).split())
    assert f"prod: pull request #7 waits for its merge: {PULL['url']} the host does not merge yet: Required" in words
    document = json.loads(await cli("status", "-o", "json"))
    assert document["pullRequests"][0]["why"].endswith('"build" is expected.')

    flagged = {"conditions": [_condition("MergedOutOfBand", told)]}
    await world.client.patch(BUNDLE, "my-app-1", TEAM, {"status": flagged}, subresource="status")
    for command in (("status",), ("explain", "my-app", "--env", "prod")):
        assert f"MergedOutOfBand: {told}" in " ".join((await cli(*command)).split())


async def test_status_says_which_field_of_a_pipeline_has_no_effect(cli: Cli, world: World) -> None:
    await start_controller(world)
    await world.apply(pipeline(REPOSITORY, provider="git", environments=[DEV], pullSecretRef={"name": "pull"}))
    await world.wait_for(PIPELINE, "my-app", lambda obj: "--allow-registries" in str(obj.get("status")))
    words = " ".join((await cli("status")).split())
    assert "Pipeline my-app: spec.pullSecretRef: " in words
    assert "spec.pullSecretRef" in await cli("get", "pipelines", "-o", "wide")


@pytest.mark.local_only("the objects of a tool are written by hand")
async def test_status_has_the_nearest_name_of_an_object_that_does_not_exist(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await serve(world, APPLICATION)
    await put(world, APPLICATION, TEAM, name="my-app-blue", spec={})
    await start_controller(world)
    named = {"argocd": {"name": "my-app-bleu", "namespace": TEAM}}
    await world.apply(pipeline(repository, environments=[environment(DEV, health=named)]), bundle("my-app-1"))
    await world.wait_for(
        PROMOTION_STEP, f"my-app-1-{DEV}", lambda obj: "to exist" in (obj.get("status") or {}).get("message", "")
    )
    words = " ".join((await cli("status")).split())
    assert "did you mean my-app-blue?" in words
