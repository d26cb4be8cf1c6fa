"""`kardinal catalog show` on bare repositories."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kardinal.cli.main import main
from tests.catalog.hierarchies import Hierarchy, component


@pytest.fixture
def hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hierarchy:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "repositories"
    root.mkdir()
    made = Hierarchy(root)
    made.commit("web", component("web", defaults="{replicas: 1}"), tag="v1")
    web = 'applications: [web]\nparameters:\n  components:\n    web: {url: "${ROOT}/web.git", version: v1}\n'
    made.configure(f"{web}  web: {{replicas: 2}}\n", tenant="parameters: {web: {replicas: 3}}\n")
    return made


def show(hierarchy: Hierarchy, *arguments: str) -> Result:
    """Run the command on a thread, as it has an event loop of its own."""
    call = ["catalog", "show", "c-one", "-f", str(hierarchy.write_documents()), *arguments]
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(CliRunner().invoke, main, call, prog_name="kardinal").result()


def test_classes_that_set_a_value_are_listed_in_order(hierarchy: Hierarchy) -> None:
    result = show(hierarchy, "--why", "web.replicas", "-o", "json")

    assert json.loads(result.stdout) == [
        {"class": "defaults.web", "value": 1},
        {"class": "global.common", "value": 2},
        {"class": "t-acme.c-one", "value": 3},
    ]


def test_parts_of_a_cluster_are_shown(hierarchy: Hierarchy) -> None:
    components = show(hierarchy).stdout.splitlines()

    assert components[0].split() == ["NAME", "VERSION", "COMMIT", "URL"]
    assert components[1].split()[:2] == ["web", "v1"]
    assert show(hierarchy, "targets").stdout == "web\n"
    assert show(hierarchy, "parameters", "web").stdout == "replicas: 3\n"
    assert "components.web" in show(hierarchy, "classes", "--instance", "web").stdout.splitlines()


def test_an_unknown_parameter_or_instance_is_an_error(hierarchy: Hierarchy) -> None:
    unknown = show(hierarchy, "parameters", "web.none")
    instance = show(hierarchy, "classes", "--instance", "wep")

    assert (unknown.exit_code, instance.exit_code) == (1, 1)
    assert "no parameter web.none" in unknown.stderr
    assert "Did you mean web?" in instance.stderr
