"""The runtime on an API server: over TLS, with tokens, through restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from kardinal.kube import ApiError, Client, Conflict, NotFound, PatchType, load_connection
from kardinal.objects import CONFIG_MAP, EVENT, NAMESPACE, SECRET, JsonObject, Key, key_of
from kardinal.runtime import ChangeKind, Channel, Event, Manager, Result, StatusWriter, Watch
from kardinal_local.plane import Authority, LocalPlane
from tests.runtime.conftest import until
from tests.support.clock import VirtualClock, WorldClock
from tests.support.names import TEAM, of_run
from tests.support.server import ApiServer

KEY = Key(TEAM, "a")


def config_map(name: str = "a", **data: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": TEAM},
        "data": data,
    }


@pytest.fixture
async def server_client(api_server: ApiServer) -> AsyncIterator[Client]:
    connection = await load_connection(api_server.kubeconfig_for("simulator"))
    async with Client(connection, user_agent="test") as client:
        yield client


@pytest.fixture
async def manager(server_client: Client, clock: WorldClock) -> AsyncIterator[Manager]:
    made = Manager(server_client, clock=clock, name="test")
    yield made
    await made.stop()


async def eventually(condition: Callable[[], object], manager: Manager, clock: VirtualClock) -> None:
    """Wait for `condition`; time passes only while an informer backs off."""
    async with asyncio.timeout(10):
        while not condition():
            if any(informer.backing_off for informer in manager.informers):
                clock.advance_to_next_timer()
            await asyncio.sleep(0.002)


async def test_every_verb_does_on_a_server_what_it_says(server_client: Client) -> None:
    client = server_client
    created = await client.create(CONFIG_MAP, config_map(x="1"))
    assert (await client.get(CONFIG_MAP, "a", TEAM))["data"] == {"x": "1"}
    with pytest.raises(ApiError, match="already exists"):
        await client.create(CONFIG_MAP, config_map())
    await client.patch(CONFIG_MAP, "a", TEAM, {"data": {"y": "2"}})
    with pytest.raises(Conflict):
        await client.replace(CONFIG_MAP, created)
    replaced = await client.replace(CONFIG_MAP, config_map(z="3"))
    assert replaced["data"] == {"z": "3"}
    operations = [{"op": "add", "path": "/data/w", "value": "4"}]
    patched = await client.patch(CONFIG_MAP, "a", TEAM, operations, kind=PatchType.JSON)
    assert patched["data"] == {"w": "4", "z": "3"}
    applied = await client.apply(CONFIG_MAP, config_map("b", x="1"), field_manager="one")
    again = await client.apply(CONFIG_MAP, config_map("b", x="1"), field_manager="one")
    assert again["metadata"]["resourceVersion"] == applied["metadata"]["resourceVersion"]
    with pytest.raises(Conflict) as caught:
        await client.apply(CONFIG_MAP, config_map("b", x="2"), field_manager="two")
    assert caught.value.fields == [".data.x"]
    page = await client.list(CONFIG_MAP, TEAM, limit=1)
    assert page.continue_token is not None
    rest = await client.list(CONFIG_MAP, TEAM, limit=1, continue_token=page.continue_token)
    assert [item["metadata"]["name"] for item in (*page.items, *rest.items)] == ["a", "b"]
    assert page.items[0]["kind"] == "ConfigMap"
    with pytest.raises(Conflict):
        await client.delete(CONFIG_MAP, "a", TEAM, uid="another")
    await client.delete(CONFIG_MAP, "a", TEAM, uid=created["metadata"]["uid"])
    with pytest.raises(NotFound):
        await client.delete(CONFIG_MAP, "a", TEAM)
    assert client.in_flight == 0


@pytest.mark.local_only("stops its server and starts it again")
async def test_an_informer_lives_through_a_restart_and_notices_what_it_missed(
    prepared_plane: LocalPlane, server_client: Client, manager: Manager, clock: VirtualClock, authority: Authority
) -> None:
    directory = prepared_plane.kubeconfig.parent
    heard: list[Event] = []
    informer = manager.informer(CONFIG_MAP, namespace=TEAM)
    informer.on_event(heard.append)
    for name in ("kept", "deleted", "remade"):
        await server_client.create(CONFIG_MAP, config_map(name))
    await manager.start()
    before = {event.key.name: event.new for event in heard}
    assert sorted(before) == ["deleted", "kept", "remade"]
    heard.clear()
    port = prepared_plane.port
    await prepared_plane.stop()
    # Only this plane is away: another client works on the objects through a plane at another port.
    meanwhile = await LocalPlane.start(directory, clock=clock, authority=authority)
    async with Client(await load_connection(meanwhile.kubeconfig), user_agent="other") as other:
        await other.delete(CONFIG_MAP, "deleted", TEAM)
        await other.delete(CONFIG_MAP, "remade", TEAM)
        await other.create(CONFIG_MAP, config_map("remade"))
    await meanwhile.stop()
    restarted = await LocalPlane.start(directory, port=port, clock=clock, authority=authority)
    try:
        await eventually(lambda: len(heard) >= 3, manager, clock)
        assert sorted((event.change, event.key.name) for event in heard) == [
            (ChangeKind.ADDED, "remade"),
            (ChangeKind.DELETED, "deleted"),
            (ChangeKind.DELETED, "remade"),
        ]
        await server_client.create(CONFIG_MAP, config_map("after"))
        await eventually(lambda: informer.get(TEAM, "after"), manager, clock)
        assert informer.revisions == restarted.objects("configmaps", TEAM)
        await manager.stop()
    finally:
        await restarted.stop()


async def test_an_object_leaves_a_selector_and_comes_back(server_client: Client, manager: Manager) -> None:
    heard: list[tuple[ChangeKind, str]] = []
    informer = manager.informer(CONFIG_MAP, labels="shard=x")
    informer.on_event(lambda event: heard.append((event.change, event.key.name)))
    await manager.start()
    obj = config_map()
    obj["metadata"]["labels"] = {"shard": "x"}
    await server_client.create(CONFIG_MAP, obj)
    for shard in ("y", "x"):
        await server_client.patch(CONFIG_MAP, "a", TEAM, {"metadata": {"labels": {"shard": shard}}})
    await until(lambda: len(heard) == 3)
    assert heard == [(ChangeKind.ADDED, "a"), (ChangeKind.DELETED, "a"), (ChangeKind.ADDED, "a")]


class Counter:
    """Counts to a number, one write per run, believing only the cache."""

    def __init__(self, manager: Manager, client: Client, *, to: int) -> None:
        self.informer = manager.informer(CONFIG_MAP, namespace=TEAM)
        self.client = client
        self.to = to
        self.written: list[int] = []

    async def reconcile(self, key: Key) -> Result:
        obj = self.informer.get(*key)
        count = int(obj["data"]["count"]) if obj else 0
        if count < self.to:
            self.written.append(count + 1)
            await self.client.apply(CONFIG_MAP, config_map(key.name, count=str(count + 1)), field_manager="counter")
        return Result()


async def test_no_run_repeats_a_write_because_its_cache_lags(server_client: Client, manager: Manager) -> None:
    counter = Counter(manager, server_client, to=40)
    channel = Channel()
    # Pushed again and again: runs follow each other faster than the watch.
    manager.controller("counter", counter, [Watch(counter.informer), channel])
    await manager.start()
    while len(counter.written) < 40:
        channel.push(KEY)
        await asyncio.sleep(0)
    await until(lambda: manager.idle)
    assert counter.written == list(range(1, 41))


@pytest.mark.parametrize("finalizers", [[], ["example.com/wait"]])
async def test_the_run_after_a_deletion_sees_it(server_client: Client, manager: Manager, finalizers: list[str]) -> None:
    obj = config_map()
    obj["metadata"]["finalizers"] = finalizers
    await server_client.create(CONFIG_MAP, obj)
    informer = manager.informer(CONFIG_MAP)
    found: list[str] = []

    class Deleter:
        async def reconcile(self, key: Key) -> Result:
            current = informer.get(*key)
            if current is None:
                found.append("gone")
            elif "deletionTimestamp" in current["metadata"]:
                found.append("terminating")
                await server_client.patch(CONFIG_MAP, key.name, key.namespace, {"metadata": {"finalizers": None}})
            else:
                found.append("present")
                await server_client.delete(CONFIG_MAP, key.name, key.namespace)
            return Result()

    channel = Channel()
    manager.controller("deleter", Deleter(), [channel])
    await manager.start()
    while "gone" not in found:
        channel.push(KEY)
        await asyncio.sleep(0)
    middle = ["terminating"] if finalizers else []
    assert found[: found.index("gone")] == ["present", *middle]


async def test_a_status_meant_for_another_incarnation_is_refused(server_client: Client) -> None:
    first = await server_client.create(
        NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": of_run("x")}}
    )
    writer = StatusWriter(server_client)
    assert await writer.write(NAMESPACE, first, {"phase": "Active"}) is None
    stranger = {**first, "metadata": {**first["metadata"], "uid": "00000000-0000-0000-0000-000000000000"}}
    with pytest.raises(ApiError) as caught:
        await writer.write(NAMESPACE, stranger, {"phase": "Terminating"})
    assert caught.value.status in (409, 422)
    written = await writer.write(NAMESPACE, first, {"phase": "Active", "conditions": []})
    assert written is not None


async def test_events_reach_the_server_and_grow_into_a_series(
    server_client: Client, manager: Manager, clock: VirtualClock
) -> None:
    about = await server_client.create(SECRET, {"metadata": {"name": "s", "namespace": TEAM}})
    about |= {"apiVersion": "v1", "kind": "Secret"}
    await manager.start()
    for _ in range(3):
        manager.recorder.event(about, reason="Rotated", note="a new value")
        await until(lambda: manager.recorder.idle)
    (event,) = (await server_client.list(EVENT, TEAM)).items
    assert event["regarding"]["name"] == "s"
    assert event["series"]["count"] == 3
    # A second program, or this one after a restart, goes on counting.
    second = Manager(server_client, clock=clock, name="test")
    await second.start()
    second.recorder.event(about, reason="Rotated", note="a new value")
    await second.stop()
    (event,) = (await server_client.list(EVENT, TEAM)).items
    assert event["series"]["count"] == 4


async def test_many_objects_arrive_in_one_request(server_client: Client, manager: Manager) -> None:
    for number in range(300):
        await server_client.create(CONFIG_MAP, config_map(f"c{number}"))
    informer = manager.informer(CONFIG_MAP, namespace=TEAM)
    await manager.start()
    assert len(informer.list(TEAM)) == 300
    served = (await server_client.list(CONFIG_MAP, TEAM)).items
    assert informer.revisions == {key_of(obj): obj["metadata"]["resourceVersion"] for obj in served}
