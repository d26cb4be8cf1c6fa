"""Promote with a script of `git` commands, for comparison: clone, edit, commit and push."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

__all__ = ["promotions_a_minute"]


def promotions_a_minute(url: str, paths: Sequence[str], directory: Path, *, kept: bool) -> float:
    """Return the promotions per minute of a script that promotes into each path in turn.

    With `kept`, all promotions use the same clone, else each promotion makes a new clone.
    """
    directory.mkdir(parents=True)
    clone = directory / "kept"
    if kept:
        _git(directory, "clone", "--quiet", url, str(clone))
    began = time.perf_counter()
    for number, path in enumerate(paths):
        if not kept:
            clone = directory / f"clone-{number}"
            _git(directory, "clone", "--quiet", "--depth=1", url, str(clone))
        _edit(clone / path / "kustomization.yaml", f"9.{int(kept)}.{number}")
        _git(clone, "pull", "--quiet", "--rebase", "--autostash")
        _git(clone, "commit", "--quiet", "--all", f"--message=Promote to {path}")
        _git(clone, "push", "--quiet")
    return len(paths) / (time.perf_counter() - began) * 60


def _edit(path: Path, tag: str) -> None:
    """Write a tag into the `newTag` of a kustomization of the sample."""
    lines = [f'    newTag: "{tag}"' if "newTag:" in line else line for line in path.read_text().splitlines()]
    path.write_text("\n".join(lines) + "\n")


def _git(directory: Path, *arguments: str) -> None:
    author = ("-c", "user.name=script", "-c", "user.email=script@example.com", "-c", "advice.detachedHead=false")
    subprocess.run(["git", "-C", str(directory), *author, *arguments], check=True, capture_output=True)
