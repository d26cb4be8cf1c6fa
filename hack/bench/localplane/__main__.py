"""What the local plane can do, with a real API server beside it, from one run on this machine.

    make bench-localplane

Both servers run with TLS, RBAC, managed fields and a CRD with a schema; the load comes from a process of its own, which
takes CPU from the server, as clients on one machine do. Scenarios alternate between the two servers, and a figure
is the median of five. What only the local plane promises (memory, starting) is measured on it alone.
Design: local-plane.md 3.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hack.bench.localplane.load import LISTED
from hack.bench.localplane.subjects import Subject, memory_of, plane, prepared, real, running_plane
from hack.kube.assets import HACK

RUNS = 5
SETTLED_SECONDS = 10
STARTS = 5
SCENARIOS = ("throughput", "idle", "watch")
MB = 1024 * 1024

Samples = dict[tuple[str, str], list[float]]
"""(server, figure) -> one value per run."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

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
    Row("lists.json_stall", "longest wait of another request meanwhile", "ms", 20),
    Row("lists.table", "list of 10,000 as a Table", "ms", 3000),
    Row("lists.table_stall", "longest wait of another request meanwhile", "ms", 20),
    Row("kubectl", "`kubectl get` of 10,000", "s", 3, scale=1),
    Row("watch.p99", "100 watchers, 20 writes/s: write to receipt, p99", "ms", 20),
    Row("memory.start", "memory, `--only plane`, no CRDs, 10 s after ready", "MB", 45, scale=1 / MB),
    Row("memory.object", "memory per object of 2 KB", "KB", 6, scale=1 / 1024),
    Row("memory.updates", "memory after 100,000 updates of 10,000 objects", "MB", 150, scale=1 / MB),
    Row("start.process", "start of the process until it is ready", "ms", 400),
    Row("start.start", "start inside a running process, authority given", "ms", 5),
    Row("start.reopen", "opening a directory with 20,000 objects", "s", 1, scale=1),
)


def main() -> None:
    samples: Samples = defaultdict(list)
    _starts(samples)
    with plane() as local, real() as cluster:
        subjects = (local, cluster)
        for run in range(RUNS):
            for scenario in SCENARIOS:
                for subject in subjects:
                    _load(samples, subject, scenario, subject.namespace(f"{scenario}-{run}"))
        _lists(samples, subjects)
    _memory(samples)
    _print(samples)


def _load(samples: Samples, subject: Subject, scenario: str, namespace: str) -> None:
    _say(f"{subject.name}: {scenario}")
    for name, value in subject.load(scenario, namespace).items():
        samples[subject.name, f"{scenario}.{name}"].append(value)


def _lists(samples: Samples, subjects: tuple[Subject, ...]) -> None:
    for subject in subjects:
        _load(samples, subject, "fill", subject.namespace("listed"))
    for _ in range(RUNS):
        for subject in subjects:
            _load(samples, subject, "lists", "listed")
            began = time.perf_counter()
            subject.kubectl("get", "loads", "--namespace=listed")
            samples[subject.name, "kubectl"].append(time.perf_counter() - began)


def _starts(samples: Samples) -> None:
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as directory, running_plane(Path(directory)) as (_, took):
            samples["local plane", "start.process"].append(took)


def _memory(samples: Samples) -> None:
    """Of a plane of its own: empty, full, and after many updates; its directory is then opened once more."""
    with tempfile.TemporaryDirectory() as parent:
        directory = Path(parent) / "plane"
        with running_plane(directory) as (process, _):
            time.sleep(SETTLED_SECONDS)
            samples["local plane", "memory.start"].append(memory_of(process))
            subject = prepared("local plane", directory / "kubeconfig", Path(parent))
            time.sleep(SETTLED_SECONDS)
            empty = memory_of(process)
            subject.load("fill", subject.namespace("filled"))
            time.sleep(SETTLED_SECONDS)
            samples[subject.name, "memory.object"].append((memory_of(process) - empty) / LISTED)
            _say(f"{subject.name}: update")
            subject.load("update", "filled")
            samples[subject.name, "memory.updates"].append(memory_of(process))
            subject.load("fill", subject.namespace("filled-too"))
        command = [sys.executable, "-m", "hack.bench.localplane.in_process", str(directory)]
        done = subprocess.run(command, cwd=HACK.parent, check=True, stdout=subprocess.PIPE, text=True)
        for name, value in json.loads(done.stdout).items():
            samples[subject.name, f"start.{name}"].append(value)


def _print(samples: Samples) -> None:
    print(f"{os.cpu_count()} cores, Python {platform.python_version()}, {datetime.now(UTC):%Y-%m-%d}\n")
    print("| | local plane | goal | kube-apiserver | ratio |\n|---|---:|---:|---:|---:|")
    for row in ROWS:
        measured = statistics.median(samples["local plane", row.figure]) * row.scale
        sign = "≥" if row.at_least else "≤"
        missed = measured < row.goal if row.at_least else measured > row.goal
        shown = f"**{_number(measured)} {row.unit}**" if missed else f"{_number(measured)} {row.unit}"
        other, ratio = "", ""
        if beside := samples.get(("kube-apiserver", row.figure)):
            compared = statistics.median(beside) * row.scale
            other, ratio = f"{_number(compared)} {row.unit}", f"{measured / compared:.2f}"
        print(f"| {row.text} | {shown} | {sign} {row.goal:,g} {row.unit} | {other} | {ratio} |")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
