"""Bundles that bring a commit, held against the Pipeline: the Pipeline decides where configuration comes from."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.translation.errors import InvalidSpec, Problem
from tests.support.objects import environment
from tests.translation.values import bundle, node, pipeline, translated

OWN = "https://git.example.org/acme/gitops"
CONFIG = "https://git.example.org/acme/config"
SHA = "0123456789" * 4
IMAGES = [{"name": "app", "reference": "ghcr.io/acme/my-app:1.0"}]


def commit(repository: str = CONFIG, **fields: Any) -> dict[str, Any]:
    return {"gitCommit": {"repository": repository, "sha": SHA} | fields}


def taking(**config: Any) -> Any:
    return pipeline(environment("dev", update={"config": {"repository": CONFIG} | config}), url=OWN, provider="git")


def problems(way: Any, **spec: Any) -> list[Problem]:
    with pytest.raises(InvalidSpec) as caught:
        translated(way, bundle(**spec), local=False)
    return list(caught.value.problems)


def uses(way: Any, **spec: Any) -> list[str]:
    graph = translated(way, bundle(**spec), local=False)
    return [step["uses"] for step in node(graph, "dev")["template"]["spec"]["steps"]]


def test_the_default_sequence_merges_before_it_sets_images() -> None:
    assert uses(taking(), type="config", artifacts=commit())[1:-3] == ["config-merge"]
    mixed = commit() | {"images": IMAGES}
    assert uses(taking(), type="mixed", artifacts=mixed)[1:-3] == ["config-merge", "kustomize-set-image"]
    assert uses(taking(), artifacts={"images": IMAGES})[1:-3] == ["kustomize-set-image"]


def test_the_repository_of_the_pipeline_needs_no_word() -> None:
    way = pipeline("dev", url=OWN, provider="git")
    assert "config-merge" in uses(way, type="config", artifacts=commit(f"{OWN}.git"))


def test_a_repository_that_the_pipeline_does_not_name_is_refused() -> None:
    way = pipeline("dev", url=OWN, provider="git")
    (problem,) = problems(way, type="config", artifacts=commit())
    assert (problem.field, problem.reason) == ("spec.artifacts.gitCommit.repository", "SourceRefused")
    assert problem.message == (
        f"environment dev refuses it: the Pipeline takes configuration from {OWN}, and the commit is of {CONFIG}"
    )
    assert "update.config" in problem.remedy
    (problem,) = problems(taking(), type="config", artifacts=commit("https://git.example.org/evil/config"))
    assert problem.reason == "SourceRefused"


@pytest.mark.parametrize(
    ("kind", "artifacts", "field", "reason"),
    [
        ("config", {}, "spec.artifacts.gitCommit", "NoArtifacts"),
        ("mixed", {"images": IMAGES}, "spec.artifacts.gitCommit", "NoArtifacts"),
        ("mixed", commit(), "spec.artifacts.images", "NoArtifacts"),
        ("config", commit() | {"images": IMAGES}, "spec.artifacts.images", "NotOfThisType"),
        ("image", commit() | {"images": IMAGES}, "spec.artifacts.gitCommit", "NotOfThisType"),
        ("config", commit(sha="abc123def456"), "spec.artifacts.gitCommit.sha", "InvalidCommit"),
        ("config", commit("ftp://git.example.org/x"), "spec.artifacts.gitCommit.repository", "InvalidRepositoryURL"),
    ],
)
def test_a_bundle_brings_what_its_type_says(kind: str, artifacts: Any, field: str, reason: str) -> None:
    assert (field, reason) in [
        (found.field, found.reason) for found in problems(taking(), type=kind, artifacts=artifacts)
    ]


def test_no_environment_leaves_out_what_a_bundle_brings() -> None:
    steps = [{"uses": name} for name in ("git-clone", "kustomize-set-image", "git-commit", "git-push", "health-check")]
    way = pipeline(environment("dev", steps=steps), url=OWN, provider="git")
    (problem,) = problems(way, type="config", artifacts=commit(OWN))
    assert (problem.field, problem.reason) == ("spec.artifacts.gitCommit", "InvalidSequence")
    steps[1] = {"uses": "config-merge"}
    way = pipeline(environment("dev", steps=steps), url=OWN, provider="git")
    (problem,) = problems(way, artifacts={"images": IMAGES})
    assert problem.field == "spec.artifacts.images"


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"repository": "file:///etc"}, "repository"),
        ({"repository": "/srv/git/secrets.git"}, "repository"),
        ({"branch": "refs/heads/main"}, "branch"),
        ({"branch": "Kardinal/app-1/dev"}, "branch"),
    ],
)
def test_the_source_obeys_the_rules_of_repositories_and_branches(config: dict[str, str], field: str) -> None:
    (problem,) = problems(taking(**config), artifacts={"images": IMAGES})
    assert problem.field == f"spec.environments[0].update.config.{field}"


def test_a_typing_mistake_in_the_config_of_the_step_is_told() -> None:
    steps = [{"uses": name} for name in ("git-clone", "config-merge", "git-commit", "git-push", "health-check")]
    steps[1] = {"uses": "config-merge", "config": {"stratgy": "overlay"}}  # type: ignore[dict-item]
    (problem,) = problems(
        pipeline(environment("dev", steps=steps), url=OWN, provider="git"), artifacts={"images": IMAGES}
    )
    assert "strategy" in problem.message


def branches(**config: Any) -> Any:
    git = {"url": OWN, "provider": "git", "layout": "branch"}
    update = {"config": config} if config else {}
    return pipeline(environment("dev", path="apps/dev", update=update), git=git)


def test_an_environment_with_a_branch_of_its_own_takes_commits_and_sets_all_again() -> None:
    way = branches(repository=CONFIG)
    brought = ["config-merge", "helm-set-chart", "kustomize-set-image", "kustomize-build"]
    for kind, artifacts in (
        ("config", commit()),
        ("mixed", commit() | {"images": IMAGES}),
        ("image", {"images": IMAGES}),
    ):
        assert uses(way, type=kind, artifacts=artifacts)[1:-3] == brought


def test_a_commit_that_the_source_has_already_is_refused() -> None:
    for way in (branches(**{"from": "apps/dev/"}), branches(**{"from": "./apps/dev", "branch": "main"})):
        (problem,) = problems(way, type="config", artifacts=commit(OWN))
        assert (problem.field, problem.reason) == ("spec.artifacts.gitCommit", "InSource")
        assert problem.message == "environment dev is rendered from branch main, which has the commit already"
    (problem,) = problems(branches(), type="config", artifacts=commit(f"{OWN}.git", path="apps/dev"))
    assert problem.reason == "InSource"
    for way in (branches(**{"from": "config/dev"}), branches(**{"from": "apps/dev", "branch": "config"})):
        assert "config-merge" in uses(way, type="config", artifacts=commit(OWN))


def test_a_branch_records_the_commits_of_one_step() -> None:
    names = (
        "git-clone",
        "config-merge",
        "config-merge",
        "kustomize-set-image",
        "git-commit",
        "git-push",
        "health-check",
    )
    git = {"url": OWN, "provider": "git", "layout": "branch"}
    way = pipeline(environment("dev", steps=[{"uses": name} for name in names]), git=git)
    (problem,) = problems(way, artifacts={"images": IMAGES})
    assert (problem.field, problem.reason) == ("spec.environments[0].steps", "InvalidSequence")
    assert "config-merge stands in the sequence twice" in problem.message
