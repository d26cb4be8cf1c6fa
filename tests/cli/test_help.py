"""The help of `kardinal`, which imports no command."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kardinal.cli.get import get
from kardinal.cli.main import main

HEAVY = (
    "aiohttp",
    "asyncio",
    "kardinal.promotion.api",
    "kardinal.kube",
    "kubernetes_asyncio",
    "pydantic",
    "rich",
    "yaml",
)
"""Packages that take a tenth of a second or bring along some that do."""


def python(script: str, *paths: Path) -> str:
    """Return what a script prints, in a process of its own, with `paths` before the installed packages."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize("width", [40, 80, 100, 200])
@pytest.mark.parametrize("group", [main, get], ids=["kardinal", "get"])
def test_declarations_say_what_the_commands_say(group: click.Group, width: int) -> None:
    context = click.Context(group, info_name="kardinal")
    declared = click.HelpFormatter(width=width)
    imported = click.HelpFormatter(width=width)
    group.format_commands(context, declared)
    click.Group.format_commands(group, context, imported)
    assert declared.getvalue() == imported.getvalue()
    assert "Commands:" in declared.getvalue()


def test_help_imports_no_command() -> None:
    script = f"""
import sys
from kardinal.cli.main import main
for arguments in (["--help"], ["nonsense"]):
    try:
        main(arguments)
    except SystemExit:
        pass
loaded = {{name for name in sys.modules if name.startswith(("kardinal.cli.", "kardinal_local.commands."))}}
print("loaded", sorted(loaded), [name for name in {HEAVY!r} if name in sys.modules])
"""
    light = ["kardinal.cli.lazy", "kardinal.cli.main", "kardinal.cli.styles"]
    assert python(script).splitlines()[-1] == f"loaded {light} []"


def test_a_command_does_not_import_what_only_others_need() -> None:
    # rich draws the demo, structlog writes the logs of programs, kubernetes_asyncio runs plugins.
    script = (
        "import sys, kardinal.cli.get.steps; print({'kubernetes_asyncio', 'rich', 'structlog'} & sys.modules.keys())"
    )
    assert python(script) == "set()\n"


def test_the_list_of_bundles_loads_no_models() -> None:
    script = (
        "import sys, kardinal.cli.get.bundles; print({'kubernetes_asyncio', 'pydantic', 'rich'} & sys.modules.keys())"
    )
    assert python(script) == "set()\n"


def test_loading_a_command_leaves_the_process_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/somewhere")
    assert main.get_command(click.Context(main), "get") is not None
    assert os.environ["SSL_CERT_FILE"] == "/somewhere"
    assert gc.isenabled()


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Return a directory with a package that declares a command of its own."""
    information = tmp_path / "other-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[kardinal.commands]\nother = other:OTHER\n")
    return tmp_path


def test_another_package_can_add_a_command(installed: Path) -> None:
    (installed / "other.py").write_text(
        "import click\n"
        "from kardinal.cli.lazy import LazyCommand\n"
        "OTHER = LazyCommand('other', 'other:other', 'Do something else.')\n"
        "@click.command()\n"
        "def other():\n"
        "    click.echo('done')\n"
    )
    assert "Do something else." in python("from kardinal.cli.main import main; main(['--help'])", installed)
    assert python("from kardinal.cli.main import main; main(['other'])", installed) == "done\n"


def test_a_command_whose_package_is_not_installed_is_passed_over(installed: Path) -> None:
    printed = python("from kardinal.cli.main import main; main(['--help'])", installed)
    assert "version" in printed
    assert "other" not in printed.replace("another", "")


def test_an_entry_point_that_declares_no_command_is_named(installed: Path) -> None:
    (installed / "other.py").write_text("OTHER = print\n")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        python("from kardinal.cli.main import main; main(['--help'])", installed)
    assert "the entry point other of kardinal.commands is not a LazyCommand" in caught.value.stderr
