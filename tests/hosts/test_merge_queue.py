"""The commits that a merge queue tests get the status that their base requires."""

from __future__ import annotations

import base64
from datetime import timedelta

import pytest

from kardinal.objects import JsonObject
from kardinal.objects.conditions import format_time
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, LABEL_CREDENTIALS
from tests.agent.other_changes import answer, patched
from tests.agent.promotion_steps import (
    close_gate,
    create,
    deploy,
    open_gate,
    promotion_step,
    put_gate,
    reached,
    start_agent,
)
from tests.hosts.github_host import GitHubHost
from tests.support.names import DEV, TEAM
from tests.support.objects import pipeline
from tests.support.repository import sample_files
from tests.support.world import World

FILE = f"environments/{DEV}/kustomization.yaml"
GATE = f"my-app-1-{DEV}-soak"


def secret(github: GitHubHost) -> JsonObject:
    values = {"token": github.values["token"], "ca.crt": github.server.authority}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "git",
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: CREDENTIALS_GIT},
            "annotations": {ANNOTATION_HOSTS: github.server.url.partition("://")[2]},
        },
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def told(github: GitHubHost, commit: str) -> tuple[str, str]:
    """Return the last status `kardinal` of a commit."""
    found = [one for one in github.project.statuses.get(commit, []) if one.context == "kardinal"]
    return (found[-1].state, found[-1].description) if found else ("", "")


async def look(world: World) -> None:
    await world.live(timedelta(seconds=20))
    await patched(world, {"wokenAt": format_time(world.clock.now())})


@pytest.mark.virtual_time("pauses between looks at a host")
async def test_a_queued_proposal_is_told_what_its_gates_say_and_a_foreign_one_what_holds_it(
    github: GitHubHost, world: World
) -> None:
    git = github.project.git
    git.commit("main", sample_files([DEV]))
    await start_agent(world)
    await deploy(world)
    asking = pipeline(github.url, provider="github", environments=[DEV])
    asking["spec"]["git"] |= {"secretRef": {"name": "git"}, "statusOnOthers": True}
    await world.apply(secret(github), asking)
    await put_gate(world, GATE)
    await open_gate(world, GATE)
    step = promotion_step(github.url, provider="github", approval="pr-review", requiredGates=[GATE])
    step["spec"]["git"] |= {"secretRef": {"name": "git"}, "branch": "main"}
    await create(world, step)
    status = await reached(world, "WaitingForMerge")
    number = status["pullRequest"]["number"]
    tip = git.head("main")
    await answer(world, **{DEV.replace("-", "_"): "gate soak: it decides about Bundles"})

    merged = {FILE: (git.read(status["pullRequest"]["branch"], FILE) or "") + "# merged\n"}
    foreign = git.commit(f"gh-readonly-queue/main/pr-99-{tip}", {FILE: "# mine\n"}, start="main")
    unrelated = git.commit(f"gh-readonly-queue/main/pr-98-{tip}", {"README.md": "x"}, start="main")
    await look(world)
    assert told(github, foreign) == ("pending", f"{DEV}: gate soak: it decides about Bundles")
    assert told(github, unrelated) == ("success", "it changes no environment")
    git.delete(f"gh-readonly-queue/main/pr-99-{tip}")

    ours = git.commit(f"gh-readonly-queue/main/pr-{number}-{tip}", merged, start="main")
    await look(world)
    state, description = told(github, ours)
    assert (state, DEV in description) == ("success", True)
    await close_gate(world, GATE, reason="error rate 5%")
    # No delivery tells of a gate: while something is in the queue, a look a minute does.
    await world.live(timedelta(seconds=61))
    assert told(github, ours)[0] == "pending"
    assert "error rate 5%" in told(github, ours)[1]


@pytest.mark.virtual_time("pauses between looks at a host")
async def test_a_branch_named_like_one_of_a_queue_gives_a_pull_request_no_better_answer(
    github: GitHubHost, world: World
) -> None:
    git = github.project.git
    git.commit("main", sample_files([DEV]))
    await start_agent(world)
    asking = pipeline(github.url, provider="github", environments=[DEV])
    asking["spec"]["git"] |= {"secretRef": {"name": "git"}, "statusOnOthers": True}
    number, commit = github.propose_from_fork({FILE: "# mine\n"}, head="scale")
    tip = git.head("main")
    git.commit("elsewhere", {"a": "x"}, start="main")
    # The same commit, as if it were tested for a branch without environments.
    git.point(f"gh-readonly-queue/elsewhere/pr-{number}-{tip}", commit)
    await world.apply(secret(github), asking)
    await answer(world, **{DEV.replace("-", "_"): "gate soak: it decides about Bundles"})
    await world.live(timedelta(seconds=20))
    assert told(github, commit)[0] == "pending"
