"""The store and its indexes."""

from __future__ import annotations

import pytest

from kardinal.objects import JsonObject, key_of
from kardinal.runtime.store import Store


def widget(name: str, namespace: str = "default", **labels: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}}


def colours(obj: JsonObject) -> list[str]:
    return [value for name, value in obj["metadata"]["labels"].items() if name == "colour"]


def put(store: Store, *objects: JsonObject) -> None:
    for obj in objects:
        store.put(key_of(obj), obj)


def names(objects: list[JsonObject]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


@pytest.fixture
def store() -> Store:
    return Store()


def test_objects_are_listed_by_namespace(store: Store) -> None:
    put(store, widget("a"), widget("b", "other"), widget("c"))
    assert names(store.list("default")) == ["a", "c"]
    assert names(store.list()) == ["a", "b", "c"]
    assert store.list("nowhere") == []


def test_an_index_follows_additions_changes_and_removals(store: Store) -> None:
    store.add_index("colour", colours)
    put(store, widget("a", colour="red"), widget("b", colour="red"))
    put(store, widget("a", colour="blue"))
    assert names(store.by_index("colour", "red")) == ["b"]
    assert names(store.by_index("colour", "blue")) == ["a"]
    store.remove(key_of(widget("a")))
    assert store.by_index("colour", "blue") == []


def test_index_is_walked_from_either_end(store: Store) -> None:
    store.add_index("colour", colours)
    put(store, widget("c", colour="red"), widget("a", colour="red"), widget("b", colour="blue"))
    put(store, widget("b", colour="red"))
    assert names(list(store.filed("colour", "red"))) == ["c", "a", "b"]
    assert names(list(reversed(store.filed("colour", "red")))) == ["b", "a", "c"]
    assert list(store.filed("colour", "green")) == []


def test_an_index_added_late_covers_what_is_there(store: Store) -> None:
    put(store, widget("a", colour="red"))
    store.add_index("colour", colours)
    assert names(store.by_index("colour", "red")) == ["a"]


def test_empty_buckets_vanish(store: Store) -> None:
    store.add_index("name", lambda obj: [obj["metadata"]["name"]])
    for number in range(100):
        put(store, widget(str(number)))
        store.remove(key_of(widget(str(number))))
    assert len(store) == 0
    assert not any(index._buckets or index._values for index in store._indexes.values())


def test_a_second_index_of_the_same_name_is_refused(store: Store) -> None:
    store.add_index("colour", colours)
    with pytest.raises(ValueError, match="already"):
        store.add_index("colour", colours)


def test_replacing_the_content_keeps_indexes_right(store: Store) -> None:
    store.add_index("colour", colours)
    put(store, widget("a", colour="red"), widget("b", colour="red"))
    kept = widget("b", colour="blue")
    store.replace({key_of(kept): kept, key_of(widget("c")): widget("c", colour="red")})
    assert names(store.by_index("colour", "red")) == ["c"]
    assert names(store.list("default")) == ["b", "c"]


def test_an_object_that_an_index_fails_on_is_left_out_of_it_alone(store: Store) -> None:
    def strict(obj: JsonObject) -> list[str]:
        return [obj["spec"]["needed"]]

    store.add_index("strict", strict)
    odd = widget("odd")
    fine = widget("fine") | {"spec": {"needed": "x"}}
    put(store, odd, fine)
    assert store.by_index("strict", "x") == [fine]
    assert names(store.list()) == ["odd", "fine"]
