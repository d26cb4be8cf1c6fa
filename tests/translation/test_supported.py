"""Every choice that the resources offer is executed, or refused by name: none is ignored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import pytest

from kardinal.models.base import Model
from kardinal.promotion.api.bundle import BundleSpec
from kardinal.promotion.api.pipeline import PipelineSpec
from kardinal.promotion.api.supported import FIELD_VALUES
from kardinal.promotion.translation.errors import InvalidSpec, Problem
from tests.support.objects import environment
from tests.support.registry import REGISTRY
from tests.translation.values import bundle, pipeline, translated

DIGEST = "sha256:" + "0123abcd" * 8

ONLY_ONE_MEANING = {("HealthResource", "condition")}
"""Choices with a single value, which the default is: there is nothing to ignore."""

EXECUTED = {("HelmValue", "value"), ("HealthFlux", "kind")}
"""Choices beside required fields, all of which are executed where the object they stand in is."""

NEEDED = {"replace": {"replace": {"files": ["main.tf"]}}}
"""Fields that a strategy needs besides its name."""


def choices(model: type[Model], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], type[Model], str, Any]]:
    """Every value of every enumeration in a model and in what it holds: (path, model, attribute, value)."""
    for name, field in model.model_fields.items():
        here = (*path, field.alias or name)
        for value in literals(field.annotation):
            yield here, model, name, value
        for inner in models(field.annotation):
            yield from choices(inner, here)


def literals(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif get_origin(annotation) is not tuple:
        for argument in get_args(annotation):
            yield from literals(argument)


def models(annotation: Any) -> Iterator[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from models(argument)


PIPELINE_CHOICES = list(choices(PipelineSpec))
DECIDED_CHOICES = [choice for choice in PIPELINE_CHOICES if (choice[1].__name__, choice[2]) not in EXECUTED]
BUNDLE_CHOICES = list(choices(BundleSpec))


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return value  # type: ignore[no-any-return]


def refused(**arguments: Any) -> list[Problem]:
    with pytest.raises(InvalidSpec) as caught:
        translated(**arguments)
    return list(caught.value.problems)


def test_every_enumeration_of_pipelines_and_bundles_is_decided() -> None:
    decided = set(FIELD_VALUES) | ONLY_ONE_MEANING | EXECUTED
    assert {(model.__name__, name) for _, model, name, _ in PIPELINE_CHOICES + BUNDLE_CHOICES} <= decided


@pytest.mark.parametrize(
    ("path", "model", "name", "value"),
    DECIDED_CHOICES,
    ids=[f"{'.'.join(path)}={value}" for path, _, _, value in DECIDED_CHOICES],
)
def test_each_choice_of_a_pipeline_is_executed_or_refused(
    path: tuple[str, ...], model: type[Model], name: str, value: str
) -> None:
    if path[0] == "environments":
        fields = nested(path[1:], value)
        if name == "strategy":
            fields["update"] |= NEEDED.get(value, {})
        way = pipeline(environment("dev", **fields))
        field = f"spec.environments[0].{'.'.join(path[1:])}"
    else:
        spec = nested(path, value)
        hosted = {"url": "https://git.example.com/acme/gitops", "provider": "gitea"}
        there = hosted if name == "merge_method" else {"url": "file:///repo", "provider": "local"}
        git = {**there, **spec.pop("git", {})}
        way = pipeline("dev", git=git, **spec)
        field = f"spec.{'.'.join(path)}"
    if (model.__name__, name) in ONLY_ONE_MEANING or value in FIELD_VALUES[model.__name__, name]:
        assert translated(way)
        return
    problem = next(problem for problem in refused(way=way) if problem.field == field)
    assert problem.reason == "NotAvailable"
    assert "is not available" in str(problem)
    assert value in str(problem)


@pytest.mark.parametrize("value", [value for path, _, _, value in BUNDLE_CHOICES if path == ("type",)])
def test_each_type_of_bundle_is_executed(value: str) -> None:
    commit = {"gitCommit": {"repository": "file:///repo", "sha": "0123456789" * 4}} if value != "image" else {}
    images = {"images": [{"reference": "ghcr.io/acme/my-app:1"}]} if value != "config" else {}
    assert translated(what=bundle(type=value, artifacts=commit | images))


@pytest.mark.parametrize(
    ("change", "field", "remedy"),
    [
        ({"git": {"provider": "subversion"}}, "spec.git.provider", f"use {' or '.join(sorted(REGISTRY.providers))}"),
        ({"git": {"provider": "locale"}}, "spec.git.provider", "did you mean local?"),
        (
            {"environments": [environment("dev", health={"type": "resourse"})]},
            "spec.environments[0].health.type",
            "did you mean resource?",
        ),
    ],
)
def test_a_provider_or_an_adapter_that_nothing_executes_is_refused_by_name(
    change: dict[str, Any], field: str, remedy: str
) -> None:
    git = {"url": "file:///repo", "provider": "local", **change.pop("git", {})}
    found = refused(way=pipeline(*change.pop("environments", ["dev"]), git=git))
    assert [(problem.field, problem.reason, problem.remedy) for problem in found] == [(field, "NotAvailable", remedy)]


def test_a_commit_beside_images_is_refused_because_it_would_be_left_behind() -> None:
    commit = {"repository": "https://example.com/config", "sha": "0123456789" * 4}
    images = [{"reference": "ghcr.io/acme/my-app:1"}]
    found = refused(what=bundle(artifacts={"images": images, "gitCommit": commit}))
    assert [problem.field for problem in found] == ["spec.artifacts.gitCommit"]


@pytest.mark.parametrize(
    ("artifacts", "field", "says"),
    [
        ({"images": []}, "spec.artifacts.images", "nothing to promote"),
        ({"images": [{"reference": "app"}]}, "spec.artifacts.images[0]", "names no version"),
        (
            {"images": [{"reference": "nginx:1"}, {"reference": "b:1"}, {"reference": "docker.io/nginx:2"}]},
            "spec.artifacts.images[2]",
            "there as 1 (images[0]) and as 2",
        ),
        ({"images": [{"reference": "a:1"}, {"reference": "A B"}]}, "spec.artifacts.images[1]", "'A B'"),
        ({"images": [{"reference": "a:1", "digest": "sha256:a1b2c3d4e5f6"}]}, None, ""),
        ({"images": [{"reference": "a:1", "digest": DIGEST}]}, None, ""),
        ({"images": [{"reference": "a:1", "digest": "md5:0123456789"}]}, "spec.artifacts.images[0]", "sha256:"),
    ],
)
def test_images_that_name_nothing_to_promote_are_refused(
    artifacts: dict[str, Any], field: str | None, says: str
) -> None:
    what = bundle(artifacts=artifacts)
    if field is None:
        assert translated(what=what)
        return
    found = refused(what=what)
    assert [problem.field for problem in found] == [field]
    assert says in str(found[0])


@pytest.mark.parametrize(
    ("way", "field", "says"),
    [
        (
            pipeline(environment("dev", approval="pr-review"), provider="git"),
            "spec.environments[0].approval",
            "this provider has no pull requests",
        ),
        (
            pipeline(environment("dev", pr=True), provider="git"),
            "spec.environments[0].pr",
            "this provider has no pull requests",
        ),
        (
            pipeline(environment("dev", steps=[{"uses": "run-tests", "config": {"ur": "https://x"}}])),
            "spec.environments[0].steps[0].uses",
            "needs config.url",
        ),
        (
            pipeline("dev", url="https://example.com/repo"),
            "spec.git.provider",
            "provider local keeps pull requests inside a bare repository on this machine",
        ),
        (pipeline("dev", provider="git", url="ssh://example.com/repo"), "spec.git.url", "ssh needs a user"),
        (pipeline("dev", provider="git", url="git@example.com:repo"), "spec.git.secretRef", "needs a key"),
        (pipeline("dev", provider="git", url="relative/path"), "spec.git.url", "https://host/path"),
    ],
)
def test_combinations_that_cannot_be_executed_are_refused(way: Any, field: str, says: str) -> None:
    found = refused(way=way)
    assert [problem.field for problem in found] == [field]
    assert says in str(found[0])


@pytest.mark.parametrize("url", ["file:///repo", "/repo"])
def test_a_repository_of_this_machine_needs_the_operators_word(url: str) -> None:
    way = pipeline("dev", url=url, provider="git")
    assert translated(way)
    found = refused(way=way, local=False)
    assert [(problem.field, problem.reason) for problem in found] == [("spec.git.url", "LocalRepositoryRefused")]
    assert "--allow-local-repositories" in found[0].remedy


def test_plain_git_over_https_is_accepted() -> None:
    assert translated(pipeline("dev", url="https://example.com/acme/gitops", provider="git"), local=False)


def test_credentials_in_a_url_are_refused_and_not_repeated() -> None:
    found = refused(way=pipeline("dev", url="https://me:s3cret@example.com/repo", provider="git"))
    assert [problem.field for problem in found] == ["spec.git.url"]
    assert "s3cret" not in str(found[0])
    assert "secretRef" in str(found[0])


def test_all_problems_of_all_resources_are_reported_together_with_their_subject() -> None:
    found = refused(
        way=pipeline(environment("dev", update={"strategy": "oci"})),
        what=bundle(artifacts={}),
    )
    assert [str(problem) for problem in found] == [
        "Pipeline/my-app spec.environments[0].update.strategy: 'oci' is not available in this version; "
        "use kustomize or helm or replace",
        "Bundle/app-1 spec.artifacts.images: there is nothing to promote; name at least one image",
    ]


def test_a_merge_method_is_refused_where_the_provider_has_none() -> None:
    git = {"url": "file:///repo", "provider": "local", "mergeMethod": "squash"}
    (problem,) = refused(way=pipeline("dev", git=git))
    assert (problem.field, problem.reason) == ("spec.git.mergeMethod", "NotAvailable")


@pytest.mark.parametrize(
    ("provider", "fields"),
    [
        ("git", {"reviewers": ["a"], "teamReviewers": ["b"], "assignees": ["c"], "labels": ["d"], "draft": True}),
        ("local", {"reviewers": ["a"], "teamReviewers": ["b"], "assignees": ["c"]}),
        ("gitlab", {"teamReviewers": ["acme/platform"]}),
    ],
)
def test_unsupported_pull_request_field_is_refused(provider: str, fields: dict[str, Any]) -> None:
    url = "file:///repo" if provider == "local" else "https://git.example.com/acme/gitops"
    problems = refused(way=pipeline("dev", git={"url": url, "provider": provider, "pullRequest": fields}))
    assert [problem.field for problem in problems] == [f"spec.git.pullRequest.{name}" for name in fields]
    assert {problem.reason for problem in problems} == {"NotAvailable"}
    assert all(f"provider {provider} has none for pull requests" in str(problem) for problem in problems)


@pytest.mark.parametrize("label", ["kardinal", "Kardinal/rollback"])
def test_labels_of_kardinals_own_are_refused_in_pull_requests(label: str) -> None:
    git = {"url": "file:///repo", "provider": "local", "pullRequest": {"labels": ["kardinals", label]}}
    (problem,) = refused(way=pipeline("dev", git=git))
    assert (problem.field, problem.reason) == ("spec.git.pullRequest.labels[1]", "OwnLabel")


def test_pull_request_fields_reach_the_agent() -> None:
    fields = {"reviewers": ["alice"], "teamReviewers": ["acme/platform"], "labels": ["${x}"], "draft": True}
    git = {"url": "https://git.example.com/acme/gitops", "provider": "github", "pullRequest": fields}
    nodes = translated(pipeline("dev", git=git))["spec"]["nodes"]
    (step,) = [node["template"]["spec"] for node in nodes if node.get("template", {}).get("kind") == "PromotionStep"]
    assert step["git"]["pullRequest"] == {**fields, "labels": ["$${x}"], "assignees": []}


def test_the_expressions_of_a_pipeline_are_bounded_together_before_they_are_read() -> None:
    environments = [
        environment(f"e{index}", steps=[{"uses": "x", "if": f"{'(' * 100} {'x' * 800}{index}", "config": {"url": "u"}}])
        for index in range(6)
    ]
    (problem,) = refused(way=pipeline(*environments))
    assert (problem.field, problem.reason) == ("spec.environments", "TooManyExpressions")


def test_the_conditions_of_environments_are_bounded_together_before_they_are_read() -> None:
    environments = [environment(f"e{index}", when=f"({'x' * 500}{index}") for index in range(10)]
    (problem,) = refused(way=pipeline(*environments))
    assert (problem.field, problem.reason) == ("spec.environments", "TooManyExpressions")
