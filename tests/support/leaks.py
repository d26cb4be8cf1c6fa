"""Fail the test that leaves something behind.

A task, thread, descriptor or temporary directory that outlives its test slows or breaks another one far away. Each test
is watched from before its first fixture until after its last one; what is left over fails the test that made it, by
name. Whatever needs a moment to go (a socket the kernel is closing, a worker thread at its end) is given `GRACE`.

The order of the two fixtures is the trap: descriptors and threads are compared after the event loop is closed, because
the loop itself owns some; tasks are compared while it still runs, because closing it cancels them.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import os
import socket
import stat
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Possessions", "leaked_tasks", "left_behind", "task_leaks"]

GRACE = 10.0
"""Seconds of real time in which what is being closed may finish closing.

The longest takes a watcher of files: the kernel closes its inotify descriptor once all others of the machine have let
go of what they were told, and the thread of the library closes two more after it.
"""

_MOMENTS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064)
"""Seconds of real time."""

_FINAL_TURNS = 10
"""Turns of the loop for tasks that are done but for their last step."""

_DESCRIPTORS = Path("/proc/self/fd") if Path("/proc/self/fd").is_dir() else Path("/dev/fd")


@dataclass(frozen=True)
class Possessions:
    """The resources of a process at one moment: open files and sockets, threads, temporary files.

    A descriptor is its number with device and inode: what it is the name of is asked of those alone that are left.
    """

    descriptors: frozenset[tuple[int, int, int]]
    threads: dict[int, str]
    temporary: frozenset[str]

    @classmethod
    def now(cls) -> Possessions:
        threads = {id(thread): thread.name for thread in threading.enumerate()}
        return cls(_descriptors(), threads, frozenset(os.listdir(tempfile.gettempdir())))

    def gained_since(self, before: Possessions) -> list[str]:
        """Return what is here now and was not before, described for a person."""
        return [
            *(f"open {_describe(number)}" for number, _, _ in sorted(self.descriptors - before.descriptors)),
            *(f"running thread {name!r}" for key, name in self.threads.items() if key not in before.threads),
            *(f"temporary {_kind(name)} {name!r}" for name in sorted(self.temporary - before.temporary)),
        ]


def _descriptors() -> frozenset[tuple[int, int, int]]:
    found: set[tuple[int, int, int]] = set()
    for entry in os.listdir(_DESCRIPTORS):
        descriptor = int(entry)
        # The descriptor that listed the directory is in the listing and already closed.
        with contextlib.suppress(OSError):
            status = os.fstat(descriptor)
            found.add((descriptor, status.st_dev, status.st_ino))
    return frozenset(found)


def _describe(descriptor: int) -> str:
    with contextlib.suppress(OSError):
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return f"file {(_DESCRIPTORS / str(descriptor)).readlink()} (descriptor {descriptor})"
        with socket.socket(fileno=os.dup(descriptor)) as copy:
            peer = "nobody"
            with contextlib.suppress(OSError):
                peer = str(copy.getpeername())
            return f"socket {copy.getsockname()} connected to {peer} (descriptor {descriptor})"
    return f"file (descriptor {descriptor})"


def _kind(name: str) -> str:
    return "directory" if (Path(tempfile.gettempdir()) / name).is_dir() else "file"


def left_behind(before: Possessions) -> list[str]:
    """Return what is here now, was not before, and stays after garbage was collected and the grace has passed."""
    return _remaining(lambda: Possessions.now().gained_since(before))


def _remaining(look: Callable[[], list[str]]) -> list[str]:
    """Return what `look` still finds after garbage was collected and the grace has passed."""
    deadline = time.monotonic() + GRACE
    # A thread at its end needs a moment, which is cheaper than a collection of garbage.
    for pause in _MOMENTS:
        if not look():
            return []
        time.sleep(pause)
    # What the test made is young; a collection of all garbage takes a tenth of a second.
    gc.collect(1)
    while found := look():
        # Each time: a thread at its end may still have held what only becomes garbage with it.
        gc.collect()
        if not (found := look()) or time.monotonic() >= deadline:
            break
        time.sleep(0.01)
    return found


async def leaked_tasks(before: set[asyncio.Task[object]]) -> list[str]:
    """Return the tasks that still run and did not before, each with the line it is waiting at."""
    for _ in range(_FINAL_TURNS):
        await asyncio.sleep(0)
    current = asyncio.current_task()
    return [_task_name(task) for task in asyncio.all_tasks() - before if task is not current]


def _task_name(task: asyncio.Task[object]) -> str:
    coroutine = getattr(task.get_coro(), "__qualname__", "?")
    frames = task.get_stack(limit=1)
    where = f" at {frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else ""
    return f"running task {task.get_name()!r} ({coroutine}{where})"


@pytest.fixture(scope="session", autouse=True)
def private_temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make `tempfile` work in a directory of this run, so that what appears there is ours."""
    with pytest.MonkeyPatch.context() as patch:
        directory = tmp_path_factory.mktemp("tmp")
        patch.setattr(tempfile, "tempdir", str(directory))
        patch.setenv("TMPDIR", str(directory))
        yield directory


@pytest.fixture(autouse=True)
def process_leaks(private_temporary_directory: Path) -> Iterator[None]:
    """Fail the test that leaves descriptors, threads or temporary files behind."""
    before = Possessions.now()
    yield
    if leaked := left_behind(before):
        pytest.fail("the test left behind: " + "; ".join(leaked), pytrace=False)


@pytest.fixture(autouse=True)
def task_leaks(request: pytest.FixtureRequest, process_leaks: None) -> None:
    """Watch the tasks of a test that has an event loop."""
    if isinstance(request.node, pytest.Function) and inspect.iscoroutinefunction(request.function):
        request.getfixturevalue("asyncio_task_leaks")


@pytest.fixture
async def asyncio_task_leaks() -> AsyncIterator[None]:
    """Fail the test that leaves tasks running on its event loop."""
    before = asyncio.all_tasks()
    yield
    if leaked := await leaked_tasks(before):
        pytest.fail("the test left behind: " + "; ".join(leaked), pytrace=False)
