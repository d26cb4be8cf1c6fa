"""No blocking call on the event loop.

One slow `read` on the loop delays every watch, queue and probe of the process, and no ordinary test notices. While
tests run, the calls that can block raise `blockbuster.BlockingError` when they are made on the main thread while its
event loop runs and a frame of the product is on the stack. Test code may block: it delays nothing but itself.

Exactly one module is allowed to block: the store of the local plane, whose SQLite transactions take microseconds and
are deliberately serialised by the loop. Everything else belongs in a thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import pytest
from blockbuster import BlockBuster
from blockbuster.blockbuster import BlockBusterFunction

import kardinal

__all__ = ["ALLOWED_MODULE", "detector"]

PRODUCT = ["kardinal"]

ALLOWED_MODULE = "kardinal_local/plane/storage/database.py"

_ELSEWHERE = 0
_PRODUCT = 1
_ALLOWED = 2

_ALSO_BLOCKING = (
    "builtins.open",
    "io.open",
    "os.open",
    "os.fsync",
    "os.fdatasync",
    "os.lstat",
    "os.chmod",
    "sqlite3.connect",
    "socket.getaddrinfo",
    "subprocess.Popen.__init__",
    "subprocess.Popen.wait",
    "threading.Thread.join",
)
"""The blocking functions that blockbuster does not know of by itself."""

_LIBGIT2 = (
    "pygit2.init_repository",
    "pygit2.Odb.read",
    "pygit2.Odb.write",
    "pygit2.Remote.fetch",
    "pygit2.Remote.list_heads",
    "pygit2.Remote.push",
    "pygit2.Repository.__init__",
    "pygit2.Repository.descendant_of",
    "pygit2.Repository.merge_base",
    "pygit2.Repository.merge_trees",
)
"""libgit2 reads and writes below Python, where no patched call sees it. The git runner's own guard comes first."""


class _EveryFunction(frozenset[str]):
    """Blockbuster allows functions of a file by name; the whole store is allowed."""

    def __contains__(self, item: object) -> bool:
        return True


def detector() -> BlockBuster:
    """Return a detector for the product's modules, not yet active."""
    found = BlockBuster(scanned_modules=PRODUCT)
    for name in (*_ALSO_BLOCKING, *_LIBGIT2):
        found.functions[name] = BlockBusterFunction(None, name, scanned_modules=PRODUCT)
    for function in found.functions.values():
        function.can_block_in(ALLOWED_MODULE, _EveryFunction())
        function.can_block_predicate = _off_main_thread_or(function.can_block_predicate)
    # asyncio's own subprocess transport forks on the loop and waits elsewhere.
    found.functions["subprocess.Popen.__init__"].can_block_in("asyncio/unix_events.py", "_start")
    return found


def _off_main_thread_or(predicate: Callable[..., bool]) -> Callable[..., bool]:
    """Limit the detector to the main thread, which runs the program's loop; a worker thread delays only its own."""

    def can_block(*args: object, **kwargs: object) -> bool:
        if threading.current_thread() is not threading.main_thread() or predicate(*args, **kwargs):
            return True
        return _delays_no_program(sys._getframe(1))

    return can_block


def _delays_no_program(frame: FrameType | None) -> bool:
    """Return whether a stack has no frame of the product, or one of the module that may block.

    Blockbuster finds the same, but compares each frame's file with a dozen names, thousands of times in a test.
    """
    in_product = False
    while frame is not None:
        where = _place(frame.f_code.co_filename)
        if where == _ALLOWED:
            return True
        in_product = in_product or where == _PRODUCT
        frame = frame.f_back
    return not in_product


@cache
def _place(filename: str) -> int:
    if filename.endswith(ALLOWED_MODULE):
        return _ALLOWED
    return _PRODUCT if filename.startswith(str(Path(kardinal.__file__).parent)) else _ELSEWHERE


@pytest.fixture(scope="session", autouse=True)
def no_blocking_calls() -> Iterator[None]:
    """Raise in the product's code that blocks the event loop, of a test or of a fixture.

    It is put in place once: what it replaces is fifty functions, which took a tenth of a test that does little.
    """
    found = detector()
    found.activate()
    yield
    found.deactivate()
