"""`git-clone` with a config opens an input: which sequences may have one, and what it stands for."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.api.pipeline import Git, StepSpec
from kardinal.promotion.steps.declaration import Role
from kardinal.promotion.steps.git_input import GitInputConfig, InputSource, input_of
from kardinal.promotion.steps.sequence import planned
from tests.steps.test_sequence import refusals
from tests.support.registry import REGISTRY

URL = "https://git.example.com/platform/bases"
OWN = "https://git.example.com/acme/gitops"
COPY = {"from": "bases/app", "to": "base", "input": "platform"}


def opening(as_: str | None = "platform", **config: Any) -> StepSpec:
    return StepSpec.model_validate({"uses": "git-clone", "as": as_, "config": config or {"url": URL}})


def sequence(*inputs: StepSpec, copy: dict[str, Any] | None = None, first: bool = False) -> tuple[StepSpec, ...]:
    copying = StepSpec(uses="copy", config=COPY if copy is None else copy)
    opened, *landing = (StepSpec(uses=name) for name in ("git-clone", "git-commit", "git-push", "health-check"))
    return (*inputs, opened, copying, *landing) if first else (opened, *inputs, copying, *landing)


@pytest.mark.parametrize(
    "config",
    [
        {"url": URL},
        {"url": URL, "branch": "release", "secretRef": {"name": "platform"}},
        {"url": URL, "tag": "v1.4.0"},
        {"branch": "bases", "commit": "0123456789" * 4},
        {"tag": "v${bundle.version}"},
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_an_input_stands_beside_the_tree_that_is_edited(config: dict[str, Any], first: bool) -> None:
    assert refusals(sequence(opening(**config), first=first)) == []
    roles = [step.declaration.role for step in planned(sequence(opening(**config)), REGISTRY.steps)]
    assert roles[:3] == [Role.OPEN, Role.INPUT, Role.EDIT]


@pytest.mark.parametrize(
    ("inputs", "field", "words"),
    [
        ((opening(None),), "steps[1].as", "is missing"),
        ((opening(), opening()), "steps[2].as", "another step leaves its outputs as platform"),
        ((opening(), opening("copy")), "steps[3].as", "another step leaves its outputs as copy"),
        ((opening(), StepSpec(uses="git-clone")), "steps[2].uses", "give one `as` and config to make it an input"),
        ((opening(ulr=URL),), "steps[1].config.ulr", "did you mean 'url'?"),
        ((opening(secretRef={"name": "x"}),), "steps[1].config", "names nothing to open"),
        ((opening(tag="v1", branch="main"),), "steps[1].config", "keep one of them"),
        ((opening(tag="v1", commit="0" * 40),), "steps[1].config", "keep one of them"),
        ((opening(commit="0123abc"),), "steps[1].config.commit", "should match pattern"),
        ((opening(url="${bundle.provenance.source}"),), "steps[1].config.url", "only the Pipeline says"),
        (
            (opening(branch="x", secretRef={"name": "${bundle.name}"}),),
            "steps[1].config.secretRef",
            "only the Pipeline",
        ),
        ((*(opening(f"in{n}") for n in range(8)), opening()), "steps[9].uses", "at most 8 inputs"),
        ((opening("bases"),), "steps[2].config.input", "is named 'platform' by its `as`; there are: bases"),
        ((), "steps[1].config.input", "add one with url, branch, tag or commit"),
    ],
)
def test_a_mistake_is_found_before_anything_runs(inputs: tuple[StepSpec, ...], field: str, words: str) -> None:
    found = refusals(sequence(*inputs))
    assert any(where == field and words in message for where, message in found), found


@pytest.mark.parametrize(
    "name", ["../x", "a..b", "-x", "refs/heads/main", "a b", "a\x00", "x/", "/x", "HEAD", "a@{1}", "x^", "a:b", "v*"]
)
@pytest.mark.parametrize("field", ["branch", "tag"])
def test_a_name_that_git_does_not_accept_is_no_ref(field: str, name: str) -> None:
    found = refusals(sequence(opening(url=URL, **{field: name})))
    assert [where for where, _ in found] == [f"steps[1].config.{field}"]


def test_an_input_can_neither_be_left_out_nor_fail_unnoticed() -> None:
    made = opening().model_copy(update={"if_": "true", "continue_on_error": True})
    assert {field for field, _ in refusals(sequence(made))} == {"steps[1].if", "steps[1].continueOnError"}


@pytest.mark.parametrize(
    ("git", "config", "expected"),
    [
        ({"url": OWN}, {"url": URL}, (URL, "main", None, None)),
        ({"url": OWN, "secretRef": {"name": "own"}}, {"url": URL}, (URL, "main", None, "own")),
        ({"url": OWN, "secretRef": {"name": "own"}}, {"url": "https://other.example.com/x"}, (..., "main", None, None)),
        ({"url": OWN, "secretRef": {"name": "own"}}, {"url": "http://git.example.com/x"}, (..., "main", None, None)),
        ({"url": OWN, "branch": "live"}, {"commit": "0" * 40}, (OWN, "live", None, None)),
        ({"url": OWN, "branch": "live"}, {"url": f"{OWN}.git", "tag": "v1"}, (f"{OWN}.git", None, "v1", None)),
        ({"url": "file:///repo", "secretRef": {"name": "own"}}, {"branch": "x"}, ("file:///repo", "x", None, "own")),
        (
            {"url": "http://git.internal/a"},
            {"url": "http://git.internal/b"},
            ("http://git.internal/b", "main", None, None),
        ),
    ],
)
def test_defaults_are_those_of_the_pipeline_where_they_may_be(
    git: dict[str, Any], config: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    found = input_of(Git.model_validate(git), GitInputConfig.model_validate(config))
    repository, *rest = expected
    assert [found.branch, found.tag, found.secret] == rest
    assert repository in (..., found.repository)
    assert isinstance(found, InputSource)
