"""Measure work without a clock, so that a test can say that it does not grow."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType

__all__ = ["calls"]


def calls(function: Callable[[], object]) -> int:
    """Return how many functions a call leads to, those written in C included; a generator counts at each value."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    collects = gc.isenabled()
    # What a collection calls is not its work.
    gc.disable()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return counted
