"""Which events a predicate lets through."""

from __future__ import annotations

import pytest

from kardinal.objects import JsonObject, Key
from kardinal.runtime.informer import ChangeKind, Event
from kardinal.runtime.predicates import (
    Predicate,
    changed,
    created,
    deleted,
    either,
    generation_changed,
    labels_changed,
    metadata_changed,
    status_changed,
)

KEY = Key("default", "w")


def widget(
    *, generation: int = 1, labels: dict[str, str] | None = None, status: JsonObject | None = None, **spec: object
) -> JsonObject:
    made: JsonObject = {"metadata": {"name": "w", "generation": generation}, "spec": spec}
    if labels is not None:
        made["metadata"]["labels"] = labels
    if status is not None:
        made["status"] = status
    return made


def update(old: JsonObject, new: JsonObject) -> Event:
    return Event(ChangeKind.UPDATED, KEY, old, new)


CREATED = Event(ChangeKind.ADDED, KEY, None, widget())
DELETED = Event(ChangeKind.DELETED, KEY, widget(), None)
UNCHANGED = update(widget(), widget())

ALWAYS = Predicate(lambda _: True)
NEVER = Predicate(lambda _: False)


@pytest.mark.parametrize(("predicate", "lets"), [(created, [True, False, False]), (deleted, [False, True, False])])
def test_creation_deletion_and_update_are_told_apart(predicate: Predicate, lets: list[bool]) -> None:
    assert [predicate(event) for event in (CREATED, DELETED, UNCHANGED)] == lets


@pytest.mark.parametrize(
    "predicate",
    [
        changed(lambda obj: obj["spec"].get("size")),
        generation_changed,
        labels_changed,
        metadata_changed("uid", "finalizers"),
        status_changed("phase"),
    ],
    ids=["changed", "generation", "labels", "metadata", "status"],
)
def test_comparing_predicate_passes_updates_with_a_difference_only(
    predicate: Predicate,
) -> None:
    assert predicate(CREATED)
    assert predicate(DELETED)
    assert not predicate(UNCHANGED)


@pytest.mark.parametrize(
    ("predicate", "new", "lets"),
    [
        (changed(lambda obj: obj["spec"].get("size")), widget(size=2), True),
        (changed(lambda obj: obj["spec"].get("size")), widget(colour="red"), False),
        (generation_changed, widget(generation=2), True),
        (generation_changed, widget(labels={"a": "b"}), False),
        (labels_changed, widget(labels={"a": "b"}), True),
        (labels_changed, widget(labels={}), False),
        (labels_changed, widget(generation=2), False),
        (metadata_changed("generation", "labels"), widget(generation=2), True),
        (metadata_changed("generation", "labels"), widget(labels={"a": "b"}), True),
        (metadata_changed("uid"), widget(generation=2), False),
        (status_changed("phase", "reason"), widget(status={"phase": "Up"}), True),
        (status_changed("phase", "reason"), widget(status={"reason": "Why"}), True),
        (status_changed("phase", "reason"), widget(status={"beats": 3}), False),
        (status_changed("phase", "reason"), widget(status={}), False),
    ],
)
def test_an_update_passes_where_the_aspect_differs(predicate: Predicate, new: JsonObject, lets: bool) -> None:
    assert predicate(update(widget(), new)) is lets
    assert predicate(update(new, widget())) is lets


def test_either_looks_at_the_old_and_the_new_object() -> None:
    red = either(lambda obj: obj["spec"].get("colour") == "red")
    painted = widget(colour="red")
    plain = widget()
    assert red(update(plain, painted))
    assert red(update(painted, plain))
    assert not red(update(plain, plain))
    assert red(Event(ChangeKind.ADDED, KEY, None, painted))
    assert red(Event(ChangeKind.DELETED, KEY, painted, None))
    assert not red(DELETED)


def test_predicates_compose() -> None:
    table = [(ALWAYS, ALWAYS), (ALWAYS, NEVER), (NEVER, ALWAYS), (NEVER, NEVER)]
    assert [(one & other)(CREATED) for one, other in table] == [True, False, False, False]
    assert [(one | other)(CREATED) for one, other in table] == [True, True, True, False]
    assert [(~one)(CREATED) for one, _ in table] == [False, False, True, True]
    assert [(generation_changed & ~deleted)(event) for event in (CREATED, DELETED)] == [True, False]


def test_the_second_half_is_not_asked_where_the_first_decides() -> None:
    def fails(_: Event) -> bool:
        raise AssertionError("asked")

    assert not (NEVER & Predicate(fails))(CREATED)
    assert (ALWAYS | Predicate(fails))(CREATED)
