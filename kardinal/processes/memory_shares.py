"""The memory for children: shares of the memory limit of the container, or of the machine if there is no limit.

This program has half of it, renderers a quarter, and Git transfers a quarter. The limits apply to the memory that a
child and its own children really use. The limits of the kernel apply to addresses or mappings instead, and programs
written in Go map 64 MiB at a time; so such a limit (`mapped`) is only for growth that is faster than the interval of
the checks.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from kardinal.processes.errors import ShareExceeded

__all__ = ["AVAILABLE", "LOOKED_AT_EVERY", "MemoryPool", "available_memory", "children_memory"]

LOOKED_AT_EVERY = 0.1
"""The interval in seconds at which the memory of children is checked."""
_PART = 4
"""The divisor for the share of each kind of children, renderers and Git transfers: a quarter."""
_STEP = 64 << 20
"""The size in bytes of one mapping by a program in Go."""
_V2 = "memory.max"
_V1 = "memory.limit_in_bytes"
_KIB = 1024


def available_memory(root: Path = Path("/")) -> int:
    """Return the bytes that this process and its children may use: the smallest limit of its cgroups, or the machine's.

    `root` is the directory with `proc` and `sys`; defaults to `/`.
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
                # In a container this may be the path on the host, while the mounted directory is the cgroup of the
                # container.
                found += (limit for group in (own, *own.parents) if (limit := _limit(group / name)))
    return min(found)


def _limit(file: Path) -> int | None:
    with suppress(OSError, ValueError):
        return int(file.read_text())  # "max" means no limit
    return None


AVAILABLE: Final = available_memory()
"""Read once at start, before there is an event loop."""


def children_memory(available: int = AVAILABLE) -> int:
    """Return the bytes for all children of one kind together."""
    return available // _PART


class MemoryPool:
    """The memory limits in bytes for the children of one kind: `each` for one child, and `total` for all together."""

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
        """Start to count a process group."""
        with self._lock:
            self._held[group] = 0

    def leave(self, group: int) -> None:
        """Stop counting a process group."""
        with self._lock:
            self._held.pop(group, None)

    def check(self, group: int, name: str) -> None:
        """Raise `ShareExceeded` if the group uses too much memory.

        It is also raised for the largest group if all groups together use too much.
        """
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= LOOKED_AT_EVERY:
                self._looked = now
                self._held |= _resident(self._held)
            held = self._held[group]
            every = self._held.values()
            if held > self.each:
                raise ShareExceeded(name, self.each)
            if sum(every) > self._total and held == max(every):
                raise ShareExceeded(name, self._total, beside_others=True)


def _resident(groups: dict[int, int]) -> dict[int, int]:
    """Return the bytes that the processes of each group use now, without mapped files; 0 except on Linux."""
    held = dict.fromkeys(groups, 0)
    if sys.platform != "linux" or not groups:
        return held
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, ValueError):
            # Asked of the kernel, because a file is opened for every process of the machine otherwise.
            group = os.getpgid(int(name))
            if group in held:
                held[group] += _own(Path(f"/proc/{name}/status").read_text())
    return held


def _own(status: str) -> int:
    fields = dict(line.split(":", 1) for line in status.splitlines() if line.startswith(("RssAnon:", "RssShmem:")))
    return sum(int(text.split()[0]) * _KIB for text in fields.values())
