"""YAML of others that is small and costly, or that a parser fails on in ways of its own.

`1:59:59` is a number to the base of 60. A long one took minutes, in which nothing else ran: the time limit of a test is
the bound.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kardinal.cli.main import main
from kardinal.edits.helm.chart_lock import relocked
from kardinal.edits.helm.chart_versions import PromotedChart
from kardinal.edits.yaml.document_walk import DocumentError
from kardinal.kube import ConfigError, embedded_access

LONG = "1" + ":59" * 85_000
WRONG = ["!!int ''", "!!bool maybe", "!!float x", "!!timestamp x", "!!timestamp 9999-99-99", "!!int [1]", "9" * 5_000]


@pytest.mark.parametrize("value", [LONG, *WRONG], ids=range(len(WRONG) + 1))
def test_a_kubeconfig_with_a_value_that_is_none_is_refused_at_once(value: str) -> None:
    with pytest.raises(ConfigError, match="it is not YAML"):
        embedded_access(f"apiVersion: v1\nkind: Config\ncurrent-context: {value}\n")


@pytest.mark.parametrize("value", [LONG, *WRONG], ids=range(len(WRONG) + 1))
def test_a_chart_with_a_value_that_is_none_is_refused_at_once(value: str) -> None:
    chart = f"dependencies: [{{name: red, version: 1.0.0, tags: {value}}}]\n".encode()
    lock = f"digest: x\ndependencies: [{{name: red, version: 1.0.0}}]\ngenerated: {value}\n".encode()
    charts = [PromotedChart("", "red", "1.1.0")]
    with pytest.raises(DocumentError, match="is not YAML that can be read"):
        relocked(lock, before=chart, after=chart, charts=charts)


@pytest.mark.parametrize("value", [LONG, *WRONG], ids=range(len(WRONG) + 1))
def test_lint_names_the_line_of_a_value_that_is_none(tmp_path: Path, value: str) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(f"kind: Pipeline\nspec:\n  environments: {value}\n")
    done = CliRunner().invoke(main, ["lint", "--file", str(path)])
    assert done.exit_code == 1, done.output
    assert "pipeline.yaml:3" in done.output
