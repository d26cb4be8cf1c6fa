"""A repository of a real Gitea as kardinal finds it: with manifests, and a Secret that opens it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, LABEL_CREDENTIALS
from kardinal.promotion.kinds import PIPELINE
from tests.agent.promotion_steps import deploy, reached
from tests.support.gitea import GiteaProject
from tests.support.names import TEAM
from tests.support.objects import environment, pipeline
from tests.support.repository import APPLICATION
from tests.support.world import World

__all__ = [
    "add_files",
    "begin",
    "git",
    "git_secret",
    "pipeline_of",
    "repository_condition",
    "until",
    "waits",
]

_PATIENCE = 50.0
_MOMENT = timedelta(seconds=5)


def add_files(project: GiteaProject, files: dict[str, str], *, by: str = "", **where: str) -> None:
    """Commit new files by the API of the host, as a person or as the administrator."""
    content = [
        {"operation": "create", "path": path, "content": base64.b64encode(text.encode()).decode()}
        for path, text in files.items()
    ]
    body = {"message": "Change", "files": content, "branch": "main", **where}
    project.api("POST", f"{project.path}/contents", body, by=by)


def git(project: GiteaProject, **fields: object) -> JsonObject:
    """Return `git` of a Pipeline, with the Secret that `git_secret` returns."""
    return {"url": project.url, "provider": "gitea", "secretRef": {"name": "git"}, **fields}


def git_secret(project: GiteaProject) -> JsonObject:
    """Return the Secret `git` with the token that kardinal's user has now, and the authority of the host."""
    values = {"token": project.people["bot"].token, "ca.crt": project.server.authority}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "git",
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: CREDENTIALS_GIT},
            "annotations": {ANNOTATION_HOSTS: project.server.url.partition("://")[2]},
        },
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


async def begin(world: World, project: GiteaProject, *pipelines: JsonObject) -> None:
    """Have Pipelines in the repository, with its Secret, and deploy in each of their environments what is promoted."""
    await world.apply(git_secret(project))
    for each in pipelines:
        for one in each["spec"]["environments"]:
            await deploy(world, one["name"])
        await world.apply(each)


def pipeline_of(project: GiteaProject, name: str, environment_name: str, **fields: Any) -> JsonObject:
    """Return a Pipeline of one environment; `fields` are those of the environment, `git` those of the Pipeline's."""
    given = fields.pop("git", {})
    health = {"resource": {"name": APPLICATION, "namespace": environment_name}, "timeout": "12h"}
    only = environment(environment_name, health=health, **fields)
    return pipeline("", name=name, environments=[only], git={**git(project), **given})


async def until(world: World, asked: Callable[[], Awaitable[Any]]) -> Any:
    """Return the answer once there is one: the host compares branches and lists commits in its own time."""
    async with asyncio.timeout(_PATIENCE):
        while not (found := await asked()):
            await world.live(_MOMENT)
            await asyncio.sleep(0.05)
    return found


async def waits(world: World, bundle_name: str, environment_name: str) -> int:
    """Live until a promotion waits for the merge of its pull request; returns the number of that."""
    status = await reached(world, "WaitingForMerge", environment_name, bundle=bundle_name)
    await world.settle()
    return int(status["pullRequest"]["number"])


async def repository_condition(world: World, pipeline_name: str) -> JsonObject:
    """Return the condition RepositoryReady of a Pipeline, empty before it was looked at."""
    stored = await world.get(PIPELINE, pipeline_name)
    conditions = (stored.get("status") or {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == "RepositoryReady"), {})
