"""`make lint` finds citations of pages and headings that the repository does not have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hack.lint.citations import check

ROOT = Path(__file__).parents[2]

# Written in pieces, because the check reads this file as well.
MD = ".md"
ABSENT = f"absent{MD}"
PAGE = f"docs/design/queues{MD}"
SOME_SECTION = "DD " + "5.2"
SOME_CODE = "P" + "18"

CONTENT = """\
# Queues

## Work items, and `done`

```sh
# Not a heading
```
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a repository with one page of design and one at its root."""
    for name, text in {PAGE: CONTENT, f"README{MD}": "# Read me\n"}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def findings(tree: Path, text: str, *, name: str = "package/module.py") -> list[str]:
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return [str(finding) for finding in check(tree, [Path(name)])]


@pytest.mark.parametrize(
    "text",
    [
        PAGE,
        f"queues{MD}",
        f"README{MD}",
        f"../README{MD}",
        f'{PAGE}, "Work items, and done"',
        f'{PAGE}, "Work items,\n# and done"',
        f"{PAGE}, *Queues*",
        f"{PAGE}#work-items-and-done",
        f"https://example.com/{ABSENT}#anchor",
        f"every file that ends in {MD}",
        "P256, HTTP 500",
    ],
)
def test_existing_headings_may_be_cited(tree: Path, text: str) -> None:
    assert findings(tree, f'"""Say something.\n\n{text}\n"""\n') == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ABSENT, f"there is no {ABSENT}"),
        (f"docs/{ABSENT}", f"there is no docs/{ABSENT}"),
        (f'{PAGE}, "Work item"', f'{PAGE} has no heading "Work item": it has Queues, Work items, and done'),
        (f"queues{MD}, *Priorities*", f'{PAGE} has no heading "Priorities"'),
        (f'{PAGE}, "Not a heading"', "no heading"),
        (f"{PAGE}#work-item", f"{PAGE} has no heading with the anchor #work-item"),
        (f"queues{MD} 5.2", f"{PAGE} has no numbered sections (5.2)"),
        (f"queues{MD} {SOME_CODE}", f"{PAGE} has no numbered sections ({SOME_CODE})"),
        (SOME_SECTION, f"{SOME_SECTION} names no page"),
        (SOME_CODE, f"{SOME_CODE} names no page"),
    ],
)
def test_a_citation_that_leads_nowhere_is_found(tree: Path, text: str, message: str) -> None:
    (found,) = findings(tree, f"# A comment.\n# See {text}\n")
    assert found.startswith("package/module.py:2: ")
    assert message in found


def test_every_citation_of_a_line_is_found(tree: Path) -> None:
    assert len(findings(tree, f"# {ABSENT} 1.1, {SOME_CODE}; {SOME_SECTION}\n")) == 3


@pytest.mark.parametrize("name", [f"CHANGES{MD}", "pyproject.toml", "deploy/a.yaml", "Makefile", ".ci/run"])
def test_pages_manifests_and_scripts_are_read_too(tree: Path, name: str) -> None:
    assert len(findings(tree, ABSENT, name=name)) == 1


@pytest.mark.parametrize("name", ["tests/recordings/answer.yaml", "data.json"])
def test_recordings_and_data_are_not(tree: Path, name: str) -> None:
    assert findings(tree, ABSENT, name=name) == []


def test_the_command_reads_what_git_tracks_and_fails(tree: Path) -> None:
    (tree / "tracked.py").write_text(f"# {ABSENT}\n")
    (tree / "untracked.py").write_text(f"# {ABSENT}\n")
    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    subprocess.run(["git", "add", "tracked.py"], cwd=tree, check=True)
    failed = lint(tree)
    assert (failed.returncode, len(failed.stdout.splitlines())) == (1, 1)
    assert failed.stdout.startswith("tracked.py:1: ")

    (tree / "tracked.py").write_text(f"# {PAGE}\n")
    passed = lint(tree)
    assert (passed.returncode, passed.stdout) == (0, "")


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hack.lint.citations"],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
