"""A comparison finds every leaf that was changed, and says where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.local.contract.differences import difference_of_exchanges, first_difference
from tests.local.contract.recordings import all_recordings

RECORDED = [
    pytest.param(found.exchanges, id=f"{path.parent.name}-{path.stem}")
    for path, found in all_recordings()
    if not found.loose
]
SAMPLES = RECORDED[:: max(1, len(RECORDED) // 50)][:50]


@pytest.mark.parametrize(
    ("recorded", "answered", "path"),
    [
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "a.b[1]"),
        ({"a": [1]}, {"a": [1, 2]}, "a[1]"),
        ({"a": 1}, {"a": 1, "b": None}, "b"),
        ({"a": True}, {"a": 1}, "a"),
        ({"a": 1}, {"a": 1.0}, "a"),
        ({"a": {}}, {"a": None}, "a"),
    ],
)
def test_the_first_difference_is_named(recorded: Any, answered: Any, path: str) -> None:
    found = first_difference(recorded, answered)
    assert found is not None
    assert found.path == path
    assert first_difference(recorded, recorded) is None


def test_a_difference_reads_as_request_place_and_both_values() -> None:
    recorded = [{"request": "GET /a", "status": 200}, {"request": "GET /b", "status": 404}]
    answered = [recorded[0], recorded[1] | {"status": 500}]
    assert str(difference_of_exchanges(recorded, answered)) == (
        "the answers are not those of the recording\n"
        "  request   GET /b  (2 of 2)\n  at        status\n  recorded  404\n  answered  500"
    )


def test_a_request_too_few_or_too_many_is_a_difference() -> None:
    one, two = {"request": "GET /a"}, {"request": "GET /b"}
    found = difference_of_exchanges([one], [one, two])
    assert found is not None
    assert (found.path, found.request) == ("number of requests", "GET /b")


def test_a_loose_message_may_differ_and_nothing_else() -> None:
    cause = {"reason": "FieldValueInvalid", "field": "spec", "message": "x"}
    body = {"message": "x", "code": 422, "details": {"causes": [cause]}}
    recorded = [{"request": "GET /a", "loose": True, "body": body}]
    other = body | {"message": "y", "details": {"causes": [cause | {"message": "y"}]}}
    assert difference_of_exchanges(recorded, [recorded[0] | {"body": other}]) is None
    assert difference_of_exchanges(recorded, [recorded[0] | {"body": other | {"code": 400}}])
    assert difference_of_exchanges([recorded[0] | {"loose": False}], [recorded[0] | {"body": other}])


def test_the_order_of_managers_counts_unless_time_passed() -> None:
    entries = [{"manager": "a", "operation": "Update"}, {"manager": "b", "operation": "Update"}]
    recorded = [{"request": "GET /a", "body": {"metadata": {"managedFields": entries}}}]
    turned = [{"request": "GET /a", "body": {"metadata": {"managedFields": entries[::-1]}}}]
    assert difference_of_exchanges(recorded, turned)
    assert difference_of_exchanges(recorded, turned, time_passes=True) is None
    fewer = [{"request": "GET /a", "body": {"metadata": {"managedFields": entries[:1]}}}]
    assert difference_of_exchanges(recorded, fewer, time_passes=True)


def _changed(value: Any) -> Iterator[Any]:
    """Copies of `value`, each with one leaf changed, one member left out or one added."""
    if isinstance(value, dict):
        yield {**value, "added": None}
        for key, member in value.items():
            yield {other: value[other] for other in value if other != key}
            for changed in _changed(member):
                yield {**value, key: changed}
    elif isinstance(value, list):
        yield [*value, value[0] if value else {}]
        for index, item in enumerate(value):
            yield [*value[:index], *value[index + 1 :]]
            for changed in _changed(item):
                yield [*value[:index], changed, *value[index + 1 :]]
    else:
        yield None if value is not None else ""
        if isinstance(value, str):
            yield f"{value} "
        elif value is not None:
            yield value + 1


@pytest.mark.parametrize("exchanges", SAMPLES)
def test_no_change_of_a_recording_goes_unnoticed(exchanges: list[Any]) -> None:
    assert difference_of_exchanges(exchanges, exchanges) is None
    assert all(difference_of_exchanges(exchanges, changed) for changed in _changed(exchanges))
