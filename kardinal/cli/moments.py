"""Times as people write them: `Saturday 3pm`, `Sat 15:00`, RFC 3339; and spans such as `7d`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from kardinal import cel
from kardinal.cel.values import parse_timestamp

__all__ = ["LONGEST_SPAN", "Moment", "Span", "moment_of"]

LONGEST_SPAN = timedelta(days=31)

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKLY = re.compile(r"([a-z]+)\s+(\d{1,2})(?::(\d\d))?\s*(am|pm)?", re.ASCII | re.IGNORECASE)
_SPAN = re.compile(r"(\d{1,4})([mhd])", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def moment_of(text: str, *, now: datetime) -> datetime | None:
    """Return the time that `text` names, a day of the week as its next occurrence in UTC; None if it names none."""
    try:
        return parse_timestamp(text)
    except cel.Fault:
        found = _WEEKLY.fullmatch(text.strip())
    if found is None:
        return None
    word, hours, minutes, half = found.groups()
    day = next((number for number, name in enumerate(_DAYS) if name in (word.lower(), *_longer(word, name))), None)
    hour = _hour(int(hours), half)
    minute = int(minutes or 0)
    if day is None or hour is None or minute > 59 or (minutes is None and half is None):
        return None
    at = now.astimezone(UTC).replace(hour=hour, minute=minute, second=0, microsecond=0)
    at += timedelta(days=(day - at.weekday()) % 7)
    return at if at > now else at + timedelta(days=7)


def _longer(word: str, name: str) -> tuple[str, ...]:
    return (name,) if len(word) == 3 and name.startswith(word.lower()) else ()


def _hour(hour: int, half: str | None) -> int | None:
    if half is None:
        return hour if hour < 24 else None
    if not 1 <= hour <= 12:
        return None
    return hour % 12 + (12 if half.lower() == "pm" else 0)


class Moment(click.ParamType[datetime]):
    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        found = moment_of(value, now=datetime.now(UTC))
        if found is None:
            self.fail("it is no time such as 'Saturday 3pm', 'Sat 15:00' or 2026-04-09T12:00:00Z", param, ctx)
        return found


class Span(click.ParamType[timedelta]):
    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        if isinstance(value, timedelta):
            return value
        found = _SPAN.fullmatch(value)
        span = int(found[1]) * _UNITS[found[2]] if found is not None else timedelta()
        if not timedelta() < span <= LONGEST_SPAN:
            self.fail(f"it is no span such as 7d, 12h or 30m, up to {LONGEST_SPAN.days}d", param, ctx)
        return span
