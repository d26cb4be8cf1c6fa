"""Memory for children: shares of what the container may use, or the machine where there is no limit.

Half of it is for this program, a quarter for renderers and a quarter for Git transfers. What counts is what a child and
all that it started really hold. The kernel's own limits are about addresses or mappings: programs written in Go map
64 MiB at a time, so such a limit (`mapped`) only catches what grows faster than it is looked at.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from kardinal.git.errors import MemoryExceeded

__all__ = ["AVAILABLE", "LOOKED_AT_EVERY", "MemoryPool", "available_memory", "git_memory", "renderer_memory"]

LOOKED_AT_EVERY = 0.1
"""Seconds between two looks at what children hold."""
_PART = 4
_OF_A_RENDERER = 256 << 20
"""As much is enough for a chart of many hundred objects; where a quarter is less, the one renderer gets that."""
_RENDERERS = 4
_LARGEST = 1 << 30
_STEP = 64 << 20
"""Bytes that a program in Go maps at a time."""
_V2 = "memory.max"
_V1 = "memory.limit_in_bytes"
_KIB = 1024


def available_memory(root: Path = Path("/")) -> int:
    """Return the bytes that this process and its children may use: the smallest limit of its cgroups, or the machine's.

    `root` has the `proc` and `sys` to read.
    """
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                places = [(root / "sys/fs/cgroup", _V2), (root / "sys/fs/cgroup/unified", _V2)]
            elif "memory" in controllers.split(","):
                places = [(root / "sys/fs/cgroup/memory", _V1)]
            else:
                places = []
            for mounted, name in places:
                own = mounted / path.lstrip("/")
                # In a container the path may be that of the host, and its own group is what is mounted.
                found += (limit for group in (own, *own.parents) if (limit := _limit(group / name)))
    return min(found)


def _limit(file: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(file.read_text())  # "max" is no limit
    return None


AVAILABLE: Final = available_memory()
"""Read at start, and by nothing that runs on the event loop."""


def renderer_memory(available: int = AVAILABLE) -> tuple[int, int]:
    """Return how many renderers may run at once, and the bytes of each."""
    part = available // _PART
    at_once = min(max(part // _OF_A_RENDERER, 1), _RENDERERS)
    return at_once, min(part // at_once, _LARGEST)


def git_memory(available: int = AVAILABLE) -> int:
    """Return the bytes for all Git transfers together."""
    return available // _PART


class MemoryPool:
    """The bytes that the children of one kind may hold: each of them, and all together."""

    def __init__(self, *, each: int, total: int) -> None:
        self.each = each
        self._total = total
        self._lock = threading.Lock()
        self._held: dict[int, int] = {}
        self._looked = 0.0

    @property
    def mapped(self) -> int:
        """Return the bytes that one process may map for its data."""
        return self.each + _STEP

    def enter(self, group: int) -> None:
        """Count a process group from now on."""
        with self._lock:
            self._held[group] = 0

    def leave(self, group: int) -> None:
        """Count a process group no longer."""
        with self._lock:
            self._held.pop(group, None)

    def check(self, group: int, name: str) -> None:
        """Raise `MemoryExceeded` for a group that holds too much, or the most where all hold too much together."""
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= LOOKED_AT_EVERY:
                self._looked = now
                self._held |= _resident(self._held)
            held, every = self._held[group], self._held.values()
            if held > self.each:
                raise MemoryExceeded(name, self.each)
            if sum(every) > self._total and held == max(every):
                raise MemoryExceeded(name, self._total, beside_others=True)


def _resident(groups: dict[int, int]) -> dict[int, int]:
    """Return the bytes of their own that the processes of each group hold now; nothing but on Linux."""
    held = dict.fromkeys(groups, 0)
    if sys.platform != "linux" or not groups:
        return held
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, ValueError, IndexError):
            group = int(Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()[2])
            if group in held:
                held[group] += _own(Path(f"/proc/{name}/status").read_text())
    return held


def _own(status: str) -> int:
    fields = dict(line.split(":", 1) for line in status.splitlines() if line.startswith(("RssAnon:", "RssShmem:")))
    return sum(int(text.split()[0]) * _KIB for text in fields.values())
