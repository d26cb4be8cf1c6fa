"""A promotion from Bundle to Verified at a real Gitea, with the authority, the token and the rules of the host.

And what people do to one that waits: they delete its branch, push over it, and take its token back.
"""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api import names
from kardinal.promotion.kinds import PROMOTION_STEP
from tests.agent.promotion_steps import (
    BUNDLE_NAME,
    close_gate,
    create,
    deploy,
    is_held,
    open_gate,
    promotion_step,
    put_gate,
    reached,
    start_agent,
    state,
    wake,
)
from tests.hosts.gitea_host import GiteaHost, merge_by_person
from tests.hosts.host import PATIENCE
from tests.hosts.projects import git_secret
from tests.support.gitea import GiteaProject
from tests.support.names import DEV, TEAM
from tests.support.world import World

BRANCH = names.branch_name(TEAM, BUNDLE_NAME, DEV)
OVERLAY = f"environments/{DEV}/kustomization.yaml"


def hosted(project: GiteaProject, **spec: Any) -> JsonObject:
    made = promotion_step(project.url, provider="gitea", **spec)
    made["spec"]["git"]["secretRef"] = {"name": "git"}
    return made


@pytest.fixture
def project(gitea_project: GiteaProject) -> GiteaProject:
    """Return a repository with manifests, whose branch `main` needs the status `kardinal`."""
    gitea_project.protect("main", enable_status_check=True, status_check_contexts=["kardinal"])
    return gitea_project


async def waiting(world: World, project: GiteaProject) -> int:
    """Have a promotion wait for a person; returns the number of its pull request."""
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(project))
    await create(world, hosted(project, approval="pr-review"))
    status = await reached(world, "WaitingForMerge")
    await world.settle()
    return int(status["pullRequest"]["number"])


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_a_person_merges_what_the_status_lets_through(world: World, project: GiteaProject, method: str) -> None:
    number = await waiting(world, project)
    await merge_by_person(project, number, method)
    await wake(world)
    status = await reached(world, "Verified")
    head = project.api("GET", f"{project.path}/branches/main")["commit"]["id"]
    assert status["commit"] == head
    assert status["evidence"]["approvedBy"] == [project.people["alice"].name]
    content = project.api("GET", f"{project.path}/contents/{OVERLAY}")["content"]
    assert '"1.1.0"' in base64.b64decode(content).decode()


async def test_a_title_that_a_reviewer_made_a_draft_stays_and_nothing_is_merged(
    world: World, project: GiteaProject, tmp_path: Path
) -> None:
    checks = {"enable_status_check": True, "status_check_contexts": ["kardinal", "ci"]}
    project.protect("main", enable_push=True, **checks)
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(project))
    await create(world, hosted(project, approval="auto", pr=True))
    status = await reached(world, "WaitingForMerge")
    path = f"{project.path}/pulls/{status['pullRequest']['number']}"
    await GiteaHost(tmp_path, project).make_draft(status["pullRequest"]["number"])
    found = project.api("GET", path)
    project.api("PATCH", path, {"body": f"{found['body']}Wait for the incident.\n"}, by="alice")
    project.api("POST", f"{project.path}/statuses/{found['head']['sha']}", {"context": "ci", "state": "success"})
    await wake(world)
    await world.until(lambda: is_held(world))
    assert "is a draft" in (await state(world))["message"]
    title = found["title"]
    assert title.startswith("WIP: ")
    content = project.api("GET", f"{project.path}/contents/{OVERLAY}")["content"]
    project.api(
        "PUT",
        f"{project.path}/contents/{OVERLAY}",
        {
            "branch": "main",
            "message": "More",
            "sha": project.api("GET", f"{project.path}/contents/{OVERLAY}")["sha"],
            "content": base64.b64encode(base64.b64decode(content) + b"# more\n").decode(),
        },
    )
    await wake(world)
    found = project.api("GET", path)
    assert (found["state"], found["title"]) == ("open", title)
    assert found["body"].endswith("-->\nWait for the incident.\n")
    # The proposal was made again on the new base, so that its check runs again.
    project.api("POST", f"{project.path}/statuses/{found['head']['sha']}", {"context": "ci", "state": "success"})
    project.api("PATCH", path, {"title": title.removeprefix("WIP: ")}, by="alice")
    await wake(world)
    await reached(world, "Verified")


async def test_the_auto_merge_of_a_person_waits_for_a_gate_where_the_status_is_required(
    world: World, project: GiteaProject, tmp_path: Path
) -> None:
    gate = f"{BUNDLE_NAME}-{DEV}-soak"
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(project))
    await put_gate(world, gate)
    await open_gate(world, gate)
    await create(world, hosted(project, approval="pr-review", requiredGates=[gate]))
    number = (await reached(world, "WaitingForMerge"))["pullRequest"]["number"]
    await world.settle()
    await close_gate(world, gate)
    await world.settle()
    path = f"{project.path}/pulls/{number}"
    scheduled = {"Do": "merge", "merge_when_checks_succeed": True}
    async with asyncio.timeout(PATIENCE):
        while (asked := project.ask("POST", f"{path}/merge", scheduled, by="alice"))[0] != 201:
            assert "try again later" in asked[1]["message"], asked
            await asyncio.sleep(0.05)
    await wake(world)
    assert project.api("GET", path)["state"] == "open"
    await open_gate(world, gate)
    await world.settle()
    async with asyncio.timeout(PATIENCE):
        while not project.api("GET", path)["merged"]:
            await asyncio.sleep(0.05)
    await wake(world)
    status = await reached(world, "Verified")
    assert "MergedOutOfBand" not in [one["type"] for one in status["conditions"]]


async def test_an_archived_repository_is_said_so_and_the_promotion_goes_on_once_it_is_not(
    world: World, project: GiteaProject
) -> None:
    project.protect("main", enable_push=True, enable_status_check=False)
    project.api("PATCH", project.path, {"archived": True})
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(project))
    await create(world, hosted(project, approval="pr-review"))
    await world.until(lambda: is_held(world))
    assert "is archived at its host" in (await state(world))["message"]
    project.api("PATCH", project.path, {"archived": False})
    await reached(world, "WaitingForMerge")


async def test_a_branch_that_a_person_deletes_ends_the_promotion(
    world: World, project: GiteaProject, tmp_path: Path
) -> None:
    number = await waiting(world, project)
    host = GiteaHost(tmp_path, project)
    before = host.tip("main")
    host.delete_branch(BRANCH)
    async with asyncio.timeout(PATIENCE):
        # The host closes the pull request in the background.
        while project.api("GET", f"{project.path}/pulls/{number}")["state"] == "open":
            await asyncio.sleep(0.05)
    await wake(world)
    status = await reached(world, "Failed")
    assert status["conditions"][0]["reason"] == "PullRequestClosed"
    assert [one["name"] for one in project.api("GET", f"{project.path}/branches")] == ["main"]
    assert host.tip("main") == before


async def test_a_token_that_is_taken_back_while_it_waits_holds_the_promotion(
    world: World, project: GiteaProject
) -> None:
    number = await waiting(world, project)
    project.revoke("bot")
    await wake(world)
    await world.until(lambda: is_held(world))
    status = await state(world)
    assert status["state"] == "WaitingForMerge"
    assert "git.secretRef" in status["message"]
    assert "valid one into the Secret" in status["message"]
    assert project.api("GET", f"{project.path}/pulls/{number}")["state"] == "open"
    shown = [await world.get(PROMOTION_STEP, names.step_name(BUNDLE_NAME, DEV)), *await world.events()]
    assert project.people["bot"].token not in str(shown)


async def test_commit_pushed_over_the_proposal_is_the_one_that_lands(
    world: World, project: GiteaProject, tmp_path: Path
) -> None:
    number = await waiting(world, project)
    host = GiteaHost(tmp_path, project)
    host.fetch()
    proposed = host.git("show", f"{BRANCH}:{OVERLAY}")
    ours = host.tip(BRANCH)
    theirs = host.propose(BRANCH, path=OVERLAY, content=f"{proposed}\n# reviewed\n")
    assert theirs != ours
    await wake(world)
    assert host.tip(BRANCH) == theirs
    assert (await state(world))["state"] == "WaitingForMerge"
    # No gate was asked about their commit, so that a branch that requires the status does not take it.
    (told,) = [one for one in project.api("GET", f"{project.path}/statuses/{theirs}") if one["context"] == "kardinal"]
    assert told["status"] == "pending"
    project.protect("main", enable_status_check=False)
    await host.merge(number, "merge")
    await wake(world)
    status = await reached(world, "Verified")
    assert status["commit"] == host.tip("main")
    assert host.content("main", OVERLAY).endswith("# reviewed")
