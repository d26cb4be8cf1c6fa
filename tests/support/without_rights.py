"""Renders as an agent in a container would: `python -m tests.support.without_rights PROGRAMS PYTHON`.

`PROGRAMS` is a directory of renderers, `PYTHON` starts them. With `without-landlock` behind them, Landlock is refused,
as by a container runtime that does not know it. The process becomes that of a user without rights, where
it may, and refuses itself the system calls that container runtimes refuse by default, to a process without
capabilities. Their seccomp profile lists what is allowed; here is what is left over, on x86_64.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from contextlib import closing
from pathlib import Path

from kardinal.processes.confined import refuse
from kardinal.processes.isolation import find_walls
from kardinal.rendering.programs import ProgramRenderer, RendererOptions
from kardinal.tree.edit import Tree
from tests.support.renderers import BASE, CHART, OVERLAY, helm, kustomize

__all__ = ["UNPRIVILEGED", "Files", "main"]

UNPRIVILEGED = 65534
_CLONE3 = 435
_LANDLOCK = (444, 445, 446)
_REFUSED = {
    "keys": (248, 249, 250),
    "memory of others": (310, 311, 312, 438, 440),
    "modules": (175, 176, 313),
    "mounts": (155, 161, 165, 166, 428, 429, 430, 431, 432, 433, 442),
    "namespaces": (272, 308),
    "placement of memory": (237, 238, 239, 256, 279, 450),
    "the machine": (103, 134, 136, 139, 153, 163, 164, 167, 168, 169, 170, 171, 172, 173, 179, 212, 227, 246, 320, 443),
    "tracing": (298, 321, 323),
    "files by their handle": (300, 304),
    "io_uring": (425, 426, 427),
}


class Files:
    """A `Tree` of texts."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = {path: text.encode() for path, text in files.items()}

    def read(self, path: str) -> bytes | None:
        return self._files.get(path)

    def size(self, path: str) -> int | None:
        return len(self._files[path]) if path in self._files else None

    def entries(self, directory: str) -> list[str]:
        start = f"{directory}/" if directory else ""
        return sorted({path[len(start) :].partition("/")[0] for path in self._files if path.startswith(start)})

    def is_dir(self, path: str) -> bool:
        return bool(self.entries(path))

    def identify(self, path: str) -> str | None:
        raise NotImplementedError

    def within(self, directory: str) -> Tree:
        raise NotImplementedError


def main() -> None:
    """Print, as JSON, who renders, behind which walls, and what comes out."""
    os.environ["PATH"], sys.executable = sys.argv[1:3]
    # Once with all rights: the user without them may not be able to read this Python's library.
    _rendered()
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)
        os.setresuid(UNPRIVILEGED, UNPRIVILEGED, UNPRIVILEGED)
    refused = [number for numbers in _REFUSED.values() for number in numbers]
    if sys.argv[3:] == ["without-landlock"]:
        refused += _LANDLOCK
    refuse(dict.fromkeys(refused, errno.EPERM) | {_CLONE3: errno.ENOSYS})
    find_walls.cache_clear()
    status = Path("/proc/self/status").read_text()
    state = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    result = {name: state[name].split()[0] for name in ("Uid", "CapEff", "CapPrm", "Seccomp")}
    json.dump(result | _rendered() | {"missing": find_walls().missing}, sys.stdout)


def _rendered() -> dict[str, str]:
    with closing(ProgramRenderer(RendererOptions())) as renderer:
        tree = Files(BASE | CHART | {"envs/dev/kustomization.yaml": OVERLAY})
        return {"kustomize": kustomize(renderer, tree).decode(), "helm": helm(renderer, tree, note="x").decode()}


if __name__ == "__main__":
    main()
