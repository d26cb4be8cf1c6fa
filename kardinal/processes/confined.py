"""Run a program in isolation: `python -I -S confined.py --own=DIRECTORY --output=FILE … -- PROGRAM ARGUMENT…`.

The isolation consists of two mechanisms of the Linux kernel that a process can apply to itself without privileges, and
that also apply to all processes it starts. Landlock limits it to the files in the plan; also, processes outside cannot
be traced and, from Linux 6.12 on, cannot be sent signals. The seccomp filter denies it sockets, `io_uring`, which could
open sockets past the filter, and the system calls that read the memory of other processes.

The plan consists of the options before `--`, built by `isolation.confine`:

    --output=FILE      its standard output; defaults to that of this process
    --input=FILE       its standard input; defaults to that of this process
    --own=PATH         may be read and written; the first one is the directory in which it is started
    --read=PATH        may be read
    --run=PATH         may be read and run
    --wall=MECHANISM   `landlock` and `seccomp` are applied if they are named
    --network          it may open sockets

With `--plan=FILE`, where FILE is the number of an open file, all these arguments are read from there, each ended by a
zero byte. So the program can be started before there is anything to run (`launchers`).

With `--try`, the program tries each mechanism, runs nothing, and prints for each a line with the reason why it is
unavailable, or an empty line.

This file is run by its path, so it imports only the standard library, and little of that: it is started for each run of
a renderer, and `json`, `typing` and `contextlib` would double its time. It is a separate program because a process with
threads must not do so much between fork and exec.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys

__all__ = ["main", "refuse"]

_PR_SET_NO_NEW_PRIVS = 38
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_SET_MODE_FILTER = 1

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_TRUNCATE = 1 << 14
_IOCTL_DEV = 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _READ_FILE | _READ_DIR
_KNOWN_RIGHTS = ((1, 13), (2, 14), (3, 15), (5, 16), (9, 17))
"""Pairs of a Landlock version and the number of file rights that it knows; each right is a bit, from the lowest on."""
_NETWORK_SINCE = 4
_NETWORK_RIGHTS = 0b11
_SCOPES_SINCE = 6
_SCOPES = 0b11
"""The scopes of abstract Unix sockets and of signals."""

_ARCHITECTURES = {
    "x86_64": (0xC000003E, {"socket": 41, "ptrace": 101, "vm_read": 310, "vm_write": 311, "seccomp": 317}),
    "aarch64": (0xC00000B7, {"socket": 198, "ptrace": 117, "vm_read": 270, "vm_write": 271, "seccomp": 277}),
}
"""By machine: its number in the kernel's `audit.h`, and the numbers of system calls that differ between machines."""
_X32 = 0x40000000
"""System calls of x86_64 from this number on belong to another ABI, with the same architecture but other numbers."""
_IO_URING = (425, 426, 427)
_PIDFD_GETFD = 438
_LOAD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_AT_LEAST = 0x35
_RETURN = 0x06
_NUMBER_AT = 0
_ARCHITECTURE_AT = 4
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_REFUSE = 0x00050000
_EACCES = 13
_ENOSYS = 38
_CANNOT = 125
"""The exit code if a mechanism is unavailable or the program cannot be started."""


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def main() -> None:
    """Apply the isolation in the plan, and become the program."""
    if sys.argv[1:] == ["--try"]:
        for mechanism in ("landlock", "seccomp"):
            sys.stdout.write(f"{_missing(mechanism)}\n")
        return
    arguments = sys.argv[1:]
    if arguments[0].startswith("--plan="):
        arguments = _read_plan(int(arguments[0].removeprefix("--plan=")))
    end = arguments.index("--")
    plan: dict[str, list[str]] = {}
    for option in arguments[:end]:
        name, _, value = option.removeprefix("--").partition("=")
        plan.setdefault(name, []).append(value)
    try:
        _enter(plan, arguments[end + 1 :])
    except OSError as error:
        sys.stderr.write(f"the program cannot be started behind its walls: {error.strerror}\n")
        sys.exit(_CANNOT)


def _read_plan(file: int) -> list[str]:
    with open(file, "rb") as opened:
        plan = opened.read()
    if not plan:
        # It is not needed any more.
        sys.exit()
    return [os.fsdecode(argument) for argument in plan.removesuffix(b"\0").split(b"\0")]


def _enter(plan: dict[str, list[str]], arguments: list[str]) -> None:
    for path in plan.get("output", ()):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
    for path in plan.get("input", ()):
        os.dup2(os.open(path, os.O_RDONLY), 0)
    # Not the directory in which the agent was started: git looks for a repository there.
    os.chdir(plan["own"][0])
    os.closerange(3, max(map(int, os.listdir("/dev/fd"))) + 1)
    walls = plan.get("wall", ())
    if "landlock" in walls:
        _restrict_files(plan)
    if "seccomp" in walls:
        _restrict_calls(network="network" in plan)
    os.execve(arguments[0], arguments, os.environ)  # noqa: S606 - the walls are put up around a program, not a shell


def _restrict_files(plan: dict[str, list[str]]) -> None:
    version = _landlock_version()
    known = (1 << next(count for since, count in reversed(_KNOWN_RIGHTS) if version >= since)) - 1
    # The kernel accepts the part of this structure that its version of Landlock knows.
    attributes = struct.pack("=Q", known)
    if version >= _NETWORK_SINCE:
        attributes += struct.pack("=Q", 0 if "network" in plan else _NETWORK_RIGHTS)
    if version >= _SCOPES_SINCE:
        attributes += struct.pack("=Q", _SCOPES)
    ruleset = _call("syscall", _LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    for name, rights in (("own", known & ~_EXECUTE), ("read", _READ), ("run", _READ | _EXECUTE)):
        for path in plan.get(name, ()):
            _allow(ruleset, path, rights & known)
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call("syscall", _LANDLOCK_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            rights &= _OF_FILES
        _call("syscall", _LANDLOCK_ADD_RULE, ruleset, 1, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


def _restrict_calls(*, network: bool) -> None:
    _, calls = _ARCHITECTURES[os.uname().machine]
    refused = dict.fromkeys(_IO_URING, _ENOSYS)
    refused |= dict.fromkeys((calls["ptrace"], calls["vm_read"], calls["vm_write"], _PIDFD_GETFD), _EACCES)
    if not network:
        refused[calls["socket"]] = _EACCES
    refuse(refused)


def refuse(errors: dict[int, int]) -> None:
    """Make system calls of this process fail from now on; `errors` maps their numbers to error codes.

    A system call of another architecture kills the process.
    """
    architecture, calls = _ARCHITECTURES[os.uname().machine]
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_JUMP_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _REFUSE | _ENOSYS),
    ]
    for number, error in errors.items():
        steps += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | error)]
    steps.append((_RETURN, 0, 0, _ALLOW))
    instructions = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = _Filter(len(steps), ctypes.addressof(instructions))
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call("syscall", calls["seccomp"], _SET_MODE_FILTER, 0, ctypes.byref(program))


def _landlock_version() -> int:
    return _call("syscall", _LANDLOCK_CREATE_RULESET, None, 0, 1)


def _missing(mechanism: str) -> str:
    """Return the reason why a mechanism is unavailable; empty if it is available."""
    if sys.platform != "linux":
        return f"{sys.platform} has none"
    machine = os.uname().machine
    try:
        if mechanism == "landlock":
            _restrict_files({})
        elif machine in _ARCHITECTURES:
            _restrict_calls(network=False)
        else:
            return f"there is no filter for {machine}"
    except OSError as error:
        return error.strerror or "unknown"
    return ""


def _call(name: str, *arguments: object) -> int:
    """Call a function of the C library whose arguments are addresses, or integers of the machine's word size."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.restype = ctypes.c_long
    wide = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    result = int(function(*wide))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


if __name__ == "__main__":
    main()
