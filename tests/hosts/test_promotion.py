"""A promotion from Bundle to Verified at a real Gitea, with the authority, the token and the rules of the host."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kardinal.api import names
from kardinal.objects import JsonObject
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent, wake
from tests.support.gitea import GiteaProject
from tests.support.names import DEV, TEAM
from tests.support.repository import sample_files
from tests.support.world import World


def secret(project: GiteaProject) -> JsonObject:
    values = {"token": project.people["bot"].token, "ca.crt": project.server.authority}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "gitea",
            "namespace": TEAM,
            "labels": {names.LABEL_CREDENTIALS: names.CREDENTIALS_GIT},
            "annotations": {names.ANNOTATION_HOSTS: project.server.url.partition("://")[2]},
        },
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def hosted(project: GiteaProject, **spec: Any) -> JsonObject:
    made = promotion_step(project.url, provider="gitea", **spec)
    made["spec"]["git"]["secretRef"] = {"name": "gitea"}
    return made


@pytest.fixture
def project(gitea_project: GiteaProject) -> GiteaProject:
    """Return a repository with manifests, whose branch `main` needs the status `kardinal`."""
    files = [
        {"operation": "create", "path": path, "content": base64.b64encode(content.encode()).decode()}
        for path, content in sample_files([DEV]).items()
    ]
    body = {"branch": "main", "message": "Manifests", "files": files}
    gitea_project.api("POST", f"{gitea_project.path}/contents", body)
    gitea_project.protect("main", enable_status_check=True, status_check_contexts=["kardinal"])
    return gitea_project


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_a_person_merges_what_the_status_lets_through(world: World, project: GiteaProject, method: str) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(secret(project))
    await create(world, hosted(project, approval="pr-review"))
    status = await reached(world, "WaitingForMerge")
    number = status["pullRequest"]["number"]
    await world.settle()
    project.api("POST", f"{project.path}/pulls/{number}/merge", {"Do": method}, by="alice")
    await wake(world)
    status = await reached(world, "Verified")
    head = project.api("GET", f"{project.path}/branches/main")["commit"]["id"]
    assert status["commit"] == head
    assert status["evidence"]["approvedBy"] == [project.people["alice"].name]
    content = project.api("GET", f"{project.path}/contents/environments/{DEV}/kustomization.yaml")["content"]
    assert '"1.1.0"' in base64.b64decode(content).decode()
