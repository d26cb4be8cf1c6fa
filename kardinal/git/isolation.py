"""The walls around a renderer: which ones this machine has, and the plan for one run (`confined`).

A renderer may read and write the directory that was made for it, and run its own program. A program that is linked to
libraries, or a script, may read and run those of the system as well. One that is allowed to fetch also gets sockets,
and the files that name resolution and TLS need: `/etc` as a whole may hold credentials of this process.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kardinal.git import confined

__all__ = ["NOT_ISOLATED", "Walls", "confine", "environment_of", "find_walls"]

NOT_ISOLATED = (
    "Use Linux 5.13 or newer, and a container runtime that allows it, or start the agent without "
    "--require-renderer-isolation"
)
"""The remedy where isolation is required."""
_SYSTEM = ("/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/libexec")
_LINKER = ("/etc/ld.so.cache",)
_FETCHING = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/passwd",
    "/etc/ssl",
    "/etc/pki",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/usr/share/ca-certificates",
    "/usr/share/git-core",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom")
_LOADER = 3
"""The kind of an ELF segment that names what loads the libraries of a program."""
_TRY_WITHIN = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """Why this machine cannot put up a wall; empty for each one that it can."""

    landlock: str = ""
    seccomp: str = ""

    @property
    def missing(self) -> str:
        """A sentence about the walls that are missing, or nothing."""
        found = []
        if self.landlock:
            found.append(f"Landlock cannot be had ({self.landlock}), so they can read what this process can")
        if self.seccomp:
            found.append(f"a seccomp filter cannot be had ({self.seccomp}), so they can open connections")
        return f"renderers are not isolated: {', and '.join(found)}" if found else ""


@cache
def find_walls() -> Walls:
    """Put up each wall around a process made for that, once. Blocks."""
    try:
        tried = subprocess.run(  # noqa: S603 - a file of our own
            [*_launcher(), json.dumps({"try": True})], capture_output=True, timeout=_TRY_WITHIN, check=True
        )
        found = json.loads(tried.stdout)
        return Walls(landlock=found["landlock"], seccomp=found["seccomp"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        return Walls(landlock=type(error).__name__, seccomp=type(error).__name__)


def confine(
    command: Sequence[str], *, programs: Sequence[str], home: Path, output: Path, network: bool, walls: Walls
) -> list[str]:
    """Return the command that runs `command` behind the walls, with its output in a file.

    `programs`: what may be run, by absolute path. `home`: the directory that may be read and written.
    """
    run: list[str] = []
    read: list[str] = []
    for program in programs:
        run.append(program)
        if network or not _is_static(program):
            run += _SYSTEM
            read += _LINKER
    if network:
        read += _FETCHING
    plan = {
        "landlock": not walls.landlock,
        "seccomp": not walls.seccomp,
        "network": network,
        "output": str(output),
        "own": [str(home), *_DEVICES],
        "read": read,
        "run": run,
    }
    return [*_launcher(), json.dumps(plan), os.path.abspath(command[0]), *command[1:]]


def environment_of(home: Path, memory: int, *, remote: bool) -> dict[str, str]:
    """Return the environment of a program in `home` that may use `memory` bytes: nothing of ours is in it."""
    environment = {
        "PATH": str(home / "empty"),
        "HOME": str(home / "empty"),
        "TMPDIR": str(home),
        "KUBECONFIG": "/dev/null",
        "LC_ALL": "C",
        "HELM_NO_PLUGINS": "1",
        # From here on it collects its garbage instead of growing, and says only why it ends.
        "GOMEMLIMIT": f"{memory * 3 // 4}B",
        "GOTRACEBACK": "none",
    }
    if not remote:
        # Nothing listens there: whatever is asked for over http comes to its end.
        return environment | dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://[::1]:9")
    git = shutil.which("git")
    return environment | {
        "PATH": str(Path(git).parent) if git else environment["PATH"],
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "https:ssh",
    }


def _is_static(program: str) -> bool:
    """Return whether a program is an ELF file that needs no libraries."""
    try:
        with open(program, "rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
                return False
            (table,) = struct.unpack_from("<Q", head, 32)
            size, count = struct.unpack_from("<HH", head, 54)
            file.seek(table)
            segments = file.read(size * count)
    except OSError:
        return False
    return all(segments[at : at + 4] != struct.pack("<I", _LOADER) for at in range(0, len(segments), size or 1))


def _launcher() -> tuple[str, ...]:
    return sys.executable, "-I", "-S", os.path.abspath(confined.__file__)
