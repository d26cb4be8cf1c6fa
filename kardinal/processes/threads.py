"""The guard against blocking calls on the event loop.

Running a child, file I/O and libgit2 block. One clone on the event loop would stop every watch, queue and probe of the
process. So a function with `off_loop` raises an error on a thread with a running event loop, instead of blocking it
unnoticed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["BlockingCallOnLoop", "off_loop"]

P = ParamSpec("P")
T = TypeVar("T")


class BlockingCallOnLoop(RuntimeError):
    """A blocking function was called on the thread of a running event loop."""


def off_loop(function: Callable[P, T]) -> Callable[P, T]:
    """Make `function` raise `BlockingCallOnLoop` on a thread with a running event loop."""

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            blocked = False
        else:
            blocked = True
        if blocked:
            raise BlockingCallOnLoop(f"{function.__qualname__} blocks; run it on a thread, such as one of GitRunner")
        return function(*args, **kwargs)

    return guarded
