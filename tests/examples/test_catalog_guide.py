"""The guide to catalogs: its files and commands work in the order of the page, and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs/guides/catalog.md").read_text()
BLOCK = re.compile(r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^```(?P<language>\w+)\n(?P<content>.*?)^```", re.M | re.S)


def blocks() -> Iterator[tuple[str, str]]:
    """Yield the path of a file, or an empty text for commands, with the content of each block."""
    for found in BLOCK.finditer(PAGE):
        assert found["file"] or found["language"] == "console", found[0]
        yield found["file"] or "", found["content"]


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a block with what the page says that it prints."""
    for each in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, printed = each.partition("\n")
        yield command, printed


def test_a_catalog_is_compiled_as_the_guide_says(tmp_path: Path) -> None:
    person = {
        "HOME": str(tmp_path / "home"),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "GIT_AUTHOR_NAME": "Dana",
        "GIT_AUTHOR_EMAIL": "dana@example.com",
        "GIT_COMMITTER_NAME": "Dana",
        "GIT_COMMITTER_EMAIL": "dana@example.com",
    }
    place = tmp_path / "work"
    for file, content in blocks():
        if file:
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(content.replace("${PWD}", str(place)))
            continue
        for command, printed in commands(content):
            if command.startswith("pip install"):
                continue
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=place,
                env=person,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert (command, done.returncode, done.stdout) == (command, 0, printed), done.stderr
