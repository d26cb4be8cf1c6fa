"""The order of the Bundles of a Pipeline, and the decisions about them that the informer does not show yet.

Creation times have whole seconds, so every Bundle gets a number when it is first seen, in the order of creation as the
API server counts it. The number is in its status from the first write on; until then it is only remembered here. So is
the admission to an environment: two Bundles that are decided about at one moment must not both be admitted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import EnvironmentStatus
from kardinal.runtime import KeyMemory
from kardinal_controller.bundles.contenders import Order, Standing
from kardinal_controller.caches import pipeline_label

__all__ = ["Admissions", "SequenceNumbers", "Start", "Starts"]


_STARTS_KEPT = 10_000
"""The most Pipelines and types whose latest start is remembered."""


class SequenceNumbers:
    """Gives the Bundles of a Pipeline their numbers; reads the objects as they are, because there may be thousands."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._reserved = 0

    def of(self, bundle: JsonObject) -> int | None:
        """Return the number of a Bundle, which is in its status or was given by `assign`."""
        known: int | None = bundle.get("status", {}).get("sequence")
        uid = bundle["metadata"]["uid"]
        if known is None:
            return self._numbers.get(uid)
        self._numbers.pop(uid, None)
        return known

    def assign(self, bundles: Sequence[JsonObject]) -> None:
        """Give numbers to those of the Bundles of one Pipeline that have none, in the order of their creation."""
        known = [self.of(bundle) for bundle in bundles]
        last = self._last(bundles)
        new = [bundle for bundle, number in zip(bundles, known, strict=True) if number is None]
        for number, bundle in enumerate(sorted(new, key=_creation), last + 1):
            self._numbers[bundle["metadata"]["uid"]] = number

    def reserve(self, bundles: Sequence[JsonObject], count: int) -> Order:
        """Reserve numbers for `count` new requests, and return the order of the first one."""
        self._reserved = self._last(bundles) + count
        return max(created_at(bundle) for bundle in bundles), self._reserved - count + 1

    def _last(self, bundles: Sequence[JsonObject]) -> int:
        """Return the greatest number that a Bundle or a request of a Pipeline has, or was promised."""
        known = [self.of(bundle) or 0 for bundle in bundles]
        requests = ((bundle.get("status") or {}).get("requests") or () for bundle in bundles)
        asked: list[int] = [each["sequence"] for found in requests for each in found]
        return max(*known, *asked, self._reserved, 0)

    def fill_in(self, bundle: Bundle) -> Bundle:
        """Return a Bundle with `status.sequence` filled in."""
        if bundle.status.sequence is not None:
            return bundle
        status = bundle.status.model_copy(update={"sequence": self._numbers.get(bundle.metadata.uid)})
        return bundle.model_copy(update={"status": status})

    def order(self, bundle: JsonObject) -> Order:
        """Return the key that sorts the Bundles of a Pipeline; a Bundle without a number comes last."""
        number = self.of(bundle)
        return created_at(bundle), math.inf if number is None else number


class Admissions:
    """Remembers to which environments Bundles were admitted, until the informer shows it in their statuses."""

    def __init__(self, memory: KeyMemory) -> None:
        self._admitted: dict[Key, tuple[str, frozenset[str]]] = memory.map()

    def note(self, bundle: JsonObject, entries: Mapping[str, EnvironmentStatus]) -> None:
        """Remember the admissions in a status that is about to be written."""
        admitted = frozenset(name for name, entry in entries.items() if entry.admitted_at is not None)
        self._admitted[key_of(bundle)] = bundle["metadata"]["uid"], admitted

    def fill_in(self, bundle: JsonObject, standings: Mapping[str, Standing]) -> Mapping[str, Standing]:
        """Return the standings of a Bundle with the remembered admissions filled in."""
        uid, admitted = self._admitted.get(key_of(bundle), ("", frozenset[str]()))
        if uid != bundle["metadata"]["uid"] or all(standings[name].admitted for name in admitted & standings.keys()):
            self._admitted.pop(key_of(bundle), None)
            return standings
        return {name: replace(each, admitted=each.admitted or name in admitted) for name, each in standings.items()}


@dataclass(frozen=True, slots=True)
class Start:
    """The moment at which a Bundle got its Graph."""

    bundle: str
    """The name of the Bundle."""
    at: float
    """Seconds of the monotonic clock."""


class Starts:
    """Remembers the latest start of each Pipeline and type.

    It only saves work, so it may be forgotten: at a restart, or for the oldest of more than 10,000 Pipelines and types.
    """

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str, object], Start] = {}

    def note(self, bundle: JsonObject, moment: float) -> None:
        """Remember that a Bundle is given a Graph now."""
        key = _pipeline_and_type(bundle)
        self._latest.pop(key, None)
        self._latest[key] = Start(bundle["metadata"]["name"], moment)
        if len(self._latest) > _STARTS_KEPT:
            del self._latest[next(iter(self._latest))]

    def latest_before(self, bundle: JsonObject) -> Start | None:
        """Return the latest start in the Pipeline and type; None if it is unknown, or the start of `bundle` itself."""
        start = self._latest.get(_pipeline_and_type(bundle))
        return start if start is not None and start.bundle != bundle["metadata"]["name"] else None


def created_at(bundle: JsonObject) -> datetime:
    return _moment(bundle["metadata"]["creationTimestamp"])


@lru_cache(1024)
def _moment(text: str) -> datetime:
    """Read a time; many Bundles are created within one second."""
    return datetime.fromisoformat(text)


def _pipeline_and_type(bundle: JsonObject) -> tuple[str, str, object]:
    return bundle["metadata"]["namespace"], pipeline_label(bundle), bundle["spec"].get("type")


def _creation(bundle: JsonObject) -> tuple[str, int]:
    """Return the order of creation of Bundles that have not been written to since."""
    metadata = bundle["metadata"]
    return metadata["creationTimestamp"], int(metadata["resourceVersion"])
