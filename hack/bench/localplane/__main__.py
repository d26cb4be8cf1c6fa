"""Measure the local plane and a real API server in one run on this machine.

    make bench-localplane
    make bench-localplane ARGS="starts lists"      of its parts starts, load, lists and memory

Both servers run with TLS, RBAC, managed fields and a CRD with a schema. The load comes from a separate process, which
takes CPU time from the server, as clients on the same machine do. Runs alternate between the two servers, and a figure
is the median of five runs; only memory under many updates is of one run, because it takes minutes and hardly varies.
The start and the memory are measured for the local plane only: with a new directory, for which it creates certificates,
and with an existing one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hack.bench.localplane.load import LISTED
from hack.bench.localplane.subjects import Subject, memory_of, plane, prepared, real, running_plane
from hack.kube.assets import HACK

RUNS = 5
SETTLED_SECONDS = 10
SCENARIOS = ("throughput", "idle", "watch")
MB = 1024 * 1024

Samples = dict[tuple[str, str], list[float]]
"""One value per run by (server, figure), for example `("local plane", "start.first")`."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: `scale` converts a value to `unit`, and `at_least` tells that `goal` is a minimum."""

    figure: str
    text: str
    unit: str
    goal: float
    at_least: bool = False
    scale: float = 1000.0


ROWS = (
    Row("throughput.creates", "creates, 16 clients, 2 KB objects", "/s", 900, at_least=True, scale=1),
    Row("throughput.patches", "status patches, 16 clients", "/s", 800, at_least=True, scale=1),
    Row("idle.p99", "one write on an idle server, p99", "ms", 5),
    Row("lists.json", "list of 10,000 as JSON", "ms", 150),
    Row("lists.json_stall", "longest wait of another request beside that list", "ms", 20),
    Row("lists.table", "list of 10,000 as a Table", "ms", 3000),
    Row("lists.table_stall", "longest wait of another request beside that Table", "ms", 20),
    Row("kubectl", "`kubectl get` of 10,000", "s", 3, scale=1),
    Row("watch.p99", "100 watchers, 20 writes/s: write to receipt, p99", "ms", 20),
    Row("memory.first", "memory, `--only plane`, no CRDs, 10 s after its first start", "MB", 45, scale=1 / MB),
    Row("memory.again", "the same after a later start", "MB", 45, scale=1 / MB),
    Row("memory.object", "memory per object of 2 KB", "KB", 6, scale=1 / 1024),
    Row("memory.updates", "memory after 100,000 updates of 10,000 objects", "MB", 150, scale=1 / MB),
    Row("start.first", "first start of the process until `/readyz`", "ms", 400),
    Row("start.again", "later start of the process until `/readyz`", "ms", 400),
    Row("start.inside", "start inside a running process, authority given", "ms", 5),
    Row("start.reopen", "opening a directory with 20,000 objects", "s", 1, scale=1),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Without a part, all of them.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    if unknown := set(chosen) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    samples: Samples = defaultdict(list)
    for part in chosen:
        _say(part)
        PARTS[part](samples)
    _print(samples)


def _starts(samples: Samples) -> None:
    """Measure an idle plane: the time of its start, and its memory."""
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as parent, ExitStack() as running:
            known = Path(parent) / "known"
            with running_plane(known):
                pass
            for name, directory in (("first", Path(parent) / "new"), ("again", known)):
                process, took = running.enter_context(running_plane(directory))
                samples["local plane", f"start.{name}"].append(took)
                running.callback(_sample_memory, samples, f"memory.{name}", process)
            time.sleep(SETTLED_SECONDS)
    _in_process(samples)


def _sample_memory(samples: Samples, figure: str, process: int) -> None:
    samples["local plane", figure].append(memory_of(process))


def _in_process(samples: Samples, *options: str) -> None:
    command = [sys.executable, "-m", "hack.bench.localplane.in_process", *options]
    done = subprocess.run(command, cwd=HACK.parent, check=True, stdout=subprocess.PIPE, text=True)
    for name, values in json.loads(done.stdout).items():
        samples["local plane", f"start.{name}"] += values


def _loads(samples: Samples) -> None:
    with plane() as local, real() as cluster:
        for run in range(RUNS):
            for scenario in SCENARIOS:
                for subject in (local, cluster):
                    _load(samples, subject, scenario, subject.namespace(f"{scenario}-{run}"))


def _load(samples: Samples, subject: Subject, scenario: str, namespace: str) -> None:
    _say(f"{subject.name}: {scenario}")
    for name, value in subject.load(scenario, namespace).items():
        samples[subject.name, f"{scenario}.{name}"].append(value)


def _lists(samples: Samples) -> None:
    with plane() as local, real() as cluster:
        subjects = (local, cluster)
        for subject in subjects:
            _load(samples, subject, "fill", subject.namespace("listed"))
        for _ in range(RUNS):
            for subject in subjects:
                _load(samples, subject, "lists", "listed")
                began = time.perf_counter()
                subject.kubectl("get", "loads", "--namespace=listed")
                samples[subject.name, "kubectl"].append(time.perf_counter() - began)


def _memory(samples: Samples) -> None:
    """Measure the memory of a separate plane when it is full and after many updates, and the times to reopen it."""
    with tempfile.TemporaryDirectory() as parent:
        directory = Path(parent) / "plane"
        with running_plane(directory) as (process, _):
            subject = prepared("local plane", directory / "kubeconfig", Path(parent))
            time.sleep(SETTLED_SECONDS)
            empty = memory_of(process)
            subject.load("fill", subject.namespace("filled"))
            time.sleep(SETTLED_SECONDS)
            samples[subject.name, "memory.object"].append((memory_of(process) - empty) / LISTED)
            _load(samples, subject, "update", "filled")
            _sample_memory(samples, "memory.updates", process)
            subject.load("fill", subject.namespace("filled-too"))
        _in_process(samples, str(directory))


PARTS = {"starts": _starts, "load": _loads, "lists": _lists, "memory": _memory}


def _print(samples: Samples) -> None:
    when = f"Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}"
    print(f"{os.cpu_count()} cores of {_processor()}, {when}:\n")
    print("| | local plane | goal | kube-apiserver | ratio |\n|---|---:|---:|---:|---:|")
    for row in ROWS:
        if not samples["local plane", row.figure]:
            continue
        measured = statistics.median(samples["local plane", row.figure]) * row.scale
        sign = "≥" if row.at_least else "≤"
        missed = measured < row.goal if row.at_least else measured > row.goal
        shown = f"**{_number(measured)} {row.unit}**" if missed else f"{_number(measured)} {row.unit}"
        other = ""
        ratio = ""
        if beside := samples.get(("kube-apiserver", row.figure)):
            compared = statistics.median(beside) * row.scale
            other = f"{_number(compared)} {row.unit}"
            ratio = f"{measured / compared:.2f}"
        print(f"| {row.text} | {shown} | {sign} {row.goal:,g} {row.unit} | {other} | {ratio} |")


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine())


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
