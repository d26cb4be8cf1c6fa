"""A process that has imported all of `kardinal` and forks for each command: importing takes ten times what most take.

It is run by its path and not as a module, because to a command it must look like the script `kardinal`. It listens on
the UNIX socket that its first argument names, until its standard input ends. A client (`PROGRAM` in `commands.py`)
sends its standard streams with a length of four bytes, and so many bytes of `marshal`: working directory, arguments,
environment and limit of memory. Each byte after that is a signal for the command, which the end of the connection
kills. The answer is the exit code of the command.
"""

from __future__ import annotations

import gc
import marshal
import os
import resource
import selectors
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from pkgutil import walk_packages

import kardinal.cli
import kardinal_local.commands
from kardinal.cli.main import main

__all__: list[str] = []


class _Server:
    """The commands that run, by process id, each with the connection to its client."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._commands: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._ends, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ, lambda: os._exit(0))
        self._selector.register(self._ends, selectors.EVENT_READ, self._tell_ends)
        self._selector.register(listener, selectors.EVENT_READ, self._start)
        self._forked = False

    def serve(self) -> None:
        """Start commands; returns in the process of each, which has become that of the command."""
        while not self._forked:
            for key, _ in self._selector.select():
                key.data()
                if self._forked:
                    return

    def _start(self) -> None:
        connection, _ = self._listener.accept()
        length, streams, _, _ = socket.recv_fds(connection, 4, 3)
        request = connection.recv(int.from_bytes(length), socket.MSG_WAITALL)
        pid = os.fork()
        if pid == 0:
            connection.close()
            self._become(*marshal.loads(request), streams=streams)  # noqa: S302 - of the test
            return
        for stream in streams:
            os.close(stream)
        self._commands[pid] = connection
        self._selector.register(connection, selectors.EVENT_READ, lambda: self._signal(pid))

    def _become(
        self,
        directory: str,
        arguments: list[str],
        environment: dict[bytes, bytes],
        memory: tuple[int, int],
        *,
        streams: list[int],
    ) -> None:
        """Turn this process into one of a command that is about to start."""
        self._forked = True
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for connection in (self._listener, *self._commands.values()):
            connection.close()
        self._selector.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        assert isinstance(sys.stdout, TextIOWrapper)
        sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
        resource.setrlimit(resource.RLIMIT_AS, memory)
        os.chdir(directory)
        os.environ.clear()
        os.environb.update(environment)
        sys.argv = [str(Path(sys.executable).with_name("kardinal")), *arguments]

    def _signal(self, pid: int) -> None:
        """Pass on what a client sent; one that sent its end was killed."""
        if pid not in self._commands:
            return  # It has ended in the meantime.
        numbers = self._commands[pid].recv(16)
        if not numbers:
            self._selector.unregister(self._commands[pid])
        for number in numbers or [signal.SIGKILL]:
            os.kill(pid, number)

    def _tell_ends(self) -> None:
        os.read(self._ends, 4096)
        while self._commands:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            with self._commands.pop(pid) as connection, suppress(OSError):
                if connection in self._selector.get_map():
                    self._selector.unregister(connection)
                connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(2, signed=True))


def _import_all() -> None:
    for package in (kardinal.cli, kardinal_local.commands):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    # No command looks at what is here when it collects garbage, and none copies its pages.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    _import_all()
    with socket.socket(socket.AF_UNIX) as _listener:
        _listener.bind(sys.argv[1])
        _listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        _Server(_listener).serve()
    try:
        main()
    except SystemExit as end:
        # Taking all modules apart would take four times what the command took.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else 1)
