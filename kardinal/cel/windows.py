"""Windows of a week, such as `Mon-Fri 09:00-16:00`, and the function that asks whether a schedule is in one.

A window has days, a time, or both: `Mon-Fri`, `22:00-06:00`, `Mon,Wed-Thu 09:00-12:30`. The end does not belong to it,
and is `24:00` at the end of a day. One that ends before it starts goes on after midnight, and belongs to the day on
which it started: `Fri 22:00-06:00` has the first hours of Saturday.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kardinal.cel.errors import Fault
from kardinal.cel.overloads import Function

__all__ = ["WINDOW_FUNCTIONS", "Window", "parse_window"]

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TIME = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)", re.ASCII)
_DAY = 24 * 60
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class Window:
    """Days of the week, 0 for Monday, and minutes of the day from `start` until before `end`."""

    text: str
    days: frozenset[int]
    start: int = 0
    end: int = _DAY

    @property
    def boundaries(self) -> frozenset[int]:
        """Return the minutes of a day at which the window starts or ends."""
        return frozenset({self.start, self.end % _DAY})

    def holds(self, day: int, minute: int) -> bool:
        """Return whether a minute of a day of the week is in the window."""
        if self.start < self.end:
            return day in self.days and self.start <= minute < self.end
        return (day in self.days and minute >= self.start) or ((day - 1) % 7 in self.days and minute < self.end)


def parse_window(text: str) -> Window:
    """Return the window that `text` describes; raises `Fault`. A text of any length costs the same."""
    if len(text) > _LONGEST:
        raise _malformed()
    return _parsed(text)


@lru_cache(maxsize=512)
def _parsed(text: str) -> Window:
    words = text.split()
    if not words:
        raise _malformed()
    days = frozenset(range(7)) if _TIME.fullmatch(words[0]) else _days(words.pop(0))
    if not days or len(words) > 1:
        raise _malformed()
    if not words:
        return Window(text, days)
    found = _TIME.fullmatch(words[0])
    if found is None:
        raise _malformed()
    hour, minute, end_hour, end_minute = map(int, found.groups())
    start = hour * 60 + minute
    end = end_hour * 60 + end_minute
    if minute > 59 or end_minute > 59 or start >= _DAY or end > _DAY or start == end:
        raise _malformed()
    return Window(text, days, start, end)


def _days(text: str) -> frozenset[int]:
    """Return the days of `Mon,Wed-Fri`; empty if one is unknown. A range may pass the end of the week: `Sat-Mon`."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in _DAYS or (last or first) not in _DAYS or part.endswith("-"):
            return frozenset()
        start = _DAYS.index(first)
        length = (_DAYS.index(last or first) - start) % 7
        found |= {(start + day) % 7 for day in range(length + 1)}
    return frozenset(found)


def _malformed() -> Fault:
    return Fault("conversion", 'inWindow() takes days and a time, as in "Mon-Fri 09:00-16:00"')


def _in_window(schedule: dict[str, object], text: str) -> bool:
    window = parse_window(text)
    match schedule:
        case {"dayOfWeek": str(day), "hour": int(hour), "minute": int(minute)} if day in _NAMES:
            return window.holds(_NAMES.index(day), hour * 60 + minute)
    raise Fault("type", "inWindow() is a function of `schedule`")


WINDOW_FUNCTIONS = {"inWindow": Function({(dict, str): _in_window})}
