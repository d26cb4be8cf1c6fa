"""Predicates: the changes of a watched object that cause a reconcile.

An object changes for many reasons that do not concern a controller: a status that another program writes, a heartbeat,
a label. A `Watch` with a predicate puts no key on the queue if the predicate is false, which is cheaper than a run that
finds nothing to do. Predicates can be combined with `&`, `|` and `~`, for example `generation_changed |
labels_changed`.

Every predicate that compares the old with the new state is also true for creations and deletions, because there is
nothing to compare with; add `& ~deleted` if a deletion needs no reconcile.
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
    """A condition on an event, evaluated by `test`."""

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
    """Return a predicate for objects that are created, deleted, or have another value of `aspect` than before."""

    def differs(event: Event) -> bool:
        return event.old is None or event.new is None or aspect(event.old) != aspect(event.new)

    return Predicate(differs)


def metadata_changed(*fields: str) -> Predicate:
    """Return a predicate for objects that are created, deleted, or change in one of these fields of their metadata."""
    return changed(lambda obj: [obj["metadata"].get(field) for field in fields])


def status_changed(*fields: str) -> Predicate:
    """Return a predicate for objects that are created, deleted, or change in one of these fields of their status."""

    def values(obj: JsonObject) -> object:
        status = obj.get("status") or {}
        return [status.get(field) for field in fields]

    return changed(values)


def either(holds: Callable[[JsonObject], bool]) -> Predicate:
    """Return a predicate for events for whose old or new object `holds` is true."""
    return Predicate(lambda event: any(holds(obj) for obj in (event.old, event.new) if obj is not None))


created = Predicate(lambda event: event.old is None)
"""The object did not exist before; true at the start for every existing object."""

deleted = Predicate(lambda event: event.new is None)
"""The object is gone."""

generation_changed = metadata_changed("generation")
"""The spec has changed. The generation of built-in kinds without a spec never changes."""

labels_changed = changed(labels_of)
"""The labels have changed; no labels and an empty map are equal."""
