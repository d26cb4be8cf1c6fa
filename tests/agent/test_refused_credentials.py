"""A token that is refused ends nothing: what waits goes on with the next one, and its pull request stays as it is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api.names import branch_name
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, is_held, put, reached, start_agent, state, wake
from tests.agent.sites import Site
from tests.agent.test_attempts import admit_again
from tests.agent.test_open_pull_requests import held, waiting
from tests.agent.test_readiness import judged
from tests.support.fake_gitea import FakeGitea
from tests.support.names import DEV, PROD, TEAM
from tests.support.objects import environment, pipeline
from tests.support.secret_values import secret_value
from tests.support.world import World

pytestmark = pytest.mark.virtual_time("lives through the back-off")

WRONG = secret_value("a token that is good for nothing")


async def blocked(world: World) -> JsonObject:
    """Live until the promotion is held for a person; returns its status."""
    await world.until(lambda: is_held(world))
    return await state(world)


async def test_a_review_outlives_a_token_that_is_refused(world: World, site: Site) -> None:
    await waiting(world, site)
    await world.apply(git_secret(site, token=WRONG))
    await wake(world)
    status = await blocked(world)
    assert status["state"] == "WaitingForMerge"
    assert held(status) == ("True", "Blocked")
    assert "git.secretRef" in status["message"]
    assert "into the Secret" in status["message"]
    assert site.proposals()[1].state == "open"
    await world.live(timedelta(minutes=30))
    assert (await state(world))["state"] == "WaitingForMerge"

    await world.apply(git_secret(site))
    await world.live(timedelta(minutes=7))
    status = await state(world)
    assert (status["state"], held(status)[0]) == ("WaitingForMerge", "False")
    assert "retry" not in status

    # The first that reads a changed Secret lets the others go on, which would wait for minutes by their back-off.
    await world.apply(git_secret(site, token=WRONG))
    await wake(world)
    await blocked(world)
    await world.live(timedelta(minutes=15))
    await world.apply(git_secret(site))
    assert held(await state(world))[0] == "True"
    await create(world, hosted_step(site, environment=PROD, bundle="my-app-2"), name="my-app-2")
    await world.live(timedelta(seconds=5))
    assert held(await state(world))[0] == "False"
    site.merge(1)
    await wake(world)
    await reached(world, "Verified")
    assert len(site.proposals()) == 2


async def test_a_restart_with_a_token_that_is_refused_ends_no_review(world: World, site: Site) -> None:
    agent = await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    await reached(world, "WaitingForMerge")
    await world.apply(git_secret(site, token=WRONG))
    await world.stop(agent)
    await start_agent(world)
    assert (await blocked(world))["state"] == "WaitingForMerge"
    await world.apply(git_secret(site))
    site.merge(1)
    await reached(world, "Verified")


async def test_a_promotion_waits_for_a_credential_that_git_refuses(world: World, site: Site) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site, token=WRONG))
    git = {"url": site.url, "provider": site.provider, "secretRef": {"name": "git"}}
    await world.apply(pipeline(site.url, environments=[environment(DEV)], git=git))
    assert "refuses the credentials. Correct the Secret" in await judged(world, "False", reason="AuthenticationFailed")
    await create(world, hosted_step(site))
    assert "refuses the credentials. Correct the Secret" in (await blocked(world))["message"]
    await world.apply(git_secret(site))
    await reached(world, "WaitingForMerge")
    assert await judged(world, "True")


async def test_another_attempt_goes_on_with_an_open_pull_request_and_its_approvals(
    world: World, gitea: FakeGitea
) -> None:
    limited = [{"uses": uses} for uses in ("git-clone", "kustomize-set-image", "git-commit", "git-push", "open-pr")]
    steps = [*limited, {"uses": "wait-for-merge", "timeout": "10m"}, {"uses": "health-check"}]
    await waiting(world, gitea, steps=steps)
    gitea.approve(1, by="alice")
    head = gitea.repository.head(branch_name(TEAM, BUNDLE_NAME, DEV))
    await world.live(timedelta(minutes=11))
    assert (await state(world))["state"] == "Failed"
    (comment,) = gitea.pulls[1].comments
    assert f"{DEV} has failed" in comment
    assert f"kardinal retry {BUNDLE_NAME} --env {DEV}" in comment
    assert gitea.status(1, "kardinal")[0] == "pending"
    assert "the promotion has failed" in gitea.status(1, "kardinal")[1]

    await put(world, hosted_step(gitea, attempt=2, steps=steps))
    await admit_again(world)
    again = await reached(world, "WaitingForMerge")
    assert again["pullRequest"]["number"] == 1
    assert gitea.repository.head(branch_name(TEAM, BUNDLE_NAME, DEV)) == head
    assert [pull.state for pull in gitea.pulls.values()] == ["open"]
    (comment,) = gitea.pulls[1].comments
    assert "goes on with this pull request" in comment
    assert gitea.status(1, "kardinal")[0] == "success"
    gitea.merge(1)
    await wake(world)
    assert (await reached(world, "Verified"))["evidence"]["approvedBy"] == ["alice"]
