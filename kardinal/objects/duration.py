"""Go-style durations (`90s`, `5m`, `1h30m`): the form they have in every resource.

Inside the product a duration is a `timedelta`; only resources and command lines carry text. A duration that people
write is at most `LONGEST`, so that its sum with a moment never overflows. A resource that was stored before the API
server had that bound may contain a longer one: a model reads it as `LONGEST`, and `kardinal/promotion/api/overlong.py`
finds it.
"""

from __future__ import annotations

import re
from datetime import timedelta

__all__ = [
    "DURATION_PATTERN",
    "DURATION_RULE",
    "LONGEST",
    "DurationError",
    "format_duration",
    "parse_duration",
    "read_duration",
]

DURATION_PATTERN = r"^([0-9]{1,9}(\.[0-9]{1,9})?(ms|s|m|h)){1,4}$"
"""The form in custom resources: no sign, no unit below a millisecond, nothing that a `timedelta` cannot hold."""

LONGEST = timedelta(hours=8760)
"""The longest duration that is accepted: a year."""
_BEYOND_CEL = r"(^|[a-z])([0-9]{6,}(\.[0-9]+)?h|[0-9]{8,}(\.[0-9]+)?m($|[0-9]))"
"""Spellings at which CEL's `duration()` may fail. An error is not ratcheted: it refuses every later status."""
DURATION_RULE = {
    "rule": f"!self.matches(r'{_BEYOND_CEL}') && duration(self) <= duration('8760h')",
    "message": "must be at most 8760h",
}
"""The bound of a duration in the schema of custom resources."""

_SHAPE = re.compile(DURATION_PATTERN)
_PART = re.compile(r"(?<![0-9.])([0-9]++(?:\.[0-9]++)?)(ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class DurationError(ValueError):
    """The text is not a duration."""


def parse_duration(text: str) -> timedelta:
    """`"1h30m"` → 5,400 seconds. Raises `DurationError` naming the accepted form, or `LONGEST` for what is longer."""
    duration = read_duration(text)
    if duration > LONGEST:
        raise DurationError(f"{text!r} is too long: write at most {format_duration(LONGEST)}")
    return duration


def read_duration(text: str) -> timedelta:
    """Return a duration of any length, such as a measured one. Raises `DurationError`."""
    if not _SHAPE.match(text):
        raise DurationError(
            f"{text!r} is not a duration: write a number and a unit of ms, s, m or h, such as 90s or 1h30m"
        )
    return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text)))


def format_duration(duration: timedelta) -> str:
    """5,400 seconds → `"1h30m"`; the shortest text that parses back to the same milliseconds."""
    milliseconds = round(duration.total_seconds() * 1000)
    if milliseconds <= 0:
        return "0s"
    hours, rest = divmod(milliseconds, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds, millis = divmod(rest, 1000)
    parts = [(hours, "h"), (minutes, "m"), (seconds, "s"), (millis, "ms")]
    return "".join(f"{value}{unit}" for value, unit in parts if value)
