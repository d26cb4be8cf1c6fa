"""The suites of the local plane are run when something that they depend on differs from the record, and only then."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from hack.plane_suites import INPUTS, RECORD, SUITES, hash_of_inputs, passed, run

ROOT = Path(__file__).parents[2]
PASSES = ("true",)
FAILS = ("false",)
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def input_files(checkout: Path) -> list[Path]:
    return [checkout / name if Path(name).suffix else checkout / name / "inside" / "a.py" for name in INPUTS]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a directory with a file for each input, and the scripts that CI calls."""
    for path in input_files(tmp_path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("as it was\n")
    for script in ("hack/plane_suites.py", "hack/second_try.py"):
        shutil.copy(ROOT / script, tmp_path / script)
    return tmp_path


@pytest.mark.parametrize("number", range(len(INPUTS)), ids=INPUTS)
def test_a_change_of_an_input_makes_the_suites_due(checkout: Path, number: int) -> None:
    assert not passed(checkout)
    assert run(checkout, PASSES) == 0
    assert passed(checkout)
    before = hash_of_inputs(checkout)
    with input_files(checkout)[number].open("a") as file:
        file.write("more\n")
    assert not passed(checkout)
    assert hash_of_inputs(checkout) != before


def test_a_file_that_is_added_renamed_or_removed_makes_the_suites_due(checkout: Path) -> None:
    run(checkout, PASSES)
    added = checkout / SUITES[0] / "test_new.py"
    added.write_text("")
    assert not passed(checkout)
    run(checkout, PASSES)
    renamed = added.rename(added.with_name("test_renamed.py"))
    assert not passed(checkout)
    run(checkout, PASSES)
    renamed.unlink()
    assert not passed(checkout)


def test_a_change_of_anything_else_does_not(checkout: Path) -> None:
    run(checkout, PASSES)
    for name in ("README.md", "kardinal_local/stack.py", "tests/support/world.py", "kardinal/cel/__pycache__/a.pyc"):
        path = checkout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("another\n")
    assert passed(checkout)


def test_a_run_that_fails_writes_nothing(checkout: Path) -> None:
    assert run(checkout, FAILS) == 1
    assert not (checkout / RECORD).exists()
    run(checkout, PASSES)
    before = (checkout / RECORD).read_text()
    input_files(checkout)[0].write_text("broken\n")
    assert run(checkout, FAILS) == 1
    assert (checkout / RECORD).read_text() == before
    assert not passed(checkout)


def test_a_run_during_which_an_input_changed_writes_nothing(checkout: Path) -> None:
    edit = f"import pathlib; pathlib.Path({str(input_files(checkout)[0])!r}).write_text('edited')"
    assert run(checkout, (sys.executable, "-c", edit)) == 0
    assert not (checkout / RECORD).exists()


def test_no_option_from_outside_leaves_tests_out(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k one")
    assert run(checkout, (sys.executable, "-c", "import os; assert 'PYTEST_ADDOPTS' not in os.environ")) == 0


def test_each_version_of_python_has_its_own_entry(checkout: Path) -> None:
    other = {"3.0": {"passed": "2026-01-02", "sha256": hash_of_inputs(checkout)}}
    (checkout / RECORD).write_text(json.dumps(other))
    assert not passed(checkout)
    run(checkout, PASSES)
    record = json.loads((checkout / RECORD).read_text())
    assert record.keys() == {"3.0", PYTHON}
    assert record["3.0"] == other["3.0"]
    assert record[PYTHON]["sha256"] == hash_of_inputs(checkout)


def test_the_record_is_no_input_of_itself() -> None:
    assert not any(Path(RECORD).is_relative_to(name) for name in INPUTS)


def test_ci_runs_the_suites_when_they_are_due_and_only_then(checkout: Path) -> None:
    assert "test-plane" in made(checkout, ".ci/run")
    run(checkout, PASSES)
    targets = made(checkout, ".ci/run")
    assert "test" in targets
    assert "test-plane" not in targets
    input_files(checkout)[-2].write_text("another\n")
    assert "test-plane" in made(checkout, ".ci/run")


def test_the_long_run_runs_the_suites_always(checkout: Path) -> None:
    run(checkout, PASSES)
    assert "test-plane" in made(checkout, ".ci/long")


def made(checkout: Path, script: str) -> list[str]:
    """Return the targets that a script of CI calls in a checkout whose other programs do nothing."""
    log = checkout / "made"
    log.write_text("")
    programs = checkout / ".venv/bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name, text in {
        "make": f'echo "$1" >>{log}',
        "kubectl": "exit 0",
        "kardinal": "exit 0",
        "python": f'case "$2" in hack.plane_suites|hack.second_try) exec {sys.executable} "$@";; *) exit 1;; esac',
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o700)
    (checkout / ".ci").mkdir(exist_ok=True)
    copied = shutil.copy(ROOT / script, checkout / script)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    subprocess.run([copied], env=environment, check=True, capture_output=True, timeout=30)
    return log.read_text().split()


def test_the_inputs_hold_whatever_the_suites_import_of_tests_and_tools() -> None:
    outside = {
        imported: importer
        for imported, importer in imported_by_suites().items()
        if imported.startswith(("tests.", "hack.")) and not is_input(imported)
    }
    assert outside == {}, "add them to INPUTS of hack/plane_suites.py, or import something else"


def test_the_suites_import_no_product_but_the_plane_and_what_it_stands_on() -> None:
    outside = {
        imported: importer
        for imported, importer in imported_by_suites(below=SUITES).items()
        if imported.startswith("kardinal") and not is_input(imported)
    }
    assert outside == {}, "a test of other packages with the plane belongs into tests/local"


def imported_by_suites(below: Iterable[str] = INPUTS) -> dict[str, str]:
    """Return the modules of the repository that the tests import, each with a file that imports it."""
    found: dict[str, str] = {}
    for name in below:
        if not name.startswith(("tests/", "hack/")):
            continue
        path = ROOT / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            for module in imports(file):
                found.setdefault(module, str(file.relative_to(ROOT)))
    return found


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            # `from hack.docs import limits` imports a module, `from hack.docs.limits import page` none of that name.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if path_of(name) else node.module for name in names]
        yield from (name for name in names if path_of(name))


def path_of(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    if path.is_dir():
        return path.relative_to(ROOT)
    return path.with_suffix(".py").relative_to(ROOT) if path.with_suffix(".py").is_file() else None


def is_input(module: str) -> bool:
    path = path_of(module)
    return path is not None and any(path.is_relative_to(name) for name in INPUTS)
