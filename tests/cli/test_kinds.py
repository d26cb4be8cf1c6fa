"""Packages of others add kinds to `kardinal lint` by entry points, which are loaded for their own manifests only."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kardinal.cli.kinds import added_kinds
from tests.cli.conftest import Finished
from tests.cli.in_process import InProcess

MODULE = """
from typing import ClassVar
from kardinal.cli.kinds import LintedKind
from kardinal.models.base import Model, Resource
from kardinal.objects import ResourceType

class WidgetSpec(Model):
    size: int

class Widget(Resource):
    resource: ClassVar[ResourceType] = ResourceType("acme.dev", "v1", "Widget", "widgets")
    spec: WidgetSpec

KINDS = [
    LintedKind(
        model=Widget,
        problems=lambda widget: [("spec.size", "it is too large")] if widget.spec.size > 9 else [],
        warnings=lambda widget: [("spec.size", "it is large")] if widget.spec.size > 4 else [],
        misplaced=lambda document: [("spec.big", "write spec.size")] if "big" in document["spec"] else [],
    )
]
"""
WIDGET = "apiVersion: acme.dev/v1\nkind: Widget\nmetadata: {name: x}\nspec:\n  size: 3\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the module of a package that declares the kinds of acme.dev."""
    information = tmp_path / "acme_kinds-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-kinds\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[kardinal.kinds]\nacme.dev = acme_kinds:KINDS\n")
    module = tmp_path / "acme_kinds.py"
    module.write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_kinds", raising=False)
    added_kinds.cache_clear()
    return module


def lint(directory: Path, text: str) -> Finished:
    (directory / "given.yaml").write_text(text)
    return InProcess(Path("/nonexistent"), directory).run("lint", "-f", "given.yaml")


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("before", "after", "code", "said"),
    [
        ("size: 3", "size: 3", 0, ""),
        ("size: 3", "size: 5", 0, "given.yaml:5: warning: Widget/x spec.size: it is large\n"),
        ("size: 3", "size: 12", 1, "given.yaml:5: Widget/x spec.size: it is too large\n"),
        ("size: 3", "size: 3\n  sise: 4", 1, "spec.sise: unknown field; did you mean size?\n"),
        ("size: 3", "size: 3\n  big: 4", 1, "given.yaml:6: Widget/x spec.big: write spec.size\n"),
        ("size: 3", "size: many", 1, "spec.size: Input should be a valid integer"),
        ("kind: Widget", "kind: Wigdet", 1, "no kind Wigdet in acme.dev/v1; did you mean acme.dev/v1 Widget?\n"),
    ],
)
def test_a_kind_of_another_package_is_checked(tmp_path: Path, before: str, after: str, code: int, said: str) -> None:
    done = lint(tmp_path, WIDGET.replace(before, after))
    assert done.code == code
    assert said in done.err


def test_a_package_is_loaded_for_manifests_of_its_group_only(package: Path, tmp_path: Path) -> None:
    package.write_text("raise OSError('broken')\n")
    other = "apiVersion: kardinal.io/v1alpha1\nkind: PolicyGate\nmetadata: {name: x}\nspec: {expression: 'true'}\n"
    assert lint(tmp_path, other).code == 0
    done = lint(tmp_path, WIDGET)
    assert done.code == 1
    assert "the kinds of acme.dev cannot be loaded: broken" in done.err


def test_a_declaration_that_is_none_is_refused(package: Path, tmp_path: Path) -> None:
    package.write_text("KINDS = ['Widget']\n")
    done = lint(tmp_path, WIDGET)
    assert done.code == 1
    assert "is not a list of LintedKind" in done.err
