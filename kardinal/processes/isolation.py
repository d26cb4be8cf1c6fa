"""The isolation of a child: the mechanisms that this machine offers, and the plan for one run (`confined`).

An isolated child may read and write the directory that was created for it, and run its own program. If that program is
a script or linked to libraries, the child may also read and run programs and libraries of the system. A child with
network access also gets sockets, and the files that name resolution and TLS need, but not all of `/etc`, which may
contain credentials of this process.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kardinal.processes import confined

__all__ = ["Walls", "confine", "find_walls", "launcher", "plan_run"]

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
"""The type of an ELF segment with the name of the dynamic loader."""
_TRY_WITHIN = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """For each mechanism, the reason why this machine does not offer it; empty if it does."""

    landlock: str = ""
    seccomp: str = ""

    @property
    def missing(self) -> str:
        """Return the missing mechanisms, each with its consequence for children ("they"); empty if none is missing."""
        found = []
        if self.landlock:
            found.append(f"Landlock cannot be had ({self.landlock}), so they can read what this process can")
        if self.seccomp:
            found.append(f"a seccomp filter cannot be had ({self.seccomp}), so they can open connections")
        return ", and ".join(found)


@cache
def find_walls() -> Walls:
    """Try each mechanism in a separate process, once per program. Blocks."""
    try:
        tried = subprocess.run(  # noqa: S603 - a file of our own
            [*launcher(), "--try"], capture_output=True, timeout=_TRY_WITHIN, check=True, text=True
        )
        landlock, seccomp = tried.stdout.splitlines()
        return Walls(landlock=landlock, seccomp=seccomp)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Walls(landlock=type(error).__name__, seccomp=type(error).__name__)


def confine(
    command: Sequence[str],
    *,
    programs: Sequence[str],
    home: Path,
    output: Path | None,
    network: bool,
    walls: Walls,
    input: Path | None = None,  # noqa: A002 - beside `output`
    readable: Sequence[Path] = (),
) -> list[str]:
    """Return the command that runs `command` in isolation; the arguments are those of `plan_run`."""
    plan = plan_run(
        command,
        programs=programs,
        home=home,
        output=output,
        network=network,
        walls=walls,
        input=input,
        readable=readable,
    )
    return [*launcher(), *plan]


def plan_run(
    command: Sequence[str],
    *,
    programs: Sequence[str],
    home: Path,
    output: Path | None,
    network: bool,
    walls: Walls,
    input: Path | None = None,  # noqa: A002 - beside `output`
    readable: Sequence[Path] = (),
) -> list[str]:
    """Return the arguments of the launcher that run `command`, with its standard output in the file `output`.

    `programs`: the absolute paths of the programs that it may run. `home`: the directory that it may read and write, in
    which it is started. Without `output` and `input` the child inherits both. `readable`: other files and directories
    that it may read.
    """
    run: list[str] = []
    read = [str(path) for path in readable]
    for program in programs:
        run.append(program)
        if network or not _is_static(program):
            run += _SYSTEM
            read += _LINKER
    if network:
        read += _FETCHING
    plan = [f"--own={path}" for path in (home, *_DEVICES)]
    if output is not None:
        plan.append(f"--output={output}")
    if input is not None:
        plan.append(f"--input={input}")
    plan += (f"--read={path}" for path in read)
    plan += (f"--run={path}" for path in run)
    if not walls.landlock:
        plan.append("--wall=landlock")
    if not walls.seccomp:
        plan.append("--wall=seccomp")
    if network:
        plan.append("--network")
    return [*plan, "--", os.path.abspath(command[0]), *command[1:]]


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


def launcher() -> tuple[str, ...]:
    """Return the command of the launcher (`confined`), which its arguments are added to."""
    return sys.executable, "-I", "-S", os.path.abspath(confined.__file__)
