"""At a real Gitea whose branch requires `kardinal`, people go on merging what touches no environment."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from tests.agent.other_changes import answer
from tests.agent.promotion_steps import start_agent
from tests.hosts.projects import add_files, git_secret
from tests.support.gitea import GiteaProject
from tests.support.names import DEV
from tests.support.objects import pipeline
from tests.support.world import World

PATIENCE = 20.0
SOON = timedelta(seconds=20)


def propose(project: GiteaProject, files: dict[str, str], head: str) -> int:
    """Open a pull request of a person; the host may not know its branch at once."""
    add_files(project, files, by="alice", new_branch=head)
    body = {"title": "Mine", "head": head, "base": "main"}
    return int(patiently(project, "POST", f"{project.path}/pulls", body)["number"])


def patiently(project: GiteaProject, method: str, path: str, body: object) -> Any:
    """Ask until the host, which compares branches in the background, does it."""
    until = time.monotonic() + PATIENCE
    while (asked := project.ask(method, path, body, by="alice"))[0] >= 300:
        assert time.monotonic() < until, asked
        assert asked[0] in (404, 405, 409), asked
    return asked[1]


def refusal(project: GiteaProject, number: int) -> str:
    """Return why a person may not merge, once the host has compared the branches."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        status, answered = project.ask("POST", f"{project.path}/pulls/{number}/merge", {"Do": "merge"}, by="alice")
        assert status == 405, answered
        if "try again later" not in answered["message"]:
            break
    return str(answered["message"]).lower()


@pytest.mark.virtual_time("pauses between looks at a host")
async def test_an_unrelated_pull_request_can_be_merged_and_one_that_a_gate_holds_cannot(
    gitea_project: GiteaProject, world: World
) -> None:
    project = gitea_project
    project.protect("main", enable_status_check=True, status_check_contexts=["kardinal"])
    unrelated = propose(project, {"notes.txt": "words\n"}, "words")
    reaching = propose(project, {f"environments/{DEV}/more.yaml": "x: 1\n"}, "more")
    merge = f"{project.path}/pulls/{unrelated}/merge"
    method = {"Do": "merge"}
    await start_agent(world)
    asking = pipeline(project.url, provider="gitea", environments=[DEV])
    asking["spec"]["git"] |= {"secretRef": {"name": "git"}, "statusOnOthers": True}
    await world.apply(git_secret(project), asking)
    await answer(world, **{DEV.replace("-", "_"): "the incident is not over"})
    # A status of a commit that Gitea does not know yet is tried again within minutes.
    for _ in range(5):
        await world.live(timedelta(seconds=61))
    await asyncio.to_thread(patiently, project, "POST", merge, method)
    assert "required status checks" in await asyncio.to_thread(refusal, project, reaching)
    await answer(world)
    await world.live(SOON)
    await asyncio.to_thread(patiently, project, "POST", f"{project.path}/pulls/{reaching}/merge", method)
