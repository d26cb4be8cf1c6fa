"""A promotion by a pull request at a host: with the credential of its Secret, and with nothing of it to be seen."""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest
from structlog.testing import capture_logs

from kardinal.api import PROMOTION_STEP
from kardinal.api.names import branch_name
from kardinal.objects.conditions import format_time
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, reached, start_agent
from tests.support.fake_gitea import FakeGitea, Request
from tests.support.names import DEV
from tests.support.smart_server import PASSWORD
from tests.support.world import World


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
@pytest.mark.virtual_time("an hour without an agent")
async def test_a_reviewed_promotion_lands_by_whatever_method(world: World, gitea: FakeGitea, method: str) -> None:
    agent = await start_agent(world, allow_local_repositories=False)
    await deploy(world)
    await world.apply(git_secret(gitea))
    with capture_logs() as lines:
        await create(world, hosted_step(gitea))
        status = await reached(world, "WaitingForMerge")
        (pull,) = gitea.pulls.values()
        assert (pull.head, pull.base, pull.state) == (branch_name(BUNDLE_NAME, DEV), "main", "open")
        assert [gitea.labels[number - 1] for number in pull.labels] == ["kardinal"]
        assert status["prURL"] == f"{gitea.url.removesuffix('.git')}/pulls/1"
        await world.stop(agent)
        merged_at = world.clock.now()
        commit = gitea.merge(1, method=method)
        await world.live(timedelta(hours=1))
        await start_agent(world, allow_local_repositories=False)
        status = await reached(world, "Verified")
    assert status["commit"] == commit == gitea.repository.head()
    assert status["mergedAt"] == status["promotedAt"] == format_time(merged_at)
    assert status["evidence"]["approvedBy"] == ["alice"]
    visible = [await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}"), *await world.events(), *lines]
    assert PASSWORD not in orjson.dumps(visible, default=str).decode()


async def test_a_pull_request_for_the_record_is_merged_by_the_method_of_the_pipeline(
    world: World, gitea: FakeGitea
) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea, approval="auto", pr=True, git={"mergeMethod": "squash"}))
    status = await reached(world, "Verified")
    assert gitea.merge_methods == ["squash"]
    assert status["commit"] == gitea.pulls[1].merge_commit
    assert gitea.repository.branches() == ["main"]


async def test_a_secret_goes_to_no_host_that_it_does_not_name(world: World, gitea: FakeGitea) -> None:
    await start_agent(world)
    await world.apply(git_secret(gitea, hosts="git.example.com"))
    await create(world, hosted_step(gitea))
    status = await reached(world, "Failed")
    assert status["conditions"][0]["reason"] == "SecretNotForHost"
    assert gitea.requests == []


async def test_a_host_without_a_credential_says_what_to_name(world: World, gitea: FakeGitea) -> None:
    await start_agent(world)
    await world.apply(git_secret(gitea))
    made = hosted_step(gitea)
    del made["spec"]["git"]["secretRef"]
    await create(world, made)
    status = await reached(world, "Failed")
    assert "git.secretRef" in status["message"]


@pytest.mark.virtual_time("lives through the back-off")
async def test_a_host_that_is_down_is_asked_again_with_the_last_error_in_sight(world: World, gitea: FakeGitea) -> None:
    down = [True]
    gitea.outage = lambda request: (502, {"message": "bad gateway"}) if down[0] and request.method == "POST" else None
    await start_agent(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea))

    async def retries() -> bool:
        step = await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}")
        return bool((step.get("status") or {}).get("retry", {}).get("attempts", 0) >= 2)

    await world.until(retries)
    step = await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}")
    assert "502" in step["status"]["retry"]["lastError"]
    down[0] = False
    await reached(world, "WaitingForMerge")
    assert len(gitea.pulls) == 1


@pytest.mark.virtual_time("lives through the back-off")
async def test_an_answer_that_no_table_knows_is_tried_three_times_whatever_was_before_it(
    world: World, gitea: FakeGitea
) -> None:
    answers = [502, 502, 502, 502, 418, 502, 418, 418]

    def outage(request: Request) -> tuple[int, dict[str, str]] | None:
        return (answers.pop(0), {"message": "teapot"}) if answers and request.method == "POST" else None

    gitea.outage = outage
    await start_agent(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea))
    status = await reached(world, "Failed")
    assert "418" in status["message"]
    assert answers == []
    assert gitea.pulls == {}
