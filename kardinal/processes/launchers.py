"""A launcher of isolated children that waits for its run.

The launcher (`confined`) is a program in Python, and most of the time of a short run is its start. So the one for the
next run is started after each run. It waits for its plan, has nothing of anybody in it, and serves one run only: the
isolation of that is the same as without the wait.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kardinal.processes.children import Child, ChildLimits, Children, Ended
from kardinal.processes.errors import ChildStopped
from kardinal.processes.isolation import launcher
from kardinal.processes.threads import off_loop

__all__ = ["Launchers"]

_LOWEST_FILE = 10
"""The shell that starts a child uses the numbers below this one."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A launcher that waits for its plan, which is written to the open file `plan`."""

    child: Child
    plan: int


class Launchers:
    """The launchers of one kind of runs, one of which waits after the first run."""

    def __init__(self, children: Children, *, name: str, environment: Mapping[str, str], limits: ChildLimits) -> None:
        self._children = children
        self._name = name
        self._environment = environment
        self._limits = limits
        self._lock = threading.Lock()
        self._waiting: _Waiting | None = None

    @off_loop
    def run(self, plan: Sequence[str]) -> Ended:
        """Run a plan of `isolation.plan_run` until its program ends. Blocks; the errors are those of `Children.run`."""
        waiting = self._take() or self._start()
        # One that was killed meanwhile is told by its exit code.
        with suppress(BrokenPipeError), open(waiting.plan, "wb") as file:
            file.write(b"".join(os.fsencode(argument) + b"\0" for argument in plan))
        try:
            return self._children.follow(waiting.child, name=self._name, limits=self._limits)
        finally:
            self._prepare()

    def close(self) -> None:
        """End the launcher that waits; its `Children` are closed before, so that none is started any more."""
        with self._lock:
            waiting = self._waiting
            self._waiting = None
        if waiting is not None:
            self._discard(waiting)

    def _take(self) -> _Waiting | None:
        """Return the launcher that waits, unless it was killed."""
        with self._lock:
            waiting = self._waiting
            self._waiting = None
        if waiting is not None and waiting.child.poll() is not None:
            self._discard(waiting)
            return None
        return waiting

    def _prepare(self) -> None:
        with self._lock, suppress(ChildStopped):
            if self._waiting is None:
                self._waiting = self._start()

    def _start(self) -> _Waiting:
        end, plan = os.pipe()
        read = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _LOWEST_FILE)
        os.close(end)
        try:
            child = self._children.start(
                [*launcher(), f"--plan={read}"],
                name=self._name,
                environment=self._environment,
                limits=self._limits,
                files=[read],
            )
        except BaseException:
            os.close(plan)
            raise
        finally:
            os.close(read)
        return _Waiting(child, plan)

    def _discard(self, waiting: _Waiting) -> None:
        os.close(waiting.plan)
        self._children.discard(waiting.child)
