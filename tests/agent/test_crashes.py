"""Killed between any two lines, a promotion loses nothing and does nothing twice.

The process dies at its n-th write of a status or a finalizer: either before the API server has it, so that an effect
was made is not in the status, or after, so that it is in the status and the process never learned it. Whatever it still
tries to write is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kardinal.kube import Client, ConnectionFailed
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal.scm import PullRequests
from kardinal_agent.options import AgentOptions
from kardinal_agent.program import Agent
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent, state
from tests.agent.sites import GiteaSite
from tests.agent.without_server import Promotions
from tests.support.fake_gitea import FakeGitea
from tests.support.names import DEV
from tests.support.registry import EXTENSIONS
from tests.support.repository import GitRepository
from tests.support.world import World


class Crash:
    """Lets `writes` writes through, and then none; `written` says whether the server gets the last one."""

    def __init__(self, writes: int, *, written: bool) -> None:
        self._left = writes
        self._written = written
        self._end: Callable[[], Coroutine[Any, Any, None]] | None = None
        self.happened = False
        self.over: asyncio.Task[None] | None = None

    def install(self, client: Client) -> Client:
        patch = client.patch

        async def failing(*arguments: Any, **options: Any) -> Any:
            if arguments[0] is not PROMOTION_STEP:
                return await patch(*arguments, **options)  # such as the record of the version, at the start
            if self.happened:
                raise ConnectionFailed("the process is dead")
            if self._left == 0:
                self.happened = True
                if self._written:
                    await patch(*arguments, **options)
                self.die()
                raise ConnectionFailed("the process died here")
            self._left -= 1
            return await patch(*arguments, **options)

        setattr(client, "patch", failing)  # noqa: B010 - a method of this one client
        return client

    def die(self) -> None:
        """End the process at once: a dead one tries nothing again."""
        assert self._end is not None
        self.over = asyncio.create_task(self._end())

    def ends(self, end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Set how the process is ended."""
        self._end = end


async def start_crashing(world: World, crash: Crash) -> None:
    options = AgentOptions(git_cache_dir=world.new_directory("agent-git"), allow_local_repositories=True)
    agent = await world.run(
        lambda client: Agent(options, crash.install(client), clock=world.clock, extensions=EXTENSIONS), identity="agent"
    )
    crash.ends(lambda: world.stop(agent))


async def until_crashed(world: World, crash: Crash) -> None:
    await world.until(lambda: crash.over is not None)
    assert crash.over is not None
    await crash.over


async def die_twice(world: World, repository: GitRepository, step: JsonObject, *, writes: int) -> None:
    """Have an agent die before the server has its write, and the next agent after the server has that write.

    Others commit after each of the two.
    """
    await deploy(world)
    await create(world, step)
    for left, written in ((writes, False), (0, True)):
        crash = Crash(left, written=written)
        await start_crashing(world, crash)
        await until_crashed(world, crash)
        repository.commit({"README": f"another commit, {written}"})


@pytest.mark.parametrize("writes", range(3))
async def test_a_push_is_made_once(world: World, repository: GitRepository, writes: int) -> None:
    await die_twice(world, repository, promotion_step(repository), writes=writes)

    await start_agent(world)
    status = await reached(world, "Verified")
    (commit,) = repository.promotions(DEV)
    assert status["commit"] == commit.sha


@pytest.mark.parametrize("writes", range(7))
async def test_a_pull_request_is_opened_and_merged_once(
    world: World, repository: GitRepository, reviewer: PullRequests, writes: int
) -> None:
    await die_twice(world, repository, promotion_step(repository, pr=True), writes=writes)

    await start_agent(world)
    status = await reached(world, "Verified")
    (found,) = await reviewer.list()
    (commit,) = repository.promotions(DEV)
    assert found.state == "merged"
    assert status["commit"] == commit.sha
    assert status["prURL"] == found.url


Act = Callable[[PullRequests], Any]


@pytest.mark.parametrize(
    ("act", "ends"),
    [
        (lambda reviewer: reviewer.merge(1, by="alice"), "Verified"),
        (lambda reviewer: reviewer.close(1, by="bob", comment=""), "Failed"),
    ],
    ids=["merged", "closed"],
)
async def test_decision_of_a_person_is_found_after_a_restart(
    world: World, repository: GitRepository, reviewer: PullRequests, act: Act, ends: str
) -> None:
    crash = Crash(3, written=False)
    await start_crashing(world, crash)
    await deploy(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await until_crashed(world, crash)
    assert "pullRequest" not in await state(world)
    await act(reviewer)

    await start_agent(world)
    await reached(world, ends)
    assert len(await reviewer.list()) == 1
    assert len(repository.promotions(DEV)) == (1 if ends == "Verified" else 0)


async def test_pull_request_at_a_host_is_opened_and_merged_once(world: World, gitea: FakeGitea) -> None:
    crash = Crash(2, written=False)
    await start_crashing(world, crash)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea, approval="auto", pr=True, git={"mergeMethod": "squash"}))
    await until_crashed(world, crash)
    gitea.repository.commit({"README": "another commit"})

    await start_agent(world)
    status = await reached(world, "Verified")
    (pull,) = gitea.pulls.values()
    assert status["commit"] == pull.merge_commit
    assert gitea.merge_methods == ["squash"]
    assert gitea.repository.branches() == ["main"]


@pytest.mark.parametrize("lost", ["git-push", "open-pr", "merge-pr"])
async def test_step_at_a_host_whose_result_is_lost_makes_its_effect_once(
    promotions: Promotions, site: GiteaSite, lost: str
) -> None:
    gitea = site.fake
    people = {"reviewers": ["alice"], "teamReviewers": ["platform"], "assignees": ["bob"], "labels": ["urgent"]}
    promotion = promotions.begin(approval="auto", pr=True, git={"mergeMethod": "squash", "pullRequest": people})
    while promotion.next != lost:
        await promotion.look()
    await promotion.lose()
    gitea.repository.commit({"README": "another commit"})

    await promotion.until(lambda: promotion.landed)
    (pull,) = gitea.pulls.values()
    assert promotion.status.commit == pull.merge_commit
    assert gitea.merge_methods == ["squash"]
    # A status is written once, and once more on the commit that took the place of another.
    assert len(gitea.asked("POST /statuses/.*")) <= 4
    assert (pull.reviewers, pull.teams, pull.assignees) == (["alice"], ["platform"], ["bob"])
    assert [gitea.labels[one - 1] for one in pull.labels] == ["kardinal", "urgent"]
    assert len(gitea.asked(r"POST /pulls/1/requested_reviewers")) == 2


async def test_opening_at_a_host_without_its_people_is_completed(promotions: Promotions, site: GiteaSite) -> None:
    """The process may die between the opening and the people."""
    gitea = site.fake
    people = {"reviewers": ["alice"], "teamReviewers": ["platform"], "assignees": ["bob"], "labels": ["urgent"]}
    promotion = promotions.begin(git={"pullRequest": people})
    while promotion.next != "open-pr":
        await promotion.look()
    gitea.outage = lambda request: (502, {"message": "bad gateway"}) if "requested_reviewers" in request.path else None
    await promotion.lose()
    gitea.outage = lambda request: None
    await promotion.go_on()
    assert promotion.waits
    (pull,) = gitea.pulls.values()
    assert (pull.reviewers, pull.teams, pull.assignees) == (["alice"], ["platform"], ["bob"])
    assert [gitea.labels[one - 1] for one in pull.labels] == ["kardinal", "urgent"]
