"""Measure the start time of commands: `kardinal --help`, two other commands, and `kardinal local up`.

    python -m hack.bench.start
    python -m hack.bench.start --base DIR

Every command is a new process. With `--base`, the command in the `.venv` of another checkout is measured in turns with
this one, because on a shared machine only figures of the same run can be compared. A figure is the median; the minimum
beside it is the figure of an undisturbed machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from kardinal.clock import SystemClock
from kardinal.git import create_bare_repository
from kardinal.kube import Client, load_connection
from kardinal.promotion.kinds import BUNDLE, PIPELINE
from kardinal_local import sample

RUNS = 15
STARTS = 5
IDLE_SECONDS = 5.0
"""The seconds between the start of `kardinal local up` and the reading of its memory."""
DEADLINE = 60.0

# Without this variable Python caches compiled modules, as on a user's machine, and all runs but the first find them.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table; `figures` has the figures of each checkout, printed with the format `form`."""

    title: str
    goal: str
    form: str
    figures: Sequence[Sequence[float]]


def _timed(command: Sequence[str | Path], environment: Mapping[str, str]) -> float:
    """Run a command, which must succeed, and return its duration in seconds."""
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _in_turns(
    checkouts: Sequence[Path], measure: Callable[[Path], float], runs: int, *, discarded: int = 1
) -> list[list[float]]:
    """Measure all checkouts `runs` times in turns, and return the figures by checkout.

    The first `discarded` rounds, by default one, are not counted, because they fill caches.
    """
    rounds = [[measure(kardinal) for kardinal in checkouts] for _ in range(discarded + runs)]
    return [list(figures) for figures in zip(*rounds[discarded:], strict=True)]


@contextmanager
def _plane(kardinal: Path, directory: Path, *options: str) -> Iterator[tuple[int, float]]:
    """Run `kardinal local up`, and yield its process id and the seconds until it printed that it is ready."""
    began = time.perf_counter()
    command = [str(kardinal), "local", "up", "--dir", str(directory), "--port", "0", *options]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        if process.stdout is None:
            raise RuntimeError("the process under test has no standard output")
        try:
            if not any(line.startswith(b"ready") for line in process.stdout):
                raise RuntimeError(f"{kardinal} local up ended before it was ready")
            yield process.pid, time.perf_counter() - began
        finally:
            process.terminate()
            process.wait(DEADLINE)


def _resident(process: int) -> float:
    """Return the resident memory of a process in MiB."""
    done = subprocess.run(["ps", "-o", "rss=", "-p", str(process)], check=True, capture_output=True)
    return int(done.stdout) / 1024


async def _promote(kubeconfig: Path, repository: Path) -> None:
    """Create a Pipeline and a Bundle, and wait until its promotion has ended."""
    environment = {"name": "dev", "path": "environments/dev"}
    pipeline = {
        "apiVersion": PIPELINE.api_version,
        "kind": PIPELINE.kind,
        "metadata": {"name": sample.APP, "namespace": "default"},
        "spec": {"git": {"url": repository.as_uri(), "provider": "git"}, "environments": [environment]},
    }
    bundle = {
        "apiVersion": BUNDLE.api_version,
        "kind": BUNDLE.kind,
        "metadata": {"name": "first", "namespace": "default", "labels": {"kardinal.io/pipeline": sample.APP}},
        "spec": {"artifacts": {"images": [{"reference": f"{sample.IMAGE}:1.0.1"}]}},
    }
    async with Client(await load_connection(kubeconfig), user_agent="kardinal-bench") as client:
        await client.create(PIPELINE, pipeline)
        async with asyncio.timeout(DEADLINE), client.watch(BUNDLE, "default", initial_events=True) as events:
            await client.create(BUNDLE, bundle)
            async for event in events:
                if event.object.get("status", {}).get("phase") == "Verified":
                    return
    raise RuntimeError("the Bundle was not verified")


def _commands(checkouts: Sequence[Path], directory: Path) -> Iterator[Row]:
    with _plane(checkouts[0], directory / "plane", "--simulate"):
        kubeconfig = directory / "plane" / "kubeconfig"
        repository = directory / "gitops.git"
        create_bare_repository(repository, sample.files(), message="an application", clock=SystemClock())
        asyncio.run(_promote(kubeconfig, repository))
        environment = {**ENVIRONMENT, "KUBECONFIG": str(kubeconfig)}
        for goal, arguments in (
            ("<= 0.25 s", ["--help"]),
            ("<= 0.40 s", ["get", "bundles", sample.APP]),
            ("", ["version"]),
        ):

            def measure(kardinal: Path, arguments: Sequence[str] = arguments) -> float:
                return _timed([kardinal, *arguments], environment)

            yield Row(f"kardinal {' '.join(arguments)}", goal, ".2f", _in_turns(checkouts, measure, RUNS))


def _planes(checkouts: Sequence[Path], directory: Path) -> Iterator[Row]:
    number = 0
    memory: dict[Path, list[float]] = {kardinal: [] for kardinal in checkouts}

    def measure(kardinal: Path) -> float:
        nonlocal number
        number += 1
        with _plane(kardinal, directory / f"start-{number}") as (process, seconds):
            time.sleep(IDLE_SECONDS)
            memory[kardinal].append(_resident(process))
        return seconds

    yield Row("kardinal local up until ready, s", "", ".2f", _in_turns(checkouts, measure, STARTS))
    yield Row("memory of it idle, MB", "", ".0f", [figures[1:] for figures in memory.values()])


def _print(rows: Iterator[Row], names: Sequence[str]) -> None:
    print(f"{'':<34}" + "".join(f"{name:>18}" for name in names) + ("   ratio" if len(names) > 1 else "") + "   goal")
    for row in rows:
        medians = [statistics.median(figures) for figures in row.figures]
        cells = (
            f"{median:{row.form}} ({min(figures):{row.form}})"
            for median, figures in zip(medians, row.figures, strict=True)
        )
        ratio = f"{medians[0] / medians[1]:8.2f}" if len(names) > 1 else ""
        print(f"{row.title:<34}" + "".join(f"{cell:>18}" for cell in cells) + f"{ratio}   {row.goal}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what starting kardinal costs.")
    parser.add_argument("--base", type=Path, metavar="DIR", help="another checkout, with a .venv, to compare with")
    base: Path | None = parser.parse_args().base
    checkouts = [Path(sys.executable).parent / "kardinal"]
    if base is not None:
        checkouts.append(base.absolute() / ".venv" / "bin" / "kardinal")
    names = ["here", "base"][: len(checkouts)]
    print(f"start on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print(f"median (least) of {RUNS} runs, of {STARTS} for local up; seconds\n")
    with tempfile.TemporaryDirectory(prefix="kardinal-bench-") as directory:
        _print(chain(_commands(checkouts, Path(directory)), _planes(checkouts, Path(directory))), names)


if __name__ == "__main__":
    main()
