"""Which Bundle follows which, and how many are kept (promotion.md, "Bundle life").

A newer Bundle takes the place of older ones of its Pipeline and type once it has a Graph of its own: one that cannot be
translated must not end a promotion that is going well. A Bundle that has not started waits while a newer one is about
to, so that a backlog does not promote every version in turn.

Creation times have whole seconds, so every Bundle gets a number when it is first seen, in the order of creation as the
API server counts it. The number stands in its status from its admission on; until then it is only remembered here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from kardinal.api import Bundle
from kardinal.api.names import ANNOTATION_PIN

__all__ = ["FINISHED", "Numbering", "awaited", "successor", "surplus"]

FINISHED = frozenset(["Verified", "Failed", "Superseded", "SkipDenied"])

_FIRST_OF_ALL = datetime.min.replace(tzinfo=UTC)


class Numbering:
    """Gives the Bundles of a Pipeline their numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def numbered(self, bundles: Iterable[Bundle]) -> list[Bundle]:
        """The Bundles of one Pipeline with `status.sequence` filled in, oldest first."""
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
        return sorted(known, key=_age)


def successor(bundle: Bundle, siblings: Iterable[Bundle]) -> Bundle | None:
    """The newest Bundle that has started and takes the place of `bundle`; None for a pinned one."""
    started = [other for other in _newer(bundle, siblings) if other.status.graph_ref is not None]
    return max(started, key=_age, default=None)


def awaited(bundle: Bundle, siblings: Iterable[Bundle]) -> Bundle | None:
    """A newer Bundle that has not been looked at yet, so that starting `bundle` may be for nothing."""
    return next((other for other in _newer(bundle, siblings) if other.status.phase is None), None)


def surplus(bundles: Sequence[Bundle], *, limit: int) -> list[Bundle]:
    """The finished Bundles beyond the limit, oldest first; never the one that an environment runs."""
    running = _running(bundles)
    finished = sorted((bundle for bundle in bundles if bundle.status.phase in FINISHED), key=_age)
    beyond = finished[: max(len(finished) - limit, 0)]
    return [bundle for bundle in beyond if bundle.metadata.name not in running]


def _newer(bundle: Bundle, siblings: Iterable[Bundle]) -> list[Bundle]:
    """The Bundles that may take the place of `bundle`."""
    if bundle.metadata.annotations.get(ANNOTATION_PIN) == "true":
        return []
    return [other for other in siblings if other.spec.type == bundle.spec.type and _age(other) > _age(bundle)]


def _created(bundle: Bundle) -> datetime:
    return bundle.metadata.creation_timestamp or _FIRST_OF_ALL


def _creation(bundle: Bundle) -> tuple[datetime, int]:
    """The order of creation of Bundles that nobody has written to since."""
    return _created(bundle), int(bundle.metadata.resource_version or 0)


def _age(bundle: Bundle) -> tuple[datetime, int]:
    return _created(bundle), bundle.status.sequence or 0


def _running(bundles: Iterable[Bundle]) -> set[str]:
    """The Bundles that were Verified last in some environment."""
    latest: dict[str, tuple[datetime, str]] = {}
    for bundle in bundles:
        for environment, entry in bundle.status.environments.items():
            if entry.state == "Verified" and entry.verified_at:
                candidate = (entry.verified_at, bundle.metadata.name)
                latest[environment] = max(latest.get(environment, candidate), candidate)
    return {name for _, name in latest.values()}
