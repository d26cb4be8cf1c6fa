"""Measure what a program answers and holds: `/healthz`, its own memory, and that of its children.

A thread asks for `/healthz` every few hundredths of a second, on a new connection each time, as a kubelet does. Memory
is that of Linux: the most that the process had resident since the beginning, and what its children had of their own at
a look every tenth of a second.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["Cost", "measured"]

DEADLINE = 20.0
"""Seconds that one look at `/healthz` has, far more than a kubelet gives it."""
_PAUSE = 0.03
_LOOK = 0.1


@dataclass(slots=True)
class Cost:
    """The cost of a time. `latency`: the slowest `/healthz`, in seconds. `failed`: those that were not 200."""

    asked: int = 0
    failed: int = 0
    latency: float = 0.0
    memory: int = 0
    """Bytes that the program held at most beyond those of the beginning."""
    children: int = 0
    """Bytes that all children together held at most."""


@contextmanager
def measured(pid: int, probes: str) -> Iterator[Cost]:
    """Measure while the block runs; the cost is complete after it."""
    cost = Cost()
    over = threading.Event()
    before = _status(pid, "VmRSS")
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # the most that was resident begins anew
    looks = [
        threading.Thread(target=_ask, args=(probes, cost, over), name="healthz"),
        threading.Thread(target=_weigh, args=(pid, cost, over), name="children"),
    ]
    for look in looks:
        look.start()
    try:
        yield cost
    finally:
        over.set()
        for look in looks:
            look.join()
        with suppress(OSError):
            cost.memory = max(0, _status(pid, "VmHWM") - before)


def _ask(probes: str, cost: Cost, over: threading.Event) -> None:
    parts = urlsplit(probes)
    while not over.wait(_PAUSE):
        began = time.perf_counter()
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=DEADLINE)
        try:
            connection.request("GET", "/healthz")
            fine = connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            fine = False
        finally:
            connection.close()
        cost.asked += 1
        cost.failed += not fine
        cost.latency = max(cost.latency, time.perf_counter() - began)


def _weigh(pid: int, cost: Cost, over: threading.Event) -> None:
    while not over.wait(_LOOK):
        cost.children = max(cost.children, sum(map(_own, _descendants(pid))))


def _descendants(pid: int) -> set[int]:
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            parents[int(place.parent.name)] = int(place.read_bytes().rpartition(b")")[2].split()[1])
    found: set[int] = set()
    new = {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new}
        found |= new
    return found


def _own(pid: int) -> int:
    """Return the bytes of a process, of which those that it still shares with its parent count in part."""
    with suppress(OSError, ValueError, IndexError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return sum(int(text.partition(f"{field}:")[2].split()[0]) * 1024 for field in ("Pss_Anon", "Pss_Shmem"))
    return 0


def _status(pid: int, field: str) -> int:
    """Return bytes that the kernel tells of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition(f"{field}:")[2].split()[0]) * 1024
