"""Commands of `kardinal` on hostile files, and the time and memory that each takes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from kardinal_local import sample
from tests.support.hostile.repositories import DOCUMENTS

__all__ = ["HONEST", "Case", "Done", "commands", "run_command"]

_PIPELINE = orjson.dumps(sample.pipeline("https://git.example.com/acme/gitops")).decode()


@dataclass(frozen=True, slots=True)
class Case:
    """A command that reads a file with this text."""

    name: str
    arguments: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Done:
    """`memory`: the most bytes that the process had resident. `said`: its last words."""

    code: int
    seconds: float
    memory: int
    said: str


_FILE = "given.yaml"
_LINT = ("lint", "-f", _FILE)
HONEST = Case("lint, honest", _LINT, _PIPELINE)


def commands() -> Iterator[Case]:
    """Yield each command with each hostile text."""
    texts = {
        **DOCUMENTS,
        "nested JSON": "[" * 400_000,
        "JSON of many objects": "[" + "{}," * 300_000 + "{}]",
        "many Pipelines": "---\n".join([f"{_PIPELINE}\n"] * 20_000),
        "20 MiB": "x: '" + "y" * (20 << 20) + "'\n",
    }
    for name, text in texts.items():
        yield Case(f"lint, {name}", _LINT, text)
        yield Case(f"init, {name}", ("init", "-f", _FILE, "-o", "yaml"), text)


def run_command(directory: Path, case: Case) -> Done:
    """Run a command in a directory, which has its file meanwhile."""
    (directory / _FILE).write_text(case.text)
    with (directory / "said").open("wb+") as said:
        began = time.perf_counter()
        process = subprocess.Popen(
            [Path(sys.executable).parent / "kardinal", *case.arguments],
            cwd=directory,
            env={"PATH": "/usr/bin:/bin", "HOME": str(directory), "LANG": "C.UTF-8", "KUBECONFIG": os.devnull},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        said.seek(0)
        words = said.read(4096).decode(errors="replace")
    return Done(process.returncode, seconds, used.ru_maxrss * 1024, words)
