"""Faults around a promotion: its credential, its own writes, webhooks, the clock and the programs that render."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from kardinal.kube import Client, ConnectionFailed, Forbidden
from kardinal.objects import SECRET
from kardinal.objects.secret_purposes import CREDENTIALS_GIT, LABEL_CREDENTIALS
from kardinal_agent.options import AgentOptions
from kardinal_agent.program import Agent
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, is_held, promotion_step, reached, start_agent, state, wake
from tests.resilience.faults import strikes
from tests.resilience.faults.cells import FETCH_REFS, FLOWS, GET, OPEN, STATUS
from tests.resilience.faults.promotions import assert_no_secret, prepare, start, survive
from tests.resilience.faults.strikes import Day, answer
from tests.support.clock import VirtualClock
from tests.support.endpoint import answering, serving_endpoint
from tests.support.names import DEV
from tests.support.registry import EXTENSIONS
from tests.support.renderers import program
from tests.support.repository import GitRepository
from tests.support.world import World


@dataclass(frozen=True, kw_only=True)
class Credential:
    """A Secret that is of no use: why, in the status, and how many requests the host gets."""

    name: str
    reason: str
    data: dict[str, str] = field(default_factory=dict)
    hosts: str | None = None
    label: str = CREDENTIALS_GIT
    requests: int = 0

    def __str__(self) -> str:
        return self.name


CREDENTIALS = [
    Credential(name="for another host", hosts="git.example.com", reason="SecretNotForHost"),
    Credential(name="for another port", hosts="127.0.0.1", reason="SecretNotForHost"),
    Credential(name="for no host", hosts="", reason="SecretNotForHost"),
    Credential(name="not a credential of Git", label="webhook", reason="SecretNotForHost"),
    Credential(name="another token", data={"token": "not-this-one"}, reason="Blocked", requests=4),
    Credential(name="a token of two lines", data={"token": "a\r\nX-Evil: b"}, reason="Blocked"),
]


@pytest.mark.parametrize("credential", CREDENTIALS, ids=str)
async def test_a_credential_that_is_of_no_use_ends_or_holds_the_promotion(
    world: World, day: Day, credential: Credential
) -> None:
    with capture_logs() as lines:
        await start(world, day)
        secret = git_secret(day.host, hosts=credential.hosts, **credential.data)
        secret["metadata"]["labels"][LABEL_CREDENTIALS] = credential.label
        await world.apply(secret)
        await create(world, hosted_step(day.host))
        if credential.reason == "Blocked":
            await world.until(lambda: is_held(world))
        else:
            await reached(world, "Failed")
        status = await state(world)
    assert status["conditions"][0]["reason"] == credential.reason
    assert day.host.repository.branches() == ["main"]
    assert len(day.seen) <= credential.requests
    await assert_no_secret(world, lines, *(value for key, value in credential.data.items() if key == "token"))


@pytest.mark.virtual_time("lives through the back-off")
async def test_a_secret_that_may_not_be_read_is_asked_for_again(world: World, day: Day) -> None:
    refusals = [3]

    def refused(client: Client) -> Client:
        get = client.get

        async def read(resource: Any, *arguments: Any, **options: Any) -> Any:
            if resource == SECRET and refusals[0]:
                refusals[0] -= 1
                raise Forbidden(403, "Forbidden", "secrets is forbidden")
            return await get(resource, *arguments, **options)

        setattr(client, "get", read)  # noqa: B010 - a method of this one client
        return client

    await agent_with(world, refused)
    await prepare(world, day)
    await create(world, hosted_step(day.host, approval="auto"))
    await reached(world, "Verified")
    assert refusals == [0]
    assert len(day.host.repository.promotions(DEV)) == 1


async def agent_with(world: World, change: Callable[[Client], Client]) -> None:
    options = AgentOptions(git_cache_dir=world.new_directory("agent-git"), allow_local_repositories=True)
    await world.run(
        lambda client: Agent(options, change(client), clock=world.clock, extensions=EXTENSIONS), identity="agent"
    )


@pytest.mark.virtual_time("lives through the back-off")
@pytest.mark.parametrize("written", [False, True], ids=["unwritten", "written"])
@pytest.mark.parametrize("flow", ["push", "record"])
@pytest.mark.parametrize("write", range(3))
async def test_a_status_write_that_fails_is_made_again(
    world: World, day: Day, flow: str, write: int, written: bool
) -> None:
    failed: list[str] = []

    def failing(client: Client) -> Client:
        patch = client.patch
        count = [0]

        async def patched(*arguments: Any, **options: Any) -> Any:
            count[0] += 1
            if count[0] != write + 1:
                return await patch(*arguments, **options)
            failed.append("once")
            if written:
                await patch(*arguments, **options)
            raise ConnectionFailed("the connection was lost")

        setattr(client, "patch", patched)  # noqa: B010 - a method of this one client
        return client

    await agent_with(world, failing)
    await prepare(world, day)
    await create(world, hosted_step(day.host, **FLOWS[flow]))
    status = await reached(world, "Verified")
    (commit,) = day.host.repository.promotions(DEV)
    assert failed == ["once"]
    assert len(day.host.proposals()) == (0 if flow == "push" else 1)
    assert day.host.repository.git("merge-base", "--is-ancestor", commit.sha, status["commit"]) == ""


async def waiting(world: World, day: Day) -> None:
    """Have a promotion wait for a person."""
    await start(world, day)
    await prepare(world, day)
    await create(world, hosted_step(day.host))
    await reached(world, "WaitingForMerge")
    await world.settle()
    day.seen.clear()


@pytest.mark.virtual_time("five minutes")
async def test_a_merge_whose_webhook_is_lost_is_found_by_the_shared_poll(world: World, day: Day) -> None:
    await waiting(world, day)
    day.host.merge(1)
    await reached(world, "Verified", within=timedelta(minutes=6))
    assert len([line for line in day.seen if "/api/v1/" in line]) <= 12


@pytest.mark.virtual_time("counts what an instant takes")
async def test_a_webhook_that_is_delivered_often_writes_nothing(world: World, day: Day) -> None:
    await waiting(world, day)
    for _ in range(10):
        await wake(world)
    assert [line for line in day.seen if not line.startswith("GET") and "/api/v1/" in line] == []
    assert (await state(world))["state"] == "WaitingForMerge"
    assert day.host.repository.promotions(DEV) == []


async def test_a_token_that_is_revoked_while_it_waits_holds_the_promotion(world: World, day: Day) -> None:
    await waiting(world, day)
    day.strikes(".*", answer(401), times=1000)
    with capture_logs() as lines:
        await wake(world)
        await world.until(lambda: is_held(world))
    status = await state(world)
    assert status["state"] == "WaitingForMerge"
    assert "git.secretRef" in status["message"]
    assert len(day.host.proposals()) == 1
    await assert_no_secret(world, lines)


@pytest.mark.virtual_time("jumps")
@pytest.mark.parametrize(
    ("effect", "flow"),
    [(FETCH_REFS, "push"), (OPEN, "record"), (STATUS, "record"), (GET, "review")],
    ids=["fetch", "open", "status", "wait"],
)
async def test_a_clock_that_jumps_ahead_while_a_host_asks_to_wait_loses_nothing(
    world: World, day: Day, clock: VirtualClock, effect: str, flow: str
) -> None:
    def jump(day: Day, exchange: Any, path: str) -> None:
        clock.turn_to(clock.now() + timedelta(days=40))
        answer(503, headers={"Retry-After": "30"})(day, exchange, path)

    day.strikes(effect, jump)
    await start(world, day)
    await prepare(world, day)
    await create(world, hosted_step(day.host, **FLOWS[flow]))
    if flow == "review":
        await world.until(lambda: day.struck)
        day.host.merge(1)
        await wake(world)
    await reached(world, "Verified")
    assert len(day.host.repository.promotions(DEV)) == 1
    assert len(day.host.proposals()) <= 1


RENDERERS: dict[str, tuple[str | None, str]] = {
    "missing": (None, "RenderingUnavailable"),
    "failing": ("echo no such base >&2; exit 1", "EditError"),
    "killed": ("kill -9 $$", "EditError"),
}
"""Behaviour of a renderer -> its program and the reason of the end."""


@pytest.mark.parametrize("name", list(RENDERERS))
async def test_a_renderer_that_does_not_render_ends_the_promotion(
    world: World, repository: GitRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    script, reason = RENDERERS[name]
    directory = tmp_path / "programs"
    directory.mkdir()
    if script is not None:
        program(directory, "kustomize", script)
    git = shutil.which("git")
    assert git is not None
    (directory / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(directory))
    uses = ("git-clone", "kustomize-set-image", "kustomize-build", "git-commit", "git-push", "health-check")
    await start_agent(world)
    await create(world, promotion_step(repository, steps=[{"uses": one} for one in uses]))
    status = await reached(world, "Failed")
    assert status["message"].startswith("kustomize-build: ")
    assert status["conditions"][0]["reason"] == reason
    assert repository.promotions(DEV) == []


@pytest.mark.virtual_time("lives through the back-off")
@pytest.mark.parametrize("strike", [strikes.die_before, strikes.die_after])
async def test_an_endpoint_is_asked_with_one_key_by_an_agent_and_its_successor(
    world: World, day: Day, strike: strikes.Strike
) -> None:
    async with serving_endpoint(answering(503), answering()) as endpoint:
        steps: list[dict[str, Any]] = [
            {"uses": one} for one in ("git-clone", "kustomize-set-image", "git-commit", "git-push", "health-check")
        ]
        steps.insert(2, {"uses": "ask", "config": {"url": endpoint.url}})
        day.strikes("^POST .*git-receive-pack", strike)
        agent = await start(world, day, allow_step_hosts=(endpoint.host,))
        await prepare(world, day)
        await create(world, hosted_step(day.host, approval="auto", steps=steps))
        await survive(world, day, agent, allow_step_hosts=(endpoint.host,))
        await reached(world, "Verified")
    assert len({heard.headers["idempotency-key"] for heard in endpoint.heard}) == 1
    assert len(endpoint.heard) <= 3
    assert len(day.host.repository.promotions(DEV)) == 1
