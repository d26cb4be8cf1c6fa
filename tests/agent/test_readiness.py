"""A Pipeline says whether its repository can be promoted to, before any Bundle needs it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import structlog

from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, LABEL_CREDENTIALS
from kardinal.processes.isolation import Walls
from kardinal.promotion.kinds import PIPELINE, PROMOTION_STEP
from tests.agent.inputs import copying, platform_repository
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, reached, start_agent
from tests.support.names import DEV, PROD, STAGING, TEAM
from tests.support.objects import environment, pipeline
from tests.support.repository import GitRepository
from tests.support.smart_server import PASSWORD, USER, SmartServer, serving
from tests.support.world import World

READY = "the repository answers, may be written to, and has every path"


@pytest.fixture
def server(repository: GitRepository, certificate: Path) -> Iterator[SmartServer]:
    """Yield an HTTPS server of `gitops.git`, without the right to push."""
    with serving(repository.path.parent, certificate) as server:
        yield server


def secret(server: SmartServer) -> JsonObject:
    data = {"username": USER, "password": PASSWORD}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "git",
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: CREDENTIALS_GIT},
            "annotations": {ANNOTATION_HOSTS: server.url.removeprefix("https://")},
        },
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def condition(stored: JsonObject, type_: str = "RepositoryReady") -> dict[str, Any]:
    found = (stored.get("status") or {}).get("conditions", ())
    return next((entry for entry in found if entry["type"] == type_), {})


async def judged(world: World, status: str, *, reason: str = "", type_: str = "RepositoryReady") -> str:
    """Live until the condition has a status; returns its message."""

    def holds(stored: JsonObject) -> bool:
        found = condition(stored, type_)
        return found.get("status") == status and reason in found["reason"]

    stored = await world.wait_for(PIPELINE, "my-app", holds, within=timedelta(hours=1))
    return str(condition(stored, type_)["message"])


async def test_a_repository_with_every_path_is_ready_and_left_alone(world: World, repository: GitRepository) -> None:
    agent = await start_agent(world)
    await world.apply(pipeline(repository))
    assert await judged(world, "True") == READY
    writes = world.audit.count()
    fetches = agent.repositories.fetches
    await world.idle(timedelta(hours=1))
    assert (world.audit.count(), agent.repositories.fetches) == (writes, fetches)


@pytest.mark.parametrize(
    ("change", "reason", "said"),
    [
        ({"path": "environments/prdo"}, "PathsMissing", "environments/prdo: no such directory"),
        ({"path": "environments"}, "PathsMissing", "environments: holds no kustomization"),
    ],
)
async def test_a_wrong_path_is_told_with_its_environment(
    world: World, repository: GitRepository, change: dict[str, Any], reason: str, said: str
) -> None:
    await start_agent(world)
    await world.apply(pipeline(repository, environments=[DEV, environment(PROD) | change]))
    message = await judged(world, "False", reason=reason)
    assert f"environment {PROD}: {said}" in message
    assert DEV not in message.replace(f"environment {PROD}", "")


@pytest.mark.virtual_time("lives through the back-off")
async def test_a_branch_that_is_not_there_and_one_that_comes_later(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    made = pipeline(repository, environments=[DEV])
    made["spec"]["git"]["branch"] = "release"
    await world.apply(made)
    assert "has no branch release" in await judged(world, "False", reason="BranchNotFound")
    repository.git("branch", "release", "main")
    assert await judged(world, "True")


@pytest.mark.virtual_time("lives through the back-off")
async def test_a_repository_that_may_not_be_written_to_is_not_ready_until_it_may(
    world: World, repository: GitRepository, server: SmartServer
) -> None:
    repository.git("config", "http.receivepack", "false")
    await start_agent(world)
    git = {"url": f"{server.url}/gitops.git", "provider": "git", "secretRef": {"name": "git"}}
    await world.apply(secret(server), pipeline(repository, environments=[DEV], git=git))
    head = repository.head()
    assert "git.secretRef" in await judged(world, "False")
    repository.git("config", "http.receivepack", "true")
    assert await judged(world, "True")
    assert repository.head() == head


@pytest.mark.virtual_time("lives through the back-off")
async def test_a_remote_repository_is_not_ready_where_there_is_no_git(
    world: World, repository: GitRepository, server: SmartServer, tmp_path: Path
) -> None:
    repository.git("config", "http.receivepack", "true")
    await start_agent(world)
    git = {"url": f"{server.url}/gitops.git", "provider": "git", "secretRef": {"name": "git"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        await world.apply(secret(server), pipeline(repository, environments=[DEV], git=git))
        message = await judged(world, "False", reason="ProgramMissing")
        assert "git.url: this machine has no git" in message
        assert "Install git where this program runs" in message
    assert await judged(world, "True")


async def test_a_promotion_that_is_tried_again_has_the_repository_looked_at_again(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world)
    await world.apply(pipeline(repository, environments=[DEV]))
    await judged(world, "True")
    repository.git("update-ref", "-d", "refs/heads/main")
    await create(world, promotion_step(repository))
    assert "has no branch main" in await judged(world, "False", reason="BranchNotFound")


@pytest.mark.virtual_time("lives through the back-off")
async def test_a_lock_that_a_killed_push_has_left_at_the_host_is_told_with_what_to_remove(
    world: World, repository: GitRepository, server: SmartServer
) -> None:
    repository.git("config", "http.receivepack", "true")
    await start_agent(world)
    await deploy(world)
    url = f"{server.url}/gitops.git"
    git = {"url": url, "provider": "git", "secretRef": {"name": "git"}}
    await world.apply(secret(server), pipeline(repository, environments=[DEV], git=git))
    await judged(world, "True")
    lock = repository.path / "refs" / "heads" / "main.lock"
    lock.touch()
    await create(world, promotion_step(url, provider="git", git=git))
    told = await judged(world, "False", reason="BranchLocked")
    stored = await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}")
    for said in (told, stored["status"]["message"]):
        assert "File exists" in said
        assert re.search(rf" {repository.path}/\S*heads/main.lock: remove it", said)
    lock.unlink()
    await reached(world, "Verified")
    assert await judged(world, "True")


def with_input(name: str, config: dict[str, Any]) -> JsonObject:
    """Return an environment that copies from an input."""
    edits = [{"uses": "git-clone"}, {"uses": "git-clone", "as": "platform", "config": config}, copying()]
    ends = [{"uses": uses} for uses in ("git-commit", "git-push", "health-check")]
    return environment(name, steps=[*edits, *ends])


@pytest.mark.virtual_time("lives through the back-off")
@pytest.mark.parametrize("ref", [{"branch": "next"}, {"tag": "v2"}])
async def test_an_input_is_asked_for_its_ref(
    world: World, repository: GitRepository, tmp_path: Path, ref: dict[str, str]
) -> None:
    platform = platform_repository(tmp_path)
    await start_agent(world)
    (kind, name) = next(iter(ref.items()))
    url = {"url": platform.url}
    later = with_input(PROD, url | {"tag": "v${bundle.version}"})
    await world.apply(pipeline(repository, environments=[with_input(DEV, url | ref), later]))
    message = await judged(world, "False")
    assert message.startswith(f"input platform: {platform.url} has no {kind} {name}. ")
    assert kind == "branch" or message.endswith("Push it, or name another tag or a branch")
    platform.git(kind, name, "main")
    assert await judged(world, "True")


async def test_a_secret_that_a_promotion_finds_changed_has_the_repository_looked_at_again(
    world: World, repository: GitRepository, server: SmartServer
) -> None:
    """Agents may not watch Secrets: the change is noticed where one is read, and not before."""
    repository.git("config", "http.receivepack", "true")
    await start_agent(world)
    await deploy(world)
    url = f"{server.url}/gitops.git"
    git = {"url": url, "provider": "git", "secretRef": {"name": "git"}}
    await world.apply(secret(server), pipeline(repository, environments=[DEV, PROD], git=git))
    await judged(world, "True")
    repository.commit({}, delete=[f"environments/{PROD}/kustomization.yaml"])
    await create(world, promotion_step(url, provider="git", git=git))
    await reached(world, "Verified")
    await world.idle(timedelta(minutes=1))
    assert condition(await world.get(PIPELINE, "my-app"))["status"] == "True"

    changed = secret(server)
    changed["metadata"]["annotations"]["rotated"] = "today"
    await world.apply(changed)
    await world.idle(timedelta(minutes=1))
    assert condition(await world.get(PIPELINE, "my-app"))["status"] == "True"
    await create(world, promotion_step(url, provider="git", git=git, bundle="my-app-2"), name="my-app-2")
    assert f"environments/{PROD}" in await judged(world, "False", reason="PathsMissing")


async def test_each_agent_speaks_for_the_environments_of_its_shard(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await start_agent(world, shard="eu")
    await world.apply(
        pipeline(repository, environments=[DEV, environment(STAGING, shard="eu", path="environments/absent")])
    )
    assert await judged(world, "True")
    assert f"environment {STAGING}" in await judged(world, "False", type_="RepositoryReady-eu")
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.wait_for(
        PIPELINE, "my-app", lambda stored: not condition(stored, "RepositoryReady-eu"), within=timedelta(hours=1)
    )


RENDERED = [{"uses": one} for one in ("git-clone", "kustomize-build", "git-commit", "git-push", "health-check")]


@pytest.mark.parametrize("required", [False, True])
async def test_a_pipeline_that_renders_is_told_what_is_missing_to_isolate_it(
    world: World, repository: GitRepository, monkeypatch: pytest.MonkeyPatch, required: bool
) -> None:
    missing = "renderers are not isolated: Landlock cannot be had (Operation not permitted)"
    monkeypatch.setattr("kardinal.rendering.programs.find_walls", lambda: Walls(landlock="Operation not permitted"))
    with structlog.testing.capture_logs() as logs:
        await start_agent(world, require_renderer_isolation=required)
        await world.apply(pipeline(repository, environments=[environment(DEV, steps=RENDERED)]))
        if required:
            message = await judged(world, "False", reason="RenderingUnavailable")
            assert message.startswith(missing)
            assert "or start the agent without --require-renderer-isolation" in message
        else:
            message = await judged(world, "True")
            assert message.partition("; ")[2].startswith(missing)
    told = [entry for entry in logs if entry["event"] == "rendering is not isolated"]
    assert [(entry["missing"].startswith(missing), entry["refused"]) for entry in told] == [(True, required)]


async def test_a_pipeline_that_renders_nothing_is_told_nothing_of_renderers(
    world: World, repository: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kardinal.rendering.programs.find_walls", lambda: Walls(landlock="Operation not permitted"))
    await start_agent(world, require_renderer_isolation=True)
    await world.apply(pipeline(repository))
    assert await judged(world, "True") == READY
