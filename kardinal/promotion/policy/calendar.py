"""The calendar of a gate: `schedule` in its time zone and with its holidays, and the moments at which it changes. Pure.

Local times are kept as a person on the spot reads them: where clocks are put forward, 02:30 does not come, and where
they are put back, it comes twice. So the moments are computed in parts of time in which the distance from UTC is the
same, and the moment at which the clocks change is one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, Final

from kardinal import cel
from kardinal.cel.moments import ZONES
from kardinal.cel.syntax import Call, Constant, Name, Node, children
from kardinal.cel.windows import Window, parse_window
from kardinal.objects.suggestions import nearest
from kardinal.promotion.policy.attributes import DAYS

__all__ = ["HOLIDAYS_KEY", "Calendar", "parse_holidays", "schedule_fault", "windows", "zone_problem"]

HOLIDAYS_KEY: Final = "dates"
"""The key of the ConfigMap that `spec.holidays` names: one date such as `2026-12-25` in each line."""
MAX_HOLIDAYS: Final = 2000

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_HORIZON = timedelta(days=8)
"""The time for which moments are computed: a week, and a day for a change of the clocks."""
_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
_SHOWN_HOLIDAYS = 32
"""The largest number of future holidays whose beginning and end are moments."""

_WINDOWS: cel.SourceCache[tuple[Window, ...]] = cel.SourceCache(characters=128 << 10)


@dataclass(frozen=True, slots=True)
class Calendar:
    """The time zone and the holidays of a gate. A problem of either closes a gate that reads it."""

    zone: str = "UTC"
    holidays: frozenset[date] | None = None
    """The local dates; None if they are not known."""
    holidays_problem: str = "schedule.isHoliday needs spec.holidays, the name of a ConfigMap with the dates"

    def problem(self, program: cel.Program) -> str | None:
        """Return why the schedule that `program` reads is not known; None if it is."""
        read = [reference for reference in program.references if reference.root == "schedule"]
        if read and (unknown := zone_problem(self.zone)):
            return unknown
        if self.holidays is None and any(reference.path[:1] == ("isHoliday",) for reference in read):
            return self.holidays_problem
        return None

    def schedule(self, now: datetime) -> dict[str, Any]:
        """Return the variable `schedule` at `now`. Its key `minute` is for `inWindow` alone."""
        local = now.astimezone(self._zone)
        found: dict[str, Any] = {
            "isWeekend": local.weekday() >= 5,
            "hour": local.hour,
            "minute": local.minute,
            "dayOfWeek": DAYS[local.weekday()],
        }
        if self.holidays is not None:
            found["isHoliday"] = local.date() in self.holidays
        return found

    def moments(self, reads: Iterable[str], asked: Iterable[Window], now: datetime) -> Iterator[datetime]:
        """Yield the moments after `now` at which `schedule` can change for an expression, in any order.

        `reads` are its attributes, and `asked` its windows. They repeat after a week, holidays excepted.
        """
        read = set(reads)
        minutes = {boundary for window in asked for boundary in window.boundaries}
        if "schedule.hour" in read:
            minutes |= {60 * hour for hour in range(24)}
        if read & {"schedule.isWeekend", "schedule.dayOfWeek", "schedule.isHoliday"}:
            minutes.add(0)
        if minutes:
            yield from self._at(sorted(minutes), now)
        if "schedule.isHoliday" in read:
            coming = sorted(day for day in self.holidays or () if day > now.date() - _DAY)[:_SHOWN_HOLIDAYS]
            for day in coming:
                for midnight in (day, day + _DAY):
                    yield datetime.combine(midnight, time(), self._zone).astimezone(UTC)

    @property
    def _zone(self) -> tzinfo:
        return ZONES.get(self.zone, UTC)

    def _at(self, minutes: list[int], now: datetime) -> Iterator[datetime]:
        """Yield when these minutes of the day come, and when the clocks change, within the horizon."""
        for start, end, offset in self._parts(now):
            yield start
            day = datetime.combine((start + offset).date(), time(), UTC)
            while day - offset < end:
                for minute in minutes:
                    moment = day + minute * _MINUTE - offset
                    if start <= moment < end:
                        yield moment
                day += _DAY

    def _parts(self, now: datetime) -> Iterator[tuple[datetime, datetime, timedelta]]:
        """Yield the parts of the time from `now` to the horizon that have one distance from UTC."""
        start = now
        offset = self._offset(now)
        at = now.replace(minute=0, second=0, microsecond=0)
        while at < now + _HORIZON:
            following = at + _HOUR
            if (other := self._offset(following)) != offset:
                change = self._change(at, following, offset)
                yield start, change, offset
                start = change
                offset = other
            at = following
        yield start, at, offset

    def _change(self, before: datetime, after: datetime, offset: timedelta) -> datetime:
        """Return the first minute after `before` with another distance from UTC than `offset`."""
        while after - before > _MINUTE:
            middle = before + (after - before) // _MINUTE // 2 * _MINUTE
            if self._offset(middle) == offset:
                before = middle
            else:
                after = middle
        return after

    def _offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self._zone).utcoffset() or timedelta()


def zone_problem(name: str) -> str | None:
    """Return why `spec.timeZone` names no time zone; None if it names one."""
    if name in ZONES:
        return None
    near = nearest(name, ZONES)
    return f"spec.timeZone: there is no time zone {name}" + (f"; did you mean {near}?" if near else "")


def parse_holidays(text: str) -> frozenset[date] | str:
    """Return the dates of a ConfigMap, one in each line; or the reason why they are not used."""
    lines = text.split("\n")
    if len(lines) > MAX_HOLIDAYS:
        return f"it has more than {MAX_HOLIDAYS:,} lines"
    found = set()
    for number, line in enumerate(map(str.strip, lines), 1):
        day = _date(line)
        if day is not None:
            found.add(day)
        elif line:
            return f"line {number} is no date such as 2026-12-25"
    return frozenset(found)


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def windows(source: str) -> tuple[Window, ...]:
    """Return the windows of a valid expression that has no `schedule_fault`, in source order."""
    found = _WINDOWS.get(source)
    if found is None:
        found = tuple(dict.fromkeys(parse_window(text) for text in _texts(cel.syntax_of(source))))
        _WINDOWS.put(source, found)
    return found


def schedule_fault(syntax: Node) -> str | None:
    """Return why the use of `schedule` in an expression is not understood; None if it is.

    The moments at which a window opens and closes are computed from its text, so that is a literal.
    """
    match syntax:
        case Call(function="inWindow", arguments=(Name(name="schedule", bound=False), Constant(value=str(text)))):
            try:
                parse_window(text)
            except cel.Fault as error:
                return error.message
            return None
        case Call(function="inWindow"):
            return 'inWindow() is asked with a literal, as in schedule.inWindow("Mon-Fri 09:00-16:00")'
    path, base, _ = cel.chain(syntax)
    if isinstance(base, Name):
        bare = base.name == "schedule" and not base.bound and not path
        return "schedule is read by its attributes, as in schedule.hour" if bare else None
    return next(filter(None, map(schedule_fault, children(base))), None)


def _texts(node: Node) -> Iterator[str]:
    if isinstance(node, Call) and node.function == "inWindow":
        text = node.arguments[1]
        assert isinstance(text, Constant)  # noqa: S101 - what schedule_fault has checked
        yield str(text.value)
    for child in children(node):
        yield from _texts(child)
