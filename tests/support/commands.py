"""The command `kardinal` without the half second that each takes to import itself.

A program that stands for it sends its arguments, environment, working directory, standard streams and limit of memory
to a server that has imported all commands, and that forks: the command is a process of its own, with its exit code,
signals and terminal. A test about imports or about the entry point needs the real one, `INSTALLED`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["INSTALLED", "KARDINAL", "commands"]

INSTALLED = Path(sys.executable).with_name("kardinal")
"""The command as a person calls it."""

# Not below a directory of tests: the name of a socket has at most a hundred bytes.
_DIRECTORY = Path("/tmp") / f"kardinal-{os.getpid()}"  # noqa: S108
_SOCKET = _DIRECTORY / "socket"
KARDINAL = _DIRECTORY / "kardinal"
"""Stands for it while the fixture `commands` lasts."""

PROGRAM = """\
#!{python} -IS
import _signal, _socket, marshal, posix, resource, sys

server = _socket.socket(_socket.AF_UNIX)
server.connect({address!r})
memory = resource.getrlimit(resource.RLIMIT_AS)
request = marshal.dumps((posix.getcwd(), sys.argv[1:], dict(posix.environ), memory))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([len(request).to_bytes(4)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
for number in (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM):
    _signal.signal(number, lambda number, _: server.send(bytes([number])))
server.sendall(request)
code = int.from_bytes(server.recv(2), signed=True)
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -code)
sys.exit(code)
"""
"""It is the modules below `socket` and `signal` that it imports, which are C: those take half of a start."""


@pytest.fixture(scope="session")
def commands() -> Iterator[None]:
    """Start a server of commands."""
    # Of a process of this number that was killed.
    shutil.rmtree(_DIRECTORY, ignore_errors=True)
    _DIRECTORY.mkdir(mode=0o700)
    try:
        with _serving():
            KARDINAL.write_text(PROGRAM.format(python=sys.executable, address=str(_SOCKET)))
            KARDINAL.chmod(0o755)
            yield
    finally:
        shutil.rmtree(_DIRECTORY)


@contextmanager
def _serving() -> Iterator[None]:
    command = (sys.executable, "-P", Path(__file__).with_name("command_server.py"), _SOCKET)
    environment = {"LANG": "C.UTF-8", "PATH": os.environ["PATH"]}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline(), "it did not start"
        yield
