"""Predicates: which changes of a watched object are worth a reconcile.

An object changes for many reasons that one controller does not care about: a status that another program writes, a
heartbeat, a label. A `Watch` takes a predicate and puts no key on the queue where it says no, which is cheaper than a
run that finds nothing to do. Predicates compose with `&`, `|` and `~`.

Every predicate that compares the old with the new state also lets through what was created or deleted, because there
is nothing to compare with; write `& ~deleted` where a deletion is no work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kardinal.objects import JsonObject, labels_of
from kardinal.runtime.informer import Event

__all__ = [
    "Predicate",
    "changed",
    "created",
    "deleted",
    "either",
    "generation_changed",
    "labels_changed",
    "metadata_changed",
    "status_changed",
]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A question about an event, answered by `test`."""

    test: Callable[[Event], bool]

    def __call__(self, event: Event) -> bool:
        return self.test(event)

    def __and__(self, other: Predicate) -> Predicate:
        return Predicate(lambda event: self(event) and other(event))

    def __or__(self, other: Predicate) -> Predicate:
        return Predicate(lambda event: self(event) or other(event))

    def __invert__(self) -> Predicate:
        return Predicate(lambda event: not self(event))


def changed(aspect: Callable[[JsonObject], object]) -> Predicate:
    """Let through what is created, deleted, or has another value of `aspect` than before."""

    def differs(event: Event) -> bool:
        return event.old is None or event.new is None or aspect(event.old) != aspect(event.new)

    return Predicate(differs)


def metadata_changed(*fields: str) -> Predicate:
    """Let through what is created, deleted, or changes in one of these fields of its metadata."""
    return changed(lambda obj: [obj["metadata"].get(field) for field in fields])


def status_changed(*fields: str) -> Predicate:
    """Let through what is created, deleted, or changes in one of these fields of its status."""

    def values(obj: JsonObject) -> object:
        status = obj.get("status") or {}
        return [status.get(field) for field in fields]

    return changed(values)


def either(holds: Callable[[JsonObject], bool]) -> Predicate:
    """Let through an event whose old or new object `holds` is true of."""
    return Predicate(lambda event: any(holds(obj) for obj in (event.old, event.new) if obj is not None))


created = Predicate(lambda event: event.old is None)
"""The object was not there before; true at the start for every object there is."""

deleted = Predicate(lambda event: event.new is None)
"""The object is gone."""

generation_changed = metadata_changed("generation")
"""The spec is another one. The generation of built-in kinds without a spec never changes."""

labels_changed = changed(labels_of)
"""The labels are others; none and an empty map are the same."""
