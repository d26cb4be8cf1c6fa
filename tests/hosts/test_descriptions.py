"""The fake GitHub is held against GitHub's own descriptions, and those are what the lock says."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest

from hack.hosts import descriptions as fetching
from tests.hosts.fakes.openapi import Description

PULLS = "/repos/{owner}/{repo}/pulls"


@pytest.fixture
def description(descriptions: Path) -> Description:
    return Description.load(descriptions / "github.json")


@pytest.mark.parametrize(
    ("query", "body", "problem"),
    [
        ({}, {"title": "t", "head": "h", "base": "b"}, ""),
        ({}, {"title": "t", "head": "h"}, "'base' is a required property"),
        ({}, {"title": "t", "head": "h", "base": "b", "labels": []}, "unknown field labels"),
        ({}, {"title": 7, "head": "h", "base": "b"}, "7 is not of type 'string'"),
        ({"draft": "true"}, {"title": "t", "head": "h", "base": "b"}, "unknown query parameter draft"),
        ({}, None, "a body is required"),
    ],
)
def test_a_request_that_github_does_not_describe_is_a_problem(
    description: Description, query: dict[str, str], body: object, problem: str
) -> None:
    operation = description.operation("POST", PULLS)
    assert operation is not None
    problems = "\n".join(description.request_problems(operation, query=query, body=body))
    assert (problem in problems) if problem else not problems


def test_an_answer_that_github_does_not_describe_is_a_problem(description: Description) -> None:
    operation = description.operation("GET", f"{PULLS}/{{pull_number}}")
    assert operation is not None
    whole = description.completed(operation, 200, {"number": 7})
    assert description.answer_problems(operation, 200, whole) == []
    for field, wrong in (("number", "7"), ("state", "merged"), ("merged_at", 3), ("head", None)):
        assert description.answer_problems(operation, 200, whole | {field: wrong}), field
    del whole["user"]
    assert description.answer_problems(operation, 200, whole)
    assert description.answer_problems(operation, 418, {"message": "I'm a teapot"})
    assert description.operation("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/approve") is None
    with pytest.raises(AssertionError, match="approved"):
        description.completed(operation, 200, {"approved": True})


def test_a_package_that_is_not_the_locked_one_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = json.loads(Path(fetching.__file__).with_name("descriptions.json").read_text())[0]
    (tmp_path / "bin").mkdir()
    archive = tmp_path / "changed.tgz"
    content = tmp_path / "content"
    content.write_text("{}")
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(content, arcname=entry["files"]["github.json"])
    npm = tmp_path / "bin" / "npm"
    npm.write_text(
        f'#!/bin/sh\nfor last; do :; done\necho "$last" >>{tmp_path}/asked\ncp {archive} "$5"\necho changed.tgz\n'
    )
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(fetching.DescriptionsMissing, match=r"is not what descriptions\.json locks"):
        fetching.fetch()
    assert (tmp_path / "asked").read_text() == f"{entry['package']}@{entry['version']}\n"
    assert list((tmp_path / "cache" / "kardinal").iterdir()) == []
    assert fetching.locate() is None
