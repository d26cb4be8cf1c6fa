"""Attacks on environments with a branch of their own: names that dodge a gate, and a forged record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.policy_gate import GateMatch
from kardinal.promotion.policy.binding import Binding, places_of
from kardinal.promotion.steps.branch_layout import read_state
from kardinal.promotion.translation.errors import InvalidSpec
from kardinal.tree.edit import EditError
from kardinal.tree.overlay import Overlay
from tests.agent.promotion_steps import put, reached, start_agent
from tests.agent.test_branch_layout import BRANCH, own_branch, promote
from tests.support.names import DEV
from tests.support.objects import bundle as bundle_object
from tests.support.objects import environment
from tests.support.repository import IMAGE, GitRepository, create_repository
from tests.support.world import World
from tests.translation.values import bundle, pipeline, translated

URL = "https://git.example.org/acme/gitops"
COPY = [{"uses": name} for name in ("git-clone", "kustomize-set-image", "git-commit", "git-push", "health-check")]


def branches(*named: str | None, branch: str = "main", layout: str = "branch") -> Pipeline:
    """Return a Pipeline whose environments have these branches."""
    ways: list[str | JsonObject] = [
        environment(f"e{index}", steps=COPY, **({"branch": name} if name else {})) for index, name in enumerate(named)
    ]
    git = {"url": URL, "provider": "git", "layout": layout, "branch": branch}
    return pipeline(*ways, git=git)


def problems(way: Pipeline) -> list[tuple[str, str]]:
    with pytest.raises(InvalidSpec) as caught:
        translated(way, bundle(), local=False)
    return [(problem.field, problem.reason) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("branch", "reason"),
    [
        ("main", "DuplicateBranch"),
        ("Main", "DuplicateBranch"),
        ("main/prod", "DuplicateBranch"),
        ("refs/heads/main", "InvalidBranch"),
        ("refs/heads/env/prod", "InvalidBranch"),
        ("kardinal/app-1/prod", "InvalidBranch"),
        ("KARDINAL/app-1/prod", "InvalidBranch"),
    ],
)
def test_a_branch_has_no_other_use(branch: str, reason: str) -> None:
    assert ("spec.environments[0].branch", reason) in problems(branches(branch))


@pytest.mark.parametrize("other", ["env/e0", "Env/E0", "env/e0/x", "env"])
def test_two_environments_do_not_have_one_branch(other: str) -> None:
    assert problems(branches(None, other)) == [("spec.environments[1].branch", "DuplicateBranch")]


def test_a_branch_is_not_ignored_with_layout_directory() -> None:
    assert problems(branches("env/prod", layout="directory")) == [("spec.environments[0].branch", "NotAvailable")]


def test_branches_by_default_are_those_of_the_environments() -> None:
    assert [place.branch for place in places_of(branches(None, None))] == ["env/e0", "env/e1"]
    steps = [
        node["template"]["spec"]
        for node in translated(branches(None, None), bundle(), local=False)["spec"]["nodes"]
        if "steps" in node.get("template", {}).get("spec", {})
    ]
    assert [(spec["branch"], spec["git"]["branch"]) for spec in steps] == [("env/e0", "main"), ("env/e1", "main")]


@pytest.mark.parametrize("path", ["environments/prod", "**/prod", "secrets", "a/b/c/*.yaml"])
def test_every_pattern_of_paths_binds_a_branch_that_is_replaced(path: str) -> None:
    (place,) = places_of(branches("env/prod"))
    assert Binding.of(GateMatch(paths=(path,))).holds(place)
    assert Binding.of(GateMatch(paths=(path,), branches=("env/*",))).holds(place)
    assert not Binding.of(GateMatch(paths=(path,), branches=("main",))).holds(place)


def test_a_source_directory_does_not_choose_the_gate() -> None:
    """The branch of another Pipeline is replaced as a whole, whatever directory it is rendered from."""
    (place,) = places_of(branches("production", branch="sources"))
    assert Binding.of(GateMatch(branches=("production",), paths=("environments/prod",))).holds(place)


def forged(**state: Any) -> str:
    return json.dumps({"images": [], "charts": [], "source": ""} | state)


@pytest.mark.parametrize(
    "content",
    [
        "not: json",
        "[]",
        forged(images=[{"reference": f"app:{number}"} for number in range(65)]),
        forged(images=[{"reference": "NOT AN IMAGE"}]),
        forged(images="x"),
        forged(config=[{"repository": URL, "commit": "0" * 40, "directory": "configs/../../ci"}]),
        forged(config=[{"repository": URL, "commit": "main"}]),
        forged(charts=[{"repository": URL, "name": "x\n\ny", "version": "1"}]),
        "[" * 100_000,
        " " * (256 << 10) + forged(),
    ],
    ids=["yaml", "a list", "65 images", "no image", "no list", "leaves", "no commit", "no chart", "nested", "large"],
)
def test_a_record_that_kardinal_cannot_have_written_is_refused(content: str) -> None:
    with pytest.raises(EditError, match=r"\.kardinal/state\.yaml: is not what kardinal wrote"):
        read_state(Overlay(None, changes={".kardinal/state.yaml": content.encode()}))


async def test_a_record_that_kardinal_cannot_have_written_ends_the_promotion(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world)
    repository.commit({".kardinal/state.yaml": forged(images="x")}, branch=BRANCH)
    before = repository.head(BRANCH)
    status = await promote(world, repository, "app-1", until="Failed")
    assert ".kardinal/state.yaml: is not what kardinal wrote" in status["message"]
    assert repository.head(BRANCH) == before


async def test_a_forged_record_changes_its_own_branch_alone(world: World, repository: GitRepository) -> None:
    """A person who may push there can have an image set until a Bundle sets it, as in the manifests beside it."""
    await start_agent(world)
    main = repository.head()
    record = forged(images=[{"reference": "evil.example.org/x:1"}, {"reference": f"{IMAGE}:6.6.6"}], source="main")
    repository.commit({".kardinal/state.yaml": record}, branch=BRANCH)
    await promote(world, repository, "app-1", until="HealthChecking")
    text = repository.read("kustomization.yaml", BRANCH)
    assert 'newTag: "1.1.0"' in text
    assert "6.6.6" not in text
    assert "evil.example.org/x" in text
    assert repository.head() == main
    assert sorted(repository.branches()) == sorted([BRANCH, "main"])


async def test_a_link_on_the_branch_is_not_followed(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    script = f"commit refs/heads/{BRANCH}\ncommitter X <x@example.com> now\ndata 4\nlink\n"
    script += "M 120000 inline .kardinal\ndata 11\n../../../etc\n"
    repository.git("fast-import", "--quiet", "--date-format=now", stdin=script.replace("data 11", "data 12"))
    await promote(world, repository, "app-1", until="Failed")
    assert "is a symbolic link" in (await reached(world, "Failed", bundle="app-1"))["message"]
    assert DEV in BRANCH


async def forge(world: World, repository: GitRepository, source: GitRepository, commit: JsonObject) -> str:
    """Promote an image where the record has a forged commit; return why that failed, with nothing written."""
    repository.commit({".kardinal/state.yaml": forged(config=[commit])}, branch=BRANCH)
    before = repository.head(BRANCH)
    uses = ("git-clone", "config-merge", "kustomize-set-image", "git-commit", "git-push", "health-check")
    step = own_branch(repository, bundle="app-1", update={"config": {"repository": source.url, "from": "configs"}})
    step["spec"]["steps"] = [{"uses": name} for name in uses]
    await start_agent(world)
    await world.apply(bundle_object("app-1"))
    await put(world, step)
    status = await reached(world, "Failed", bundle="app-1")
    assert repository.head(BRANCH) == before
    message: str = status["message"]
    return message


async def test_a_forged_record_does_not_choose_the_repository_that_is_read(
    world: World, repository: GitRepository, tmp_path: Path
) -> None:
    """The agent could read it with the Secret of the Pipeline, and would write it where the forger may read."""
    source = create_repository(tmp_path / "config.git", {"configs/a.yaml": "a\n"})
    secret = create_repository(tmp_path / "secret.git", {"password": "hunter2\n"})
    said = await forge(world, repository, source, {"repository": secret.url, "commit": secret.head(), "directory": ""})
    assert ".kardinal/state.yaml: records commit" in said
    assert f"takes configuration from {source.url}" in said


async def test_a_forged_record_does_not_bring_a_commit_that_was_not_merged(
    world: World, repository: GitRepository, tmp_path: Path
) -> None:
    source = create_repository(tmp_path / "config.git", {"configs/a.yaml": "a\n"})
    sha = source.commit({"configs/a.yaml": "evil\n"}, branch="pull/7")
    said = await forge(world, repository, source, {"repository": source.url, "commit": sha, "directory": "configs"})
    assert "is not on the branch" in said


async def test_a_forged_record_does_not_leave_the_configuration(
    world: World, repository: GitRepository, tmp_path: Path
) -> None:
    source = create_repository(tmp_path / "config.git", {"configs/a.yaml": "a\n", "ci/token": "t\n"})
    entry = {"repository": source.url, "commit": source.head()}
    said = await forge(world, repository, source, entry | {"directory": "ci"})
    assert "of ci, and the Pipeline takes configuration from configs" in said
