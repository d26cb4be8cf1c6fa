"""`kardinal init --from`: a Pipeline for a repository that is there already."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal_local import sample
from tests.cli.conftest import Cli
from tests.cli.in_process import InProcess
from tests.support.repository import create_repository

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec: {template: {spec: {containers: [{name: app, image: "ghcr.io/acme/NAME:1.0"}]}}}
"""


def _cli(directory: Path) -> Cli:
    """Return the command where there is no cluster and no kubeconfig."""
    cli = InProcess(directory / "none", directory)
    del cli.environment["KUBECONFIG"]
    return cli


def _overlay(namespace: str) -> str:
    return f"namespace: {namespace}\nresources: [../../base]\n"


async def test_environments_are_read_in_their_order_with_their_images(tmp_path: Path) -> None:
    repository = create_repository(
        tmp_path / "gitops.git", {path: content.decode() for path, content in sample.files().items()}
    )
    cli = _cli(tmp_path)
    done = await cli.attempt("init", "--from", str(repository.path))
    assert done.code == 0, done.err
    made = yaml.safe_load(done.out)
    assert made["metadata"] == {"name": "podinfo", "namespace": "default"}
    assert made["spec"]["git"] == {"url": repository.path.as_uri(), "branch": "main", "provider": "local"}
    assert made["spec"]["environments"] == [
        {"name": "dev", "path": "environments/dev"},
        {"name": "staging", "path": "environments/staging"},
        {"name": "prod", "path": "environments/prod", "approval": "pr-review"},
    ]
    assert "guessed: environments and their order, from the directories environments/*: dev -> staging" in done.err
    assert "guessed: images: ghcr.io/acme/podinfo\n" in done.err
    assert "kardinal plan podinfo --image ghcr.io/acme/podinfo:TAG" in done.err
    assert "not known" not in done.err
    (tmp_path / "pipeline.yaml").write_text(done.out)
    assert await cli("lint", "-f", "pipeline.yaml") == "1 resource is fine\n"


async def test_applications_regions_and_namespaces_are_told_apart(tmp_path: Path) -> None:
    files = {"charts/x/Chart.yaml": "name: x\n"}
    for name in ("shop", "mail"):
        files[f"apps/{name}/base/kustomization.yaml"] = "resources: [deployment.yaml]\n"
        files[f"apps/{name}/base/deployment.yaml"] = DEPLOYMENT.replace("NAME", f"{name}-web")
        for environment in ("prod-us", "dev", "prod-eu"):
            path = f"apps/{name}/overlays/{environment}/kustomization.yaml"
            files[path] = _overlay(f"{name}-{environment}")
    repository = create_repository(tmp_path / "gitops.git", files)
    done = await _cli(tmp_path).attempt("init", "--from", repository.url, "-n", "team")
    assert done.code == 0, done.err
    mail, shop = yaml.safe_load_all(done.out)
    assert [made["metadata"] for made in (mail, shop)] == [
        {"name": "mail-web", "namespace": "team"},
        {"name": "shop-web", "namespace": "team"},
    ]
    found = {entry["name"]: entry for entry in shop["spec"]["environments"]}
    assert list(found) == ["dev", "prod-eu", "prod-us"]
    assert [entry["dependsOn"] for entry in found.values()] == [[], ["dev"], ["dev"]]
    assert found["prod-us"]["health"] == {"resource": {"namespace": "shop-prod-us"}}
    assert "dev -> prod-eu and prod-us" in done.err
    assert "not known: the Helm charts in charts/x" in done.err


async def test_unknown_layout_is_reported_and_prints_nothing_else(tmp_path: Path) -> None:
    kustomization = 'namespace: n\nresources: [../../../../etc, "deployment.yaml"]\n'
    files = {"envs/blue\x1b[2J/kustomization.yaml": kustomization, "envs/green/kustomization.yaml": "resources: []\n"}
    repository = create_repository(tmp_path / "gitops.git", files)
    done = await _cli(tmp_path).attempt("init", "--from", str(repository.path))
    assert done.code == 0, done.err
    assert all(line.isprintable() for line in (done.out + done.err).splitlines())
    assert "leaves the repository" in done.err
    assert "not known: the place of blue\\x1b[2J, green in the order: set dependsOn" in done.err
    assert "not known: images: no container was found" in done.err
    assert "envs/green names no namespace; it is taken to be green" in done.err


async def test_a_place_without_a_repository_or_an_environment_is_named(tmp_path: Path) -> None:
    cli = _cli(tmp_path)
    empty = create_repository(tmp_path / "empty.git", {"README.md": "nothing\n"})
    done = await cli.attempt("init", "--from", str(empty.path))
    assert (done.code, done.out) == (1, "")
    assert "no kustomization that stands for an environment" in done.err
    for source, words in (
        ("nowhere", "there is no directory"),
        (".", "not in a Git repository"),
        ("ftp://x/y", "ftp"),
    ):
        done = await cli.attempt("init", "--from", source)
        assert (done.code, done.out) == (1, "")
        assert words in done.err
        assert "Traceback" not in done.err
    assert (await cli.attempt("init", "--from", ".", "-f", "x")).code == 2


def _environments(root: str, *names: str) -> dict[str, str]:
    return {f"{root}/{name}/kustomization.yaml": _overlay(name) for name in names} | {
        f"{root}/{name}/deployment.yaml": DEPLOYMENT.replace("NAME", "web") for name in names
    }


def _cloned(source: Path, to: Path, origin: str) -> Path:
    subprocess.run(["git", "clone", "--quiet", str(source), str(to)], check=True)
    subprocess.run(["git", "-C", str(to), "remote", "set-url", "origin", origin], check=True)
    return to


async def _proposed(directory: Path, files: dict[str, str], *, origin: str = "") -> tuple[list[Any], str]:
    """Return the Pipelines of a repository, cloned from `origin` where that is given, and what was said of them."""
    own = {path: text.replace("[../../base]", "[deployment.yaml]") for path, text in files.items()}
    source = create_repository(directory / "gitops.git", own).path
    if origin:
        source = await asyncio.to_thread(_cloned, source, directory / "clone", origin)
    done = await _cli(directory).attempt("init", "--from", str(source))
    assert done.code == 0, done.err
    return list(yaml.safe_load_all(done.out)), done.err


def _approvals(made: Any) -> dict[str, str]:
    return {one["name"]: one.get("approval", "auto") for one in made["spec"]["environments"]}


async def test_applications_whose_workloads_have_one_name_get_pipelines_of_different_names(tmp_path: Path) -> None:
    files = _environments("teams/red/shop", "dev", "prod") | _environments("teams/blue/shop", "dev", "prod")
    made, _ = await _proposed(tmp_path, files)
    assert [one["metadata"]["name"] for one in made] == ["web-blue", "web-red"]


@pytest.mark.parametrize(
    ("names", "reviewed"),
    [
        (("prod-eu", "prod-us"), {"prod-eu", "prod-us"}),
        (("dev", "production", "production-canary"), {"production", "production-canary"}),
        (("nonprod", "pre-prod", "prod"), {"prod"}),
        (("dev", "europe"), {"europe"}),
        (("dev",), set()),
    ],
)
async def test_possible_production_is_never_written_to_unasked(
    tmp_path: Path, names: tuple[str, ...], reviewed: set[str]
) -> None:
    (made,), said = await _proposed(tmp_path, _environments("overlays", *names))
    assert {name for name, approval in _approvals(made).items() if approval == "pr-review"} == reviewed
    assert ("guessed: approval" in said) is bool(reviewed)


async def test_production_waits_for_what_is_not_yet_production(tmp_path: Path) -> None:
    (made,), said = await _proposed(tmp_path, _environments("overlays", "prod", "non-prod", "pre-prod"))
    assert [one["name"] for one in made["spec"]["environments"]] == ["non-prod", "pre-prod", "prod"]
    assert "non-prod -> pre-prod -> prod" in said


async def test_directories_that_only_sound_like_environments_are_none(tmp_path: Path) -> None:
    files = _environments("apps", "dev", "prod", "pre-post-sync", "promotion-app", "release-notes", "base")
    (made,), _ = await _proposed(tmp_path, files)
    assert list(_approvals(made)) == ["dev", "prod"]


@pytest.mark.parametrize(
    ("origin", "provider"),
    [("git@github.com:acme/gitops.git", "github"), ("git@git.example.com:acme/gitops.git", "git")],
)
async def test_production_is_reviewed_whatever_host_the_clone_is_from(
    tmp_path: Path, origin: str, provider: str
) -> None:
    (made,), said = await _proposed(tmp_path, _environments("envs", "dev", "prod"), origin=origin)
    assert made["spec"]["git"]["url"] == origin
    assert made["spec"]["git"]["provider"] == provider
    assert _approvals(made) == {"dev": "auto", "prod": "pr-review"}
    assert ("not known: git.provider" in said) is (provider == "git")
    (tmp_path / "pipeline.yaml").write_text(yaml.safe_dump(made))
    done = await _cli(tmp_path).attempt("lint", "-f", "pipeline.yaml")
    assert "spec.git.secretRef: a repository by ssh needs a key" in done.err
    assert ("or another git.provider" in done.err) is (provider == "git")


async def test_an_address_like_that_of_a_clone_is_not_taken_for_a_directory(tmp_path: Path) -> None:
    cli = _cli(tmp_path)
    cli.environment["GIT_SSH_COMMAND"] = "false"
    done = await cli.attempt("init", "--from", "git@git.example.com:acme/gitops.git")
    assert done.code == 1
    assert "there is no directory" not in done.err
    assert done.err.startswith("Error: git: ")
