"""Stop a long-running program by SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["stop_signals"]


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Yield an event that SIGINT or SIGTERM sets.

    The second such signal ends the process at once, by default action.
    """
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def stop(number: signal.Signals) -> None:
        stopped.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        yield stopped
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
