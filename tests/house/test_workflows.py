"""Workflows have pinned actions; that of pull requests, which runs code of strangers, a token that can only read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
PULL_REQUEST = ROOT / ".github" / "workflows" / "pull-request.yaml"


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_pinned_actions(path: Path) -> None:
    used = [step["uses"] for step in steps(path) if "uses" in step]
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []


def test_a_pull_request_gets_no_secret_and_no_right_to_write() -> None:
    workflow: dict[Any, Any] = yaml.safe_load(PULL_REQUEST.read_text())
    # YAML 1.1 reads the key `on` as true.
    assert set(workflow[True]) == {"pull_request"}
    assert workflow["permissions"] == {"contents": "read"}
    [checkouts] = {step["with"]["persist-credentials"] for step in steps(PULL_REQUEST) if "uses" in step}
    assert checkouts is False
    assert "secrets." not in PULL_REQUEST.read_text()


def test_pull_requests_are_linted_and_tested_as_ci_does() -> None:
    run = {step["run"] for step in steps(PULL_REQUEST) if "run" in step and "apt-get" not in step["run"]}
    where_due = ".venv/bin/python -m hack.plane_suites --passed || make test-plane"
    assert run == {"make lint", "make test", "make test-resilience", where_due}
    parts = {part for command in run for part in command.split(" || ")}
    assert all(part in (ROOT / ".ci" / "run").read_text() for part in parts)
