"""The calendars of gates, with the holidays of ConfigMaps, each read once in `LIFETIME` seconds.

A ConfigMap is read in the namespace of the gate template, by one request for all gates that ask for it. What cannot be
read or understood closes the gates that ask for holidays, and the reason says what to do.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import date

from kardinal.clock import Clock
from kardinal.kube import Client, Forbidden, NotFound
from kardinal.objects import CONFIG_MAP, JsonObject, Key
from kardinal.promotion.api.policy_gate import PolicyGateSpec
from kardinal.promotion.policy.calendar import HOLIDAYS_KEY, Calendar, parse_holidays

__all__ = ["Calendars"]

LIFETIME = 30.0
"""The time in seconds for which holidays, or their absence, are remembered."""
REMEMBERED = 256
"""The most ConfigMaps that are remembered."""


@dataclass(frozen=True, slots=True)
class _Entry:
    holidays: frozenset[date] | None
    problem: str
    until: float


class Calendars:
    """Return the calendar of a gate template."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._reading = asyncio.Lock()

    async def of(self, namespace: str, spec: PolicyGateSpec) -> Calendar:
        """Return the calendar of a template in `namespace`. Raises `KubeError` if the API server does not answer."""
        if spec.holidays is None or "isHoliday" not in spec.expression:
            return Calendar(spec.time_zone)
        key = Key(namespace, spec.holidays)
        # Read once for all gates that wait for it.
        async with self._reading:
            entry = self._entries.get(key)
            now = self._clock.monotonic()
            if entry is None or entry.until <= now:
                holidays, problem = await self._read(key)
                entry = self._entries[key] = _Entry(holidays, problem, now + LIFETIME)
                self._entries.move_to_end(key)
                while len(self._entries) > REMEMBERED:
                    self._entries.popitem(last=False)
        return Calendar(spec.time_zone, entry.holidays, entry.problem)

    async def _read(self, key: Key) -> tuple[frozenset[date] | None, str]:
        named = f"spec.holidays: ConfigMap {key}"
        try:
            stored = await self._client.get(CONFIG_MAP, key.name, key.namespace)
        except NotFound:
            return None, f"{named} does not exist"
        except Forbidden:
            remedy = f"kubectl apply -n {key.namespace} -f deploy/holidays/namespace.yaml"
            return None, f"{named} may not be read; {remedy} allows it"
        found = _holidays(stored)
        return (None, f"{named}: {found}") if isinstance(found, str) else (found, "")


def _holidays(stored: JsonObject) -> frozenset[date] | str:
    text = (stored.get("data") or {}).get(HOLIDAYS_KEY)
    return f"it has no key {HOLIDAYS_KEY}" if text is None else parse_holidays(text)
