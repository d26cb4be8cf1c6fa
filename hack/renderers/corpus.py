"""Fetch kustomizations of other projects, on which our edits are compared with `kustomize edit set image`.

    python -m hack.renderers.corpus

`corpus.txt` lists Go modules and their versions. They are fetched into Go's module cache, and are not copied into this
repository.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from kardinal.edits.kustomize.kustomization import FILE_NAMES

__all__ = ["fetched", "kustomizations"]

_LIST = Path(__file__).with_name("corpus.txt")


def _modules() -> list[tuple[str, str]]:
    lines = (line.split() for line in _LIST.read_text().splitlines() if line and not line.startswith("#"))
    return [(name, version) for name, version in lines]


def _go(*arguments: str) -> str:
    environment = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    done = subprocess.run(["go", *arguments], env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def fetched() -> dict[str, Path]:
    """Return the directories of the modules of `corpus.txt` that are in Go's module cache, by module."""
    try:
        cache = Path(_go("env", "GOMODCACHE"))
    except (OSError, subprocess.CalledProcessError):
        return {}
    found = {name: cache / f"{_escaped(name)}@{version}" for name, version in _modules()}
    return {name: directory for name, directory in found.items() if directory.is_dir()}


def kustomizations(directory: Path) -> Iterator[str]:
    """Yield the directories with a kustomization, relative to the directory of their module."""
    for parent, directories, files in os.walk(directory):
        directories.sort()
        if any(name in files for name in FILE_NAMES):
            yield Path(parent).relative_to(directory).as_posix()


def _escaped(name: str) -> str:
    # Go's cache writes an upper-case letter as an exclamation mark and the lower-case letter: `!azure` for `Azure`.
    return re.sub(r"[A-Z]", lambda letter: f"!{letter[0].lower()}", name)


def main() -> int:
    for name, version in _modules():
        try:
            _go("mod", "download", f"{name}@{version}")
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name}@{version} cannot be fetched: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
