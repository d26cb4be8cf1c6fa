"""Which Bundle takes the place of which (pure, except that sequence numbers are remembered).

A newer Bundle takes the place of older ones of its Pipeline and type once it has a Graph of its own: one that cannot be
translated must not end a promotion that is going well. A Bundle that has not started waits while a newer one is about
to, so that a backlog does not promote every version in turn.

Creation times have whole seconds, so every Bundle gets a number when it is first seen, in the order of creation as the
API server counts it. The number is in its status from the first write on; until then it is only remembered here.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from kardinal.api import Bundle
from kardinal.api.names import ANNOTATION_PIN

__all__ = ["SequenceNumbers", "age", "pending_successor", "successor"]

_EARLIEST = datetime.min.replace(tzinfo=UTC)


class SequenceNumbers:
    """Gives the Bundles of a Pipeline their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def fill_in(self, bundles: Iterable[Bundle]) -> list[Bundle]:
        """Return the Bundles of one Pipeline with `status.sequence` filled in, oldest first."""
        found = sorted(bundles, key=_creation)
        last = max((bundle.status.sequence or self._numbers.get(bundle.metadata.uid, 0) for bundle in found), default=0)
        known = []
        for bundle in found:
            uid = bundle.metadata.uid
            if bundle.status.sequence is not None:
                self._numbers.pop(uid, None)
                known.append(bundle)
                continue
            if uid not in self._numbers:
                last += 1
                self._numbers[uid] = last
            status = bundle.status.model_copy(update={"sequence": self._numbers[uid]})
            known.append(bundle.model_copy(update={"status": status}))
        return sorted(known, key=age)


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


def _creation(bundle: Bundle) -> tuple[datetime, int]:
    """Return the order of creation of Bundles that have not been written to since."""
    return _created(bundle), int(bundle.metadata.resource_version or 0)
