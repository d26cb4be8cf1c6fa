"""At a GitLab where every status must be successful, unrelated merge requests can be merged."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, LABEL_CREDENTIALS
from tests.agent.other_changes import answer
from tests.agent.promotion_steps import start_agent
from tests.hosts.gitlab_host import GitLabHost
from tests.support.names import DEV, TEAM
from tests.support.objects import pipeline
from tests.support.repository import sample_files
from tests.support.world import World

HELD = "the incident is not over"


@pytest.fixture
async def gitlab(tmp_path: Path) -> AsyncIterator[GitLabHost]:
    host = GitLabHost(tmp_path / "gitlab")
    try:
        host.start()
        yield host
    finally:
        await host.close()


def secret(host: GitLabHost) -> JsonObject:
    values = {"token": host.values["token"], "ca.crt": host.server.authority}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "git",
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: CREDENTIALS_GIT},
            "annotations": {ANNOTATION_HOSTS: host.server.url.partition("://")[2]},
        },
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


@pytest.mark.virtual_time("pauses between looks at a host")
async def test_statuses_let_an_unrelated_request_through_and_hold_the_other_until_the_gates_open(
    gitlab: GitLabHost, world: World
) -> None:
    project = gitlab.project
    git = gitlab.project.git
    git.commit("main", sample_files([DEV]))
    project.required_statuses = {"kardinal"}
    requests = {}
    for name, path in (("words", "notes/a.txt"), ("more", f"environments/{DEV}/more.yaml")):
        git.commit(name, {path: "x: 1\n"}, start="main")
        requests[name] = project.open(source=name, target="main", title=name, description="", by="alice")
    assert {project.status(one) for one in project.requests.values()} == {"ci_must_pass"}
    await start_agent(world)
    asking = pipeline(gitlab.url, provider="gitlab", environments=[DEV])
    asking["spec"]["git"] |= {"secretRef": {"name": "git"}, "statusOnOthers": True}
    await world.apply(secret(gitlab), asking)
    await answer(world, **{DEV.replace("-", "_"): HELD})
    await world.live(timedelta(seconds=20))
    assert project.status(project.requests[requests["words"]]) == "mergeable"
    held = project.requests[requests["more"]]
    assert project.status(held) == "ci_must_pass"
    assert project.statuses[held.sha][0].description == f"{DEV}: {HELD}"
    # Held for another reason it is still pending, which GitLab does not take twice.
    sent = len(gitlab.server.requests("POST", "/statuses/"))
    await answer(world, **{DEV.replace("-", "_"): "gate weekend: it is Sunday"})
    await world.live(timedelta(seconds=20))
    assert len(gitlab.server.requests("POST", "/statuses/")) == sent
    await answer(world)
    await world.live(timedelta(seconds=20))
    assert project.status(held) == "mergeable"
