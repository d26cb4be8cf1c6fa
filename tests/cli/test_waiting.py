"""`--wait` of promote and retry, and `--dry-run` of create."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kardinal.cli.promote import make_request
from kardinal.cli.session import Session
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.requests import Unanswered, intents
from kardinal_local.plane.audit import WRITES
from tests.bundles.reading import phase
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.support.commands import KARDINAL
from tests.support.names import DEV, PROD, STAGING, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

__all__ = ["cli"]


@asynccontextmanager
async def _typed(cli: Cli, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command that waits; it is ended with the block."""
    process = await asyncio.create_subprocess_exec(
        KARDINAL,
        *arguments,
        env=cli.environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _first_line(process: asyncio.subprocess.Process) -> str:
    """Return what is printed once the controller has answered."""
    assert process.stdout is not None
    async with asyncio.timeout(30):
        return (await process.stdout.readline()).decode()


async def test_promote_waits_for_the_end_and_its_exit_code_is_the_outcome(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await start_controller(world)
    await start_simulator(world)
    await world.apply(pipeline(repository, environments=[DEV, STAGING]), bundle("my-app-1", intent={"target": DEV}))
    await world.wait_for(BUNDLE, "my-app-1", phase("Verified"))
    async with _typed(cli, "promote", "my-app", "--env", STAGING, "--wait") as promote:
        assert await _first_line(promote) == f"Bundle my-app-1 goes on to {STAGING}\n"
        await world.wait_for(BUNDLE, "my-app-1", phase("Verified"))
        out, err = await asyncio.wait_for(promote.communicate(), 30)
    assert promote.returncode == 0, err.decode()
    assert f"Verified in {DEV}, {STAGING}" in out.decode()


async def test_retry_waits_for_the_end_of_another_attempt(cli: Cli, world: World, repository: GitRepository) -> None:
    await start_controller(world)
    repository.commit({}, delete=[f"environments/{DEV}/kustomization.yaml"])
    await world.apply(pipeline(repository, environments=[DEV]), bundle("my-app-1"))
    await world.wait_for(BUNDLE, "my-app-1", phase("Failed"))
    async with _typed(cli, "retry", "my-app-1", "--env", DEV, "--wait") as again:
        assert await _first_line(again) == f"Bundle my-app-1 is tried again in {DEV}\n"
        await world.wait_for(BUNDLE, "my-app-1", phase("Failed"))
        _, err = await asyncio.wait_for(again.communicate(), 30)
    assert again.returncode == 1, err.decode()


async def test_a_request_without_an_answer_is_not_waited_for(
    cli: Cli, world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(intents, "_ANSWERED_WITHIN", 0.2)
    await world.apply(pipeline("https://git.example.com/acme/gitops.git"), bundle("my-app-1"))
    session = Session(world.client, TEAM)
    with pytest.raises(Unanswered, match=r"No controller has answered.*is one running"):
        await make_request(session, "my-app-1", "promote", DEV, must_be_answered=True)
    await make_request(session, "my-app-1", "promote", DEV, must_be_answered=False)
    assert "No controller has answered" in capsys.readouterr().err


async def test_a_dry_run_shows_what_goes_where_and_creates_nothing(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await world.apply(pipeline(repository, environments=[DEV, STAGING, environment(PROD, approval="pr-review")]))
    head = repository.head()
    written = world.audit.count(verbs=WRITES)
    create = ("create", "bundle", "my-app", "--image", f"{IMAGE}:1.3.0", "--dry-run")
    printed = await cli(*create)
    assert f"{DEV}: a commit on main changes 1 file" in printed
    assert f"{PROD}: a pull request to main changes 1 file" in printed
    assert printed.count('+    newTag: "1.3.0"') >= 3
    document = json.loads(await cli(*create, "--target", STAGING, "-o", "json"))
    assert [entry["name"] for entry in document["environments"]] == [DEV, STAGING]
    assert (repository.head(), world.audit.count(verbs=WRITES)) == (head, written)
    assert await world.objects(BUNDLE) == []


async def test_a_dry_run_of_a_mistake_is_one(cli: Cli, world: World, repository: GitRepository) -> None:
    await world.apply(pipeline(repository))
    create = ("create", "bundle", "my-app", "--image", f"{IMAGE}:1.3.0", "--dry-run")
    for options, said in (
        (["--wait"], "--wait needs a Bundle"),
        (["-o", "name"], "-o name needs a Bundle"),
        (["--target", "qa"], "It has"),
    ):
        done = await cli.attempt(*create, *options)
        assert done.code in (1, 2)
        assert said in done.err
