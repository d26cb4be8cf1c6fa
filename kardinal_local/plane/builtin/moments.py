"""Read and write the times of the API, `Time` and `MicroTime`, as the real server does.

`Time` has seconds, `MicroTime` has exactly six digits more; both come back in UTC. A text that is neither is refused
with the element at which reading stopped, which is what a person needs to see.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final

from kardinal_local.plane.documents import micro_timestamp, timestamp

__all__ = ["MomentError", "micro_time", "time"]

_SECONDS: Final = "2006-01-02T15:04:05Z07:00"
_MICROSECONDS: Final = "2006-01-02T15:04:05.000000Z07:00"
_ZONE: Final = ("Z07:00", re.compile(r"Z|[+-]\d\d:\d\d"))
_ELEMENTS: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("2006", r"\d{4}"),
        ("-", "-"),
        ("01", r"\d\d"),
        ("-", "-"),
        ("02", r"\d\d"),
        ("T", "T"),
        ("15", r"\d\d"),
        (":", ":"),
        ("04", r"\d\d"),
        (":", ":"),
        ("05", r"\d\d"),
    )
)
_FRACTION: Final = ("", re.compile(r"(?:[.,]\d+)?"))
_SIX_DIGITS: Final = (".000000", re.compile(r"\.\d{6}"))
_RANGES: Final = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}


class MomentError(ValueError):
    """A text that is no moment, in the words of the real server."""


@lru_cache(maxsize=1024)
def time(text: str) -> str:
    """A `Time` in its canonical spelling."""
    return timestamp(_moment(text, _SECONDS, (*_ELEMENTS, _FRACTION, _ZONE)))


@lru_cache(maxsize=1024)
def micro_time(text: str) -> str:
    """A `MicroTime` in its canonical spelling."""
    return micro_timestamp(_moment(text, _MICROSECONDS, (*_ELEMENTS, _SIX_DIGITS, _ZONE)))


def _moment(text: str, layout: str, elements: tuple[tuple[str, re.Pattern[str]], ...]) -> datetime:
    rest, found = text, []
    for name, pattern in elements:
        match = pattern.match(rest)
        if match is None:
            raise MomentError(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{name}"')
        if name in _RANGES:
            what, least, most = _RANGES[name]
            if not least <= int(match[0]) <= most:
                raise MomentError(f'parsing time "{text}": {what} out of range')
        found.append(match[0])
        rest = rest[match.end() :]
    if rest:
        raise MomentError(f'parsing time "{text}": extra text: "{rest}"')
    year, _, month, _, day, _, hour, _, minute, _, second, fraction, zone = found
    micro = int(fraction[1:7].ljust(6, "0")) if fraction else 0
    try:
        moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second), micro, _zone(zone))
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise MomentError(f'parsing time "{text}": day out of range') from None


def _zone(zone: str) -> timezone:
    if zone == "Z":
        return UTC
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
    return timezone(-offset if zone[0] == "-" else offset)
