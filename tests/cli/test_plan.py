"""`kardinal plan` shows what every environment would get, and writes nothing anywhere."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, LABEL_CREDENTIALS
from kardinal.promotion.kinds import BUNDLE
from kardinal_local.plane.audit import WRITES
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.support.names import DEV, PROD, STAGING, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.repository import IMAGE, GitRepository
from tests.support.smart_server import PASSWORD, USER, SmartServer, serving, settings_of_a_caller
from tests.support.world import World

__all__ = ["cli"]

ENVIRONMENTS = (DEV, environment(STAGING, pr=True), environment(PROD, approval="pr-review"))


@pytest.fixture
def server(repository: GitRepository, certificate: Path) -> Iterator[SmartServer]:
    """Yield an HTTPS server of `gitops.git`."""
    with serving(repository.path.parent, certificate) as server:
        yield server


def changed(diff: str) -> list[str]:
    return [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


async def test_the_diff_the_message_and_the_pull_request_of_each_environment(
    world: World, cli: Cli, repository: GitRepository
) -> None:
    await world.apply(pipeline(repository, environments=ENVIRONMENTS))
    head = repository.head()
    branches = repository.branches()
    requests = world.audit.count(verbs=WRITES)
    printed = json.loads(await cli("plan", "my-app", "--image", f"{IMAGE}:1.3.0", "-o", "json"))
    assert [entry["name"] for entry in printed["environments"]] == [DEV, STAGING, PROD]
    for entry in printed["environments"]:
        assert entry["files"] == [f"environments/{entry['name']}/kustomization.yaml"]
        assert changed(entry["diff"]) == ['-    newTag: "1.0.0"', '+    newTag: "1.3.0"']
        assert entry["message"].startswith(
            f"Promote my-app 1.3.0 to {entry['name']}\n\n{IMAGE}:1.3.0\n\nKardinal-Bundle:"
        )
    dev, staging, prod = printed["environments"]
    assert "pullRequest" not in dev
    assert staging["pullRequest"]["title"] == f"Promote my-app 1.3.0 to {STAGING}"
    assert f"{IMAGE}: 1.0.0 to 1.3.0" in prod["pullRequest"]["body"]
    assert (repository.head(), repository.branches(), world.audit.count(verbs=WRITES)) == (head, branches, requests)


async def test_digests_that_are_known_are_shown_and_those_that_will_be_looked_up_are_said(
    world: World, cli: Cli, repository: GitRepository
) -> None:
    pinned = environment(DEV, update={"pinDigest": True})
    await world.apply(pipeline(repository, environments=[pinned, STAGING]), bundle("my-app-1", tag="1.3.0"))
    note = f"{IMAGE}:1.3.0 will be written by digest, which is looked up when the Bundle starts"
    dev, staging = json.loads(await cli("plan", "my-app", "-o", "json"))["environments"]
    assert [dev["note"], "note" in staging] == [note, False]
    assert changed(dev["diff"]) == ['-    newTag: "1.0.0"', '+    newTag: "1.3.0"']
    assert note in await cli("plan", "my-app", "--env", DEV)
    known = {"reference": f"{IMAGE}:1.3.0", "digest": f"sha256:{'1' * 64}", "resolvedAt": "2026-03-03T10:00:00Z"}
    body = {"status": {"artifacts": [known]}}
    await world.client.patch(BUNDLE, "my-app-1", TEAM, body, kind=PatchType.MERGE, subresource="status")
    dev, staging = json.loads(await cli("plan", "my-app", "-o", "json"))["environments"]
    assert ["note" in dev, f"+    digest: {known['digest']}" in changed(dev["diff"])] == [False, True]
    assert changed(staging["diff"]) == ['-    newTag: "1.0.0"', '+    newTag: "1.3.0"']


async def test_a_person_reads_it_in_one_screen_for_each_environment(
    world: World, cli: Cli, repository: GitRepository
) -> None:
    await world.apply(pipeline(repository, environments=ENVIRONMENTS), bundle("my-app-1", tag="1.1.0"))
    printed = await cli("plan", "my-app", "--env", DEV)
    assert printed.splitlines()[:4] == [
        "PLAN: my-app 1.1.0 (Bundle my-app-1)",
        "",
        f"{DEV}: a commit on main changes 1 file",
        f"    Promote my-app 1.1.0 to {DEV}",
    ]
    assert STAGING not in printed.replace("environments/", "")
    assert "\x1b" not in printed
    assert "Pull request: Promote my-app 1.1.0" in await cli("plan", "my-app", "--env", PROD)


async def test_the_exit_code_says_whether_there_is_a_change(world: World, cli: Cli, repository: GitRepository) -> None:
    await world.apply(pipeline(repository))
    assert (await cli.attempt("plan", "my-app", "--image", f"{IMAGE}:1.3.0", "--exit-code")).code == 3
    done = await cli.attempt("plan", "my-app", "--image", f"{IMAGE}:1.0.0", "--exit-code")
    assert done.code == 0
    assert f"{PROD}: nothing to change on main" in done.out


async def test_environment_that_cannot_be_promoted_says_why(world: World, cli: Cli, repository: GitRepository) -> None:
    await world.apply(pipeline(repository, environments=[DEV, environment(PROD, path="environments/absent")]))
    done = await cli.attempt("plan", "my-app", "--image", f"{IMAGE}:1.3.0")
    assert done.code == 1
    assert f"{DEV}: a commit on main changes 1 file" in done.out
    assert f"{PROD}: cannot be promoted: environments/absent: no such directory" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--image", "UP:1"], "app=ghcr.io/acme/app:1.2.3"),
        (["--image", f"{IMAGE}:1", "--bundle", "x"], "exclude each other"),
        (["--image", f"{IMAGE}:1", "--env", "qa"], f"It has: {DEV}, {STAGING}, {PROD}"),
        (["--image", f"{IMAGE}:1", "--checkout", "/tmp"], "/tmp is not in a Git repository"),  # noqa: S108
        ([], "has no Bundle yet"),
    ],
)
async def test_a_mistake_names_the_remedy(
    world: World, cli: Cli, repository: GitRepository, arguments: list[str], said: str
) -> None:
    await world.apply(pipeline(repository))
    done = await cli.attempt("plan", "my-app", *arguments)
    assert done.code in (1, 2)
    assert said in done.err


async def test_the_repository_is_read_with_the_callers_own_git(
    world: World, cli: Cli, repository: GitRepository, server: SmartServer, certificate: Path
) -> None:
    await world.apply(pipeline(f"{server.url}/gitops.git", provider="git", environments=[DEV]))
    done = await cli.attempt("plan", "my-app", "--image", f"{IMAGE}:1.3.0")
    assert done.code == 1
    assert "git fetch" in done.err
    cli.environment["GIT_SSL_CAINFO"] = str(certificate)
    cli.environment |= settings_of_a_caller(world.directory)
    assert "changes 1 file" in await cli("plan", "my-app", "--image", f"{IMAGE}:1.3.0")


async def test_a_checkout_is_planned_on_what_is_checked_out(
    world: World, cli: Cli, repository: GitRepository, tmp_path: Path
) -> None:
    await world.apply(pipeline("https://git.example.com/acme/gitops", provider="git", environments=[DEV]))
    work = tmp_path / "work"
    await asyncio.to_thread(repository.git, "clone", "--quiet", str(repository.path), str(work))
    printed = await cli("plan", "my-app", "--image", f"{IMAGE}:1.3.0", "--checkout", str(work))
    assert '+    newTag: "1.3.0"' in printed


def secret(hosts: str) -> JsonObject:
    data = {"username": USER, "password": PASSWORD}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "git",
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: CREDENTIALS_GIT},
            "annotations": {ANNOTATION_HOSTS: hosts},
        },
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


async def test_the_secret_of_the_pipeline_goes_only_to_the_hosts_it_names(
    world: World, cli: Cli, repository: GitRepository, server: SmartServer, certificate: Path
) -> None:
    host = server.url.removeprefix("https://")
    git = {"url": f"{server.url}/gitops.git", "provider": "git", "secretRef": {"name": "git"}}
    await world.apply(secret("git.example.com"), pipeline(repository, environments=[DEV], git=git))
    cli.environment["SSL_CERT_FILE"] = str(certificate)
    command = ("plan", "my-app", "--image", f"{IMAGE}:1.3.0", "--use-secret")
    refused = await cli.attempt(*command)
    assert refused.code == 1
    assert f"Secret {TEAM}/git is not marked" in refused.err
    await world.apply(secret(host))
    printed = await cli(*command)
    assert "changes 1 file" in printed
    assert PASSWORD not in printed + refused.err + refused.out


async def test_conditions_are_decided_where_that_can_be_done_before_anything_runs(
    world: World, cli: Cli, repository: GitRepository
) -> None:
    tests = {"uses": "tests", "config": {"url": "https://tests.example.com/"}}

    def steps(**edit: object) -> list[JsonObject]:
        edits = {"uses": "kustomize-set-image", **edit}
        return [{"uses": "git-clone"}, tests, edits, *({"uses": name} for name in AFTER)]

    await world.apply(
        pipeline(
            repository,
            environments=(
                environment(DEV, steps=steps(**{"if": f'environment.name == "{DEV}"'})),
                environment(STAGING, steps=steps(**{"if": f'environment.name == "{DEV}"'})),
                environment(PROD, steps=steps(**{"if": "outputs.tests.passed"})),
            ),
        )
    )
    printed = json.loads((await cli.attempt("plan", "my-app", "--image", f"{IMAGE}:1.3.0", "-o", "json")).out)
    dev, staging, prod = printed["environments"]
    assert dev["files"] == [f"environments/{DEV}/kustomization.yaml"]
    assert not staging.get("files")
    assert "error" not in staging
    assert prod["error"].startswith("kustomize-set-image: if: outputs.tests.passed is not set. What a step leaves")


AFTER = ("git-commit", "git-push", "health-check")
