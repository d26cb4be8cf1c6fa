"""Timestamps and durations: reading them, their parts, and the parts of a day in some place.

Time zones are files. All of them are read on import, because a gate that asks for the hour in Zurich is evaluated on
the event loop, where nothing may wait for a disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from kardinal.cel.errors import Fault
from kardinal.cel.overloads import Function
from kardinal.cel.values import in_range, parse_duration, parse_timestamp

__all__ = ["MOMENT_FUNCTIONS", "ZONES", "add", "between", "subtract"]

_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)")
ZONES = {name: ZoneInfo(name) for name in available_timezones()}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _zone(name: str) -> tzinfo:
    if match := _OFFSET.fullmatch(name):
        sign, hours, minutes = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        if offset < timedelta(hours=24):
            return timezone(-offset if sign == "-" else offset)
    zone = ZONES.get(name)
    if zone is None:
        raise Fault("conversion", "unknown time zone; use a name such as Europe/Zurich or an offset such as +02:00")
    return zone


def _shifted(moment: datetime, span: timedelta) -> datetime:
    try:
        return moment + span
    except OverflowError:
        raise Fault("arithmetic", "the timestamp is out of range") from None


def add(left: datetime | timedelta, right: datetime | timedelta) -> datetime | timedelta:
    if isinstance(left, datetime):
        assert isinstance(right, timedelta)  # noqa: S101 - the overload table admits no other pair
        return _shifted(left, right)
    if isinstance(right, datetime):
        return _shifted(right, left)
    return _span(left, right)


def subtract(moment: datetime, span: timedelta) -> datetime:
    return _shifted(moment, -span)


def between(left: timedelta, right: timedelta) -> timedelta:
    return _span(left, -right)


def _span(left: timedelta, right: timedelta) -> timedelta:
    try:
        return in_range(left + right)
    except OverflowError:
        raise Fault("arithmetic", "the duration is out of range") from None


def _from_epoch(seconds: int) -> datetime:
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise Fault("arithmetic", "the timestamp is out of range") from None


def _part(read: Callable[[datetime], int]) -> Function:
    def in_zone(moment: datetime, zone: str) -> int:
        return read(moment.astimezone(_zone(zone)))

    def in_utc(moment: datetime) -> int:
        return read(moment.astimezone(UTC))

    return Function({(datetime,): in_utc, (datetime, str): in_zone})


def _clock_part(read: Callable[[datetime], int], unit: timedelta) -> Function:
    def total(span: timedelta) -> int:
        return -(-span // unit) if span < timedelta(0) else span // unit

    return Function({**_part(read).typed, (timedelta,): total})


MOMENT_FUNCTIONS: dict[str, Function] = {
    "timestamp": Function({(str,): parse_timestamp, (int,): _from_epoch, (datetime,): lambda moment: moment}),
    "duration": Function({(str,): parse_duration, (timedelta,): lambda span: span}),
    "getFullYear": _part(lambda moment: moment.year),
    "getMonth": _part(lambda moment: moment.month - 1),
    "getDate": _part(lambda moment: moment.day),
    "getDayOfMonth": _part(lambda moment: moment.day - 1),
    "getDayOfWeek": _part(lambda moment: moment.isoweekday() % 7),
    "getDayOfYear": _part(lambda moment: moment.timetuple().tm_yday - 1),
    "getHours": _clock_part(lambda moment: moment.hour, timedelta(hours=1)),
    "getMinutes": _clock_part(lambda moment: moment.minute, timedelta(minutes=1)),
    "getSeconds": _clock_part(lambda moment: moment.second, timedelta(seconds=1)),
    "getMilliseconds": _clock_part(lambda moment: moment.microsecond // 1000, timedelta(milliseconds=1)),
}
