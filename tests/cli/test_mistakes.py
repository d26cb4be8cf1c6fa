"""The errors of a person's mistakes: 2 for a wrong call, 1 for work that failed, and what to do next."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal_local.plane import LocalPlane
from tests.cli.conftest import Cli
from tests.cli.in_process import InProcess, cli
from tests.support.names import DEV, PROD, STAGING
from tests.support.objects import bundle, pipeline
from tests.support.world import World

__all__ = ["cli"]

REPOSITORY = "https://git.example.com/acme/gitops.git"


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["stauts"],
        ["get", "stesp", "my-app"],
        ["local", "up", "--dir", "/dev/null/x"],
        ["local", "status", "--dir", "/dev/null/x"],
        ["get"],
        ["get", "bundles"],
        ["create", "bundle", "my-app"],
        ["get", "pipelines", "-o", "xml"],
        ["local", "up", "--only", "plane", "--simulate"],
        ["local", "up", "--port", "70000"],
    ],
)
def test_a_wrong_call_ends_with_2_and_shows_the_usage(tmp_path: Path, arguments: list[str]) -> None:
    done = InProcess(tmp_path / "none", tmp_path).run(*arguments)
    assert done.code == 2
    assert "Usage:" in done.err


async def test_a_wrong_call_that_a_server_tells_ends_with_2_as_well(world: World, cli: Cli) -> None:
    await world.apply(pipeline(REPOSITORY))
    create = ["create", "bundle", "my-app", "--image", "a:1", "--label"]
    labels = ["novalue", "kardinal.io/pipeline=other", "kardinal.io/attestation=x"]
    for arguments in [["promote", "my-app"], *([*create, label] for label in labels)]:
        done = await cli.attempt(*arguments)
        assert (done.code, "Usage:" in done.err) == (2, True), arguments


FAILURES = [
    (["get", "bundles", "my-ap"], ["no Pipeline my-ap", "There are: my-app"]),
    (
        ["create", "bundle", "my-app", "--image", "a:1", "--target", "qa"],
        ["no environment qa", f"{DEV}, {STAGING}, {PROD}"],
    ),
    (["create", "bundle", "my-app", "--image", "UP:1"], ["UP"]),
    (["create", "bundle", "my-app", "--image", "web="], ["app=ghcr.io/acme/app:1.2.3"]),
    (
        ["create", "bundle", "my-app", "--image", "nginx:1", "--image", "x=docker.io/library/nginx:2"],
        ["nginx is there as 1 (images[0]) and as 2", "one version of an image"],
    ),
    (["explain", "my-app", "--env", "qa"], ["no environment qa", f"{DEV}, {STAGING}, {PROD}"]),
    (["explain", "my-app", "--env", DEV, "--bundle", "other"], ["no Bundle other", "kardinal get bundles"]),
    (["promote", "my-app", "--env", "qa"], ["no environment qa"]),
    (["init"], ["there is no file kardinal.yaml", "app: my-app"]),
    (["pr", "list"], ["no Pipeline of provider local", "--repo"]),
    (["pr", "list", "--repo", "/nowhere/at/all.git"], ["/nowhere/at/all.git"]),
    (["local", "status", "--dir", "nowhere"], ["nothing runs", "kardinal local up"]),
    (["sample", "."], ["is not empty", "kardinal sample DIRECTORY"]),
    (["sample", "/dev/null/x"], ["cannot be written"]),
]


async def test_a_failure_names_its_cause_and_the_remedy(world: World, cli: Cli) -> None:
    await world.apply(pipeline(REPOSITORY, provider="git"), bundle("my-app-1"))
    for arguments, words in FAILURES:
        done = await cli.attempt(*arguments)
        assert done.code == 1, arguments
        for word in words:
            assert word in done.err, arguments
        assert "Traceback" not in done.err


async def test_a_typo_in_the_init_file_is_answered_with_the_nearest_field(world: World, cli: Cli) -> None:
    config = world.directory / "home" / "kardinal.yaml"
    config.write_text(f"app: shop\nimage: x\ngit: {{ulr: https://git.example.com/x}}\nenviroments: [{DEV}]\n")
    done = await cli.attempt("init")
    assert done.code == 1
    assert "enviroments: unknown field; did you mean environments?" in done.err
    assert "git.ulr: unknown field; did you mean url?" in done.err


@pytest.mark.parametrize(
    ("kubeconfig", "words"),
    [
        (None, ["kubeconfig"]),
        ("not: [yaml", ["kubeconfig"]),
        ("apiVersion: v1\nkind: Config\n", ["kubeconfig"]),
    ],
    ids=["missing", "broken", "empty"],
)
async def test_a_kubeconfig_that_does_not_work_is_named(
    tmp_path: Path, kubeconfig: str | None, words: list[str]
) -> None:
    path = tmp_path / "kubeconfig"
    if kubeconfig is not None:
        path.write_text(kubeconfig)
    done = await InProcess(path, tmp_path).attempt("get", "pipelines")
    assert done.code == 1
    for word in words:
        assert word in done.err
    assert "Traceback" not in done.err


@pytest.mark.local_only("the server of a real cluster is not the test's to stop")
async def test_a_server_that_is_gone_says_how_to_start_one(prepared_plane: LocalPlane, cli: Cli) -> None:
    await prepared_plane.stop()
    done = await cli.attempt("get", "pipelines")
    assert done.code == 1
    assert "kardinal local up" in done.err
    assert "<" not in done.err


async def test_a_server_without_the_definitions_says_how_to_install_them(plane: LocalPlane, tmp_path: Path) -> None:
    done = await InProcess(plane.kubeconfig, tmp_path).attempt("get", "pipelines")
    assert done.code == 1
    assert "does not know kardinal's resources" in done.err
    assert "kubectl apply -f crds/" in done.err
