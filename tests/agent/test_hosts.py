"""A promotion by a pull request at a host: with the credential of its Secret, and with nothing of it to be seen."""

from __future__ import annotations

import re
from datetime import timedelta

import orjson
import pytest
from structlog.testing import capture_logs

from kardinal.objects.conditions import format_time
from kardinal.promotion.api.names import branch_name
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal.scm import MergeMethod
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, reached, start_agent, state
from tests.agent.sites import EVERYWHERE, PERSON, Site
from tests.agent.without_server import Promotions
from tests.support.fake_gitea import FakeGitea, Request
from tests.support.names import DEV, TEAM
from tests.support.repository import APPLICATION
from tests.support.smart_server import PASSWORD
from tests.support.world import World

LANDINGS = [
    *(("gitea", method) for method in ("merge", "squash", "rebase")),
    *(pytest.param("github", method, marks=pytest.mark.every_host) for method in ("merge", "squash", "rebase")),
    *(pytest.param("gitlab", method, marks=pytest.mark.every_host) for method in ("merge", "squash")),
    *(pytest.param("gitlab-ff", method, marks=pytest.mark.every_host) for method in ("rebase", "squash")),
]
"""Host, and how a person merges there."""


@EVERYWHERE
@pytest.mark.virtual_time("an hour without an agent")
async def test_a_reviewed_promotion_that_lands_without_an_agent_is_found(world: World, site: Site) -> None:
    agent = await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    with capture_logs() as lines:
        await create(world, hosted_step(site))
        status = await reached(world, "WaitingForMerge")
        (pull,) = site.proposals().values()
        assert (pull.head, pull.base, pull.state) == (branch_name(TEAM, BUNDLE_NAME, DEV), "main", "open")
        assert pull.labels == ["kardinal"]
        assert re.fullmatch(rf"{re.escape(site.url.removesuffix('.git'))}/(-/)?\w+/1", status["prURL"])
        await world.settle()
        for context in ("kardinal", f"kardinal/{APPLICATION}/{DEV}"):
            state, description = site.status(1, context)
            assert (state, DEV in description) == ("success", True)
        await world.stop(agent)
        site.repository.commit({"README": "others went on"})
        merged_at = world.clock.now()
        commit = site.merge(1)
        await world.live(timedelta(hours=1))
        await start_agent(world)
        status = await reached(world, "Verified")
    assert status["commit"] == commit
    assert site.repository.git("merge-base", "--is-ancestor", commit, "main") == ""
    assert '"1.1.0"' in site.repository.read(f"environments/{DEV}/kustomization.yaml")
    assert status["mergedAt"] == status["promotedAt"] == format_time(merged_at)
    assert status["evidence"]["approvedBy"] == [PERSON]
    visible = [await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}"), *await world.events(), *lines]
    assert PASSWORD not in orjson.dumps(visible, default=str).decode()


@pytest.mark.parametrize(("site", "method"), LANDINGS, indirect=["site"])
async def test_a_reviewed_promotion_lands_by_whatever_method(
    promotions: Promotions, site: Site, method: MergeMethod
) -> None:
    promotion = await promotions.proposed()
    site.repository.commit({"README": "others went on"})
    merged_at = promotions.clock.now()
    commit = site.merge(1, method)
    promotions.restart()
    await promotion.pass_time(timedelta(hours=1))
    await promotion.go_on()
    status = promotion.status
    assert promotion.landed
    assert status.commit == commit
    assert site.repository.git("merge-base", "--is-ancestor", commit, "main") == ""
    assert '"1.1.0"' in site.repository.read(f"environments/{DEV}/kustomization.yaml")
    assert status.merged_at == status.promoted_at == merged_at
    assert (status.outputs or {})["wait-for-merge"]["mergedBy"] == PERSON


@EVERYWHERE
async def test_a_pull_request_for_the_record_is_merged_by_the_method_of_the_pipeline(
    promotions: Promotions, site: Site
) -> None:
    before = site.repository.head()
    promotion = promotions.begin(approval="auto", pr=True, git={"mergeMethod": "squash"})
    await promotion.until(lambda: promotion.landed)
    assert [pull.state for pull in site.proposals().values()] == ["merged"]
    commit = promotion.status.commit or ""
    # One commit with one parent: neither a merge commit nor that of the branch.
    assert site.repository.git("show", "-s", "--format=%P", commit) == before
    assert site.repository.git("merge-base", "--is-ancestor", commit, "main") == ""


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
async def test_host_that_is_down_is_asked_again_and_unknown_answers_three_times(world: World, gitea: FakeGitea) -> None:
    answers = [502, 502, 502, 502, 418, 502, 418, 418]

    def outage(request: Request) -> tuple[int, dict[str, str]] | None:
        return (answers.pop(0), {"message": "teapot"}) if answers and request.method == "POST" else None

    gitea.outage = outage
    await start_agent(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea))

    async def retries() -> bool:
        return bool((await state(world)).get("retry", {}).get("attempts", 0) >= 2)

    await world.until(retries)
    assert "502" in (await state(world))["retry"]["lastError"]
    status = await reached(world, "Failed")
    assert "418" in status["message"]
    assert answers == []
    assert gitea.pulls == {}
