"""Limits of GitHub: quotas of REST and of GraphQL, requests that come too quickly, commits full of statuses."""

from __future__ import annotations

import pytest

from kardinal.scm import MergeBlocked, PullRequests, RateLimited
from tests.agent.promotion_steps import (
    close_gate,
    create,
    deploy,
    open_gate,
    promotion_step,
    put_gate,
    reached,
    start_agent,
    wake,
)
from tests.hosts.fakes.faults import Fault
from tests.hosts.github_host import GitHubHost
from tests.hosts.host import new_pull_request
from tests.hosts.test_merge_queue import GATE, secret
from tests.support.clock import VirtualClock
from tests.support.names import DEV
from tests.support.repository import sample_files
from tests.support.world import World

TOO_QUICKLY = "was submitted too quickly"
LIMITED = {"errors": [{"type": "RATE_LIMITED", "message": "Wait a while."}]}


async def test_a_quota_of_graphql_that_is_used_up_leaves_the_others_to_rest(
    github: GitHubHost, github_pulls: PullRequests, moment: VirtualClock
) -> None:
    await github_pulls.open(new_pull_request())
    github.project.queues.add("main")
    github.server.graphql_remaining = 2
    with pytest.raises(MergeBlocked, match="merge queue"):
        await github_pulls.merge(1, by="kardinal")
    with pytest.raises(RateLimited) as limited:
        await github_pulls.merge(1, by="kardinal")
    assert limited.value.retry_after == 3600
    assert len(github.server.requests("POST", "/graphql")) == 2
    assert (await github_pulls.get(1)).number == 1
    assert len(await github_pulls.list("open")) == 1


async def test_a_quota_of_rest_that_is_used_up_leaves_the_others_to_graphql(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    await github_pulls.open(new_pull_request())
    github.server.remaining = 1
    assert (await github_pulls.get(1)).number == 1
    with pytest.raises(RateLimited):
        await github_pulls.get(1)
    assert github.server.graphql_remaining == 5000


async def test_a_limit_in_an_answer_of_success_is_waited_for_until_its_reset(
    github: GitHubHost, github_pulls: PullRequests, moment: VirtualClock
) -> None:
    await github_pulls.open(new_pull_request())
    github.project.queues.add("main")
    reset = str(int(moment.now().timestamp()) + 900)
    headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset, "X-RateLimit-Resource": "graphql"}
    github.server.faults.append(Fault("POST", "/graphql", status=200, body=LIMITED, headers=headers))
    with pytest.raises(RateLimited) as limited:
        await github_pulls.merge(1, by="kardinal")
    assert limited.value.transient
    assert limited.value.attempts is None
    assert limited.value.retry_after == 900
    assert (await github_pulls.get(1)).state == "open"
    moment.skip(901)
    with pytest.raises(MergeBlocked, match="merge queue"):
        await github_pulls.merge(1, by="kardinal")


@pytest.mark.parametrize("status", [403, 422])
async def test_secondary_rate_limit_delays_every_request(
    github: GitHubHost, github_pulls: PullRequests, moment: VirtualClock, status: int
) -> None:
    body = {
        "message": "Validation Failed",
        "errors": [{"resource": "PullRequest", "code": "custom", "message": TOO_QUICKLY}],
    }
    github.server.faults.append(Fault("POST", "/pulls$", status=status, body=body))
    with pytest.raises(RateLimited, match="Validation Failed") as limited:
        await github_pulls.open(new_pull_request())
    assert (limited.value.transient, limited.value.retry_after) == (True, 60)
    with pytest.raises(RateLimited):
        await github_pulls.list("open")
    moment.skip(61)
    assert (await github_pulls.open(new_pull_request())).number == 1


async def test_an_enqueueing_that_comes_too_quickly_is_no_refusal(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    await github_pulls.open(new_pull_request())
    github.project.queues.add("main")
    body = {"data": None, "errors": [{"type": "UNPROCESSABLE", "message": TOO_QUICKLY}]}
    github.server.faults.append(Fault("POST", "/graphql", status=200, body=body))
    with pytest.raises(RateLimited) as limited:
        await github_pulls.merge(1, by="kardinal")
    assert limited.value.retry_after == 60


async def test_a_commit_that_takes_no_more_statuses_is_left_alone_and_ends_no_promotion(
    github: GitHubHost, world: World
) -> None:
    github.project.git.commit("main", sample_files([DEV]))
    message = "This SHA and context has reached the maximum number of statuses."
    errors = [{"resource": "Status", "code": "custom", "message": message}]
    full = Fault("POST", "/statuses/", status=422, body={"message": "Validation Failed", "errors": errors}, times=1_000)
    github.server.faults.append(full)
    await start_agent(world)
    await deploy(world)
    await world.apply(secret(github))
    await put_gate(world, GATE)
    await open_gate(world, GATE)
    step = promotion_step(github.url, provider="github", approval="pr-review", requiredGates=[GATE])
    step["spec"]["git"] |= {"secretRef": {"name": "git"}, "branch": "main"}
    await create(world, step)
    number = (await reached(world, "WaitingForMerge"))["pullRequest"]["number"]
    for _ in range(2):
        await close_gate(world, GATE, reason="error rate 5%")
        await world.settle()
        await open_gate(world, GATE)
        await world.settle()
    # One for each context, `kardinal` and that of the environment.
    assert full.met == 2
    await github.merge(number, "squash")
    await wake(world)
    await reached(world, "Verified")
