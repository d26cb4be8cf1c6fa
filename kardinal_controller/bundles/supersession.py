"""Which Bundle takes the place of which (pure, except that sequence numbers are remembered).

A newer Bundle takes the place of older ones of its Pipeline and type once it has a Graph of its own: one that cannot be
translated must not end a promotion that is going well. A Bundle that has not started waits while a newer one is about
to, so that a backlog does not promote every version in turn.

Creation times have whole seconds, so every Bundle gets a number when it is first seen, in the order of creation as the
API server counts it. The number is in its status from the first write on; until then it is only remembered here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from kardinal.api import Bundle
from kardinal.api.names import ANNOTATION_PIN
from kardinal.objects import JsonObject

__all__ = ["SequenceNumbers", "age", "pending_successor", "successor"]

_EARLIEST = datetime.min.replace(tzinfo=UTC)


class SequenceNumbers:
    """Gives the Bundles of a Pipeline their numbers; reads the objects as they are, because there may be thousands."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

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
        last = max((number for number in known if number is not None), default=0)
        new = [bundle for bundle, number in zip(bundles, known, strict=True) if number is None]
        for number, bundle in enumerate(sorted(new, key=_creation), last + 1):
            self._numbers[bundle["metadata"]["uid"]] = number

    def fill_in(self, bundle: JsonObject) -> Bundle:
        """Return a Bundle with `status.sequence` filled in."""
        read = Bundle.model_validate(bundle)
        status = read.status.model_copy(update={"sequence": self.of(bundle)})
        return read.model_copy(update={"status": status})

    def age(self, bundle: JsonObject) -> tuple[str, float]:
        """Return what sorts the Bundles of a Pipeline; one without a number was heard of last."""
        number = self.of(bundle)
        return bundle["metadata"]["creationTimestamp"], math.inf if number is None else number


def successor(bundle: Bundle, siblings: Iterable[Bundle]) -> Bundle | None:
    """Return the newest Bundle that has started and takes the place of `bundle`; None for a pinned one."""
    started = [other for other in _newer(bundle, siblings) if other.status.graph_ref is not None]
    return max(started, key=age, default=None)


def pending_successor(bundle: Bundle, siblings: Iterable[Bundle]) -> Bundle | None:
    """Return a newer Bundle that has no phase yet: it may start any moment and make a start of `bundle` pointless."""
    return next((other for other in _newer(bundle, siblings) if other.status.phase is None), None)


def age(bundle: Bundle) -> tuple[datetime, int]:
    """Return what sorts the Bundles of a Pipeline from the oldest to the newest; they must have their numbers."""
    return _created(bundle), bundle.status.sequence or 0


def _newer(bundle: Bundle, siblings: Iterable[Bundle]) -> list[Bundle]:
    """Return the Bundles that may take the place of `bundle`."""
    if bundle.metadata.annotations.get(ANNOTATION_PIN) == "true":
        return []
    return [other for other in siblings if other.spec.type == bundle.spec.type and age(other) > age(bundle)]


def _created(bundle: Bundle) -> datetime:
    return bundle.metadata.creation_timestamp or _EARLIEST


def _creation(bundle: JsonObject) -> tuple[str, int]:
    """Return the order of creation of Bundles that have not been written to since."""
    metadata = bundle["metadata"]
    return metadata["creationTimestamp"], int(metadata["resourceVersion"])
