"""Read a trace of Chromium: the processor time that the main thread of the page needed for each frame and each task.

A trace is JSON of Chromium's event format. `tdur` is the processor time of a thread in microseconds, which other
processes on the machine do not lengthen; `dur`, the time by the clock, is not read.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["CATEGORIES", "Work", "work_of"]

CATEGORIES = ("devtools.timeline", "disabled-by-default-devtools.timeline")
"""The categories of what is read: `RunTask`, a task of a thread, and `AnimationFrame`, a frame of the main thread."""

Event = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """The processor time of the main thread in milliseconds."""

    frames: Sequence[float]
    """From the begin of each frame to the begin of the next one, sorted; the last frame is left out."""
    longest: float
    """Of the longest task."""
    total: float

    @property
    def p95(self) -> float:
        return self.frames[int(len(self.frames) * 0.95)] if self.frames else 0.0


def work_of(events: Sequence[Event]) -> Work:
    """Return the work of the page that draws most frames: Chromium may keep another process for a page to come."""
    frames = [event for event in events if event["name"] == "AnimationFrame" and event["ph"] == "b"]
    if not frames:
        raise ValueError("the trace has no frame")
    ((process, _),) = Counter(event["pid"] for event in frames).most_common(1)
    thread = next(
        event["tid"]
        for event in events
        if event["name"] == "thread_name" and event["pid"] == process and event["args"]["name"] == "CrRendererMain"
    )
    begins = sorted(event["ts"] for event in frames if event["pid"] == process)
    spent = [0.0] * len(begins)
    longest = total = 0.0
    for event in events:
        if event["name"] != "RunTask" or event["ph"] != "X" or (event["pid"], event["tid"]) != (process, thread):
            continue
        # A frame is begun within a task, which is the work of this frame.
        number = bisect_right(begins, event["ts"] + event["dur"]) - 1
        milliseconds = event.get("tdur", 0) / 1000
        longest = max(longest, milliseconds)
        total += milliseconds
        if number >= 0:
            spent[number] += milliseconds
    return Work(sorted(spent[:-1]), longest, total)
