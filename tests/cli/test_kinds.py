"""Packages of others add kinds to `lint`, `get` and `explain` by entry points, and are imported for their own only."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kardinal.cli.kinds import added_kinds
from tests.cli.conftest import Finished
from tests.cli.in_process import InProcess, cli
from tests.support.names import TEAM

__all__ = ["cli"]

MODULE = '''
from typing import ClassVar
import click
from kardinal.cli.kinds import LintedKind
from kardinal.cli.output import say
from kardinal.models.base import Model, Resource
from kardinal.objects import ResourceType

class WidgetSpec(Model):
    size: int

class Widget(Resource):
    resource: ClassVar[ResourceType] = ResourceType("acme.dev", "v1", "Widget", "widgets")
    spec: WidgetSpec

LINTED = [
    LintedKind(
        model=Widget,
        problems=lambda widget: [("spec.size", "it is too large")] if widget.spec.size > 9 else [],
        warnings=lambda widget: [("spec.size", "it is large")] if widget.spec.size > 4 else [],
        misplaced=lambda document: [("spec.big", "write spec.size")] if "big" in document["spec"] else [],
    )
]

@click.command()
def widgets():
    """List Widgets."""
    say("two Widgets")

async def explain_widget(session, name, output):
    say(f"Widget {name} of {session.namespace} as {output}")
'''
DECLARATION = """
from kardinal.cli.kinds import KindDeclaration
from kardinal.cli.lazy import LazyCommand

KINDS = KindDeclaration(
    linted="acme_widgets:LINTED",
    lists=(LazyCommand("widgets", "acme_widgets:widgets", "List Widgets."),),
    explained={"widget": "acme_widgets:explain_widget"},
)
"""
WIDGET = "apiVersion: acme.dev/v1\nkind: Widget\nmetadata: {name: x}\nspec:\n  size: 3\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the module that a package which declares the kinds of acme.dev leads to."""
    information = tmp_path / "acme_kinds-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-kinds\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[kardinal.kinds]\nacme.dev = acme_kinds:KINDS\n")
    (tmp_path / "acme_kinds.py").write_text(DECLARATION)
    module = tmp_path / "acme_widgets.py"
    module.write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("acme_kinds", "acme_widgets"):
        monkeypatch.delitem(sys.modules, name, raising=False)
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


@pytest.mark.usefixtures("package")
async def test_a_package_adds_a_list_and_an_explanation(cli: InProcess) -> None:
    assert "List Widgets." in await cli("get", "--help")
    assert await cli("get", "widgets") == "two Widgets\n"
    assert await cli("explain", "widget/x") == f"Widget x of {TEAM} as table\n"
    assert "did you mean widget/x?" in (await cli.attempt("explain", "wiget/x")).err


async def test_a_broken_package_disturbs_no_command_of_kardinal(package: Path, cli: InProcess) -> None:
    (package.parent / "acme_kinds.py").write_text("raise OSError('broken')\n")
    assert "No Pipelines" in (await cli.attempt("get", "pipelines")).err
    assert "acme.dev cannot be loaded: broken" in (await cli.attempt("get", "widgets")).err


@pytest.mark.parametrize("module", ["acme_kinds.KINDS", "acme_widgets.LINTED"])
def test_a_declaration_that_is_none_is_refused(package: Path, tmp_path: Path, module: str) -> None:
    name, _, attribute = module.partition(".")
    (package.parent / f"{name}.py").write_text(f"{attribute} = ['Widget']\n")
    done = lint(tmp_path, WIDGET)
    assert done.code == 1
    assert "of kardinal.kinds" in done.err
    assert "is not a" in done.err
