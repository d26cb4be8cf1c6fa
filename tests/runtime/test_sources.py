"""From changes of objects to keys, and the owners of objects."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kardinal.kube import Client
from kardinal.objects import NAMESPACE, JsonObject, Key, ResourceType
from kardinal.runtime import Channel, Watch, to_owner, to_self
from kardinal.runtime.informer import Informer
from kardinal.runtime.metrics import Metrics
from kardinal.runtime.predicates import changed
from kardinal.runtime.queue import INITIAL_PRIORITY, PriorityQueue
from kardinal.runtime.reflector import WatchScope
from tests.runtime.apiserver import WIDGET
from tests.support.clock import VirtualClock

PARENT = ResourceType("example.com", "v1", "Parent", "parents")


def reference(
    name: str, *, kind: str = "Parent", api_version: str = "example.com/v1", controller: bool = True
) -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"u-{name}", "controller": controller}


def widget(name: str, revision: int, *owners: JsonObject, uid: str = "u", **more: object) -> JsonObject:
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": uid,
        "resourceVersion": str(revision),
        "ownerReferences": list(owners),
    }
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, **more}


@pytest.fixture
def informer(client: Client, clock: VirtualClock) -> Informer:
    return Informer(client, WatchScope(WIDGET), clock=clock, metrics=Metrics(clock=clock).informer("Widget"))


@pytest.fixture
def queue(clock: VirtualClock) -> PriorityQueue:
    return PriorityQueue(clock=clock)


async def taken(queue: PriorityQueue) -> list[tuple[str, int]]:
    found = []
    while queue:
        item = await queue.get()
        assert item is not None
        found.append((item.key.name, item.priority))
        queue.done(item.key)
    return found


@pytest.mark.parametrize(
    ("owner", "controller_only", "expected"),
    [
        (reference("p"), True, ["p"]),
        (reference("p", controller=False), True, []),
        (reference("p", controller=False), False, ["p"]),
        (reference("p", api_version="example.com/v2"), True, ["p"]),
        (reference("p", api_version="other.com/v1"), True, []),
        (reference("p", kind="Other"), True, []),
    ],
    ids=["controller", "mere owner", "mere owner wanted", "other version", "other group", "other kind"],
)
def test_an_owner_is_found_by_group_and_kind(owner: JsonObject, controller_only: bool, expected: list[str]) -> None:
    keys = list(to_owner(PARENT, controller_only=controller_only)(widget("a", 1, owner)))
    assert keys == [Key("default", name) for name in expected]


def test_a_cluster_scoped_owner_has_no_namespace() -> None:
    owner = reference("x", kind="Namespace", api_version="v1")
    assert list(to_owner(NAMESPACE)(widget("a", 1, owner))) == [Key("", "x")]


async def test_existing_objects_are_less_urgent_than_changes(informer: Informer, queue: PriorityQueue) -> None:
    Watch(informer).attach(queue)
    informer.replace({Key("default", "old"): widget("old", 1)}, "1")
    informer.apply("ADDED", widget("new", 2))
    assert await taken(queue) == [("new", 0), ("old", INITIAL_PRIORITY)]


async def test_an_object_that_changes_its_owner_concerns_both(informer: Informer, queue: PriorityQueue) -> None:
    Watch(informer, to_owner(PARENT)).attach(queue)
    informer.apply("ADDED", widget("a", 1, reference("p")))
    await taken(queue)
    informer.apply("MODIFIED", widget("a", 2, reference("q")))
    assert await taken(queue) == [("p", 0), ("q", 0)]
    informer.apply("MODIFIED", widget("a", 3, reference("q")))
    assert await taken(queue) == [("q", 0)]
    informer.apply("DELETED", widget("a", 4, reference("q")))
    assert await taken(queue) == [("q", 0)]


async def test_a_mapping_of_ones_own_may_name_any_keys(informer: Informer, queue: PriorityQueue) -> None:
    def twice(obj: JsonObject) -> Iterable[Key]:
        return [Key("x", "one"), Key("x", "two"), Key("x", "one")]

    Watch(informer, twice).attach(queue)
    informer.apply("ADDED", widget("a", 1))
    assert await taken(queue) == [("one", 0), ("two", 0)]


async def test_a_condition_lets_only_some_events_through(informer: Informer, queue: PriorityQueue) -> None:
    Watch(informer, to_self, when=changed(lambda obj: obj.get("spec"))).attach(queue)
    informer.apply("ADDED", widget("a", 1, spec=1))
    await taken(queue)
    informer.apply("MODIFIED", widget("a", 2, spec=1, status=2))
    assert await taken(queue) == []
    informer.apply("MODIFIED", widget("a", 3, spec=2))
    assert await taken(queue) == [("a", 0)]


async def test_a_channel_reaches_every_controller_it_belongs_to(clock: VirtualClock) -> None:
    channel = Channel()
    queues = [PriorityQueue(clock=clock), PriorityQueue(clock=clock)]
    for queue in queues:
        channel.attach(queue)
    channel.push(Key("default", "a"))
    assert [await taken(queue) for queue in queues] == [[("a", 0)], [("a", 0)]]
