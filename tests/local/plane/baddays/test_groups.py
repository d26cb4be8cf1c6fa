"""Group commit: what is decided and not yet on disk is seen by the next check and by nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from kardinal_local.plane import Authority, LocalPlane
from tests.local.plane.baddays.disk import Gate
from tests.local.plane.wire import CONFIG_MAPS, Answer, Http, config_map, session_for, until


@pytest.fixture
async def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


@pytest.fixture
async def http(tmp_path_factory: pytest.TempPathFactory, authority: Authority, gate: Gate) -> AsyncIterator[Http]:
    """Requests to a plane with `--durable`, whose commits pass the gate."""
    plane = await LocalPlane.start(tmp_path_factory.mktemp("plane"), authority=authority, durable=True)
    await until(lambda: _idle(plane))
    async with session_for(plane.kubeconfig) as session:
        yield Http(session)
    gate.open()
    await plane.stop()


async def _idle(plane: LocalPlane) -> bool:
    await asyncio.sleep(0)
    return plane.idle


class _Held:
    """Requests whose answers are held back, one after the other."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._tasks: list[asyncio.Task[Answer]] = []

    async def ask(self, request: Coroutine[Any, Any, Answer]) -> None:
        """Send a request, and wait until it was decided."""
        self._gate.close()
        self._tasks.append(asyncio.create_task(request))
        await self._gate.waiting(len(self._tasks))

    async def statuses(self) -> list[int]:
        """Let the commits go on: what came of the requests."""
        assert not any(task.done() for task in self._tasks)
        self._gate.open()
        return [answer.status for answer in await asyncio.gather(*self._tasks)]


@pytest.fixture
async def held(gate: Gate) -> _Held:
    return _Held(gate)


async def test_a_write_is_seen_by_the_next_check_and_by_no_client_before_it_is_committed(
    http: Http, held: _Held
) -> None:
    before = await http.get(CONFIG_MAPS)
    async with http.watch(CONFIG_MAPS, resourceVersion=before.revision) as watch:
        await held.ask(http.post(CONFIG_MAPS, config_map("a")))
        await held.ask(http.post(CONFIG_MAPS, config_map("a")))
        await held.ask(http.merge(f"{CONFIG_MAPS}/a", {"data": {"key": "changed"}}))
        await held.ask(http.merge(f"{CONFIG_MAPS}/a", {"data": {"key": "changed"}}))
        assert (await http.get(f"{CONFIG_MAPS}/a")).status == 404
        assert (await http.get(CONFIG_MAPS)).body == before.body
        assert await held.statuses() == [201, 409, 200, 200]
        assert await watch.names(2) == [("ADDED", "a"), ("MODIFIED", "a")]
    assert (await http.get(f"{CONFIG_MAPS}/a")).body["data"] == {"key": "changed"}


async def test_an_object_can_be_deleted_and_made_again_before_either_is_committed(http: Http, held: _Held) -> None:
    old = await http.post(CONFIG_MAPS, config_map("a"))
    async with http.watch(CONFIG_MAPS, resourceVersion=old.revision) as watch:
        await held.ask(http.delete(f"{CONFIG_MAPS}/a"))
        await held.ask(http.delete(f"{CONFIG_MAPS}/a"))
        await held.ask(http.post(CONFIG_MAPS, config_map("a")))
        assert (await http.get(f"{CONFIG_MAPS}/a")).body == old.body
        assert await held.statuses() == [200, 404, 201]
        assert await watch.names(2) == [("DELETED", "a"), ("ADDED", "a")]
    assert (await http.get(f"{CONFIG_MAPS}/a")).body["metadata"]["uid"] != old.body["metadata"]["uid"]


async def test_a_namespace_that_is_not_committed_yet_takes_objects_and_is_no_news_to_clients(
    http: Http, held: _Held
) -> None:
    await held.ask(http.post("/api/v1/namespaces", {"metadata": {"name": "fresh"}}))
    await held.ask(http.post("/api/v1/namespaces/fresh/configmaps", config_map("a")))
    assert (await http.get("/api/v1/namespaces/fresh")).status == 404
    assert (await http.get("/api/v1/configmaps")).body["items"] == []
    assert await held.statuses() == [201, 201]


async def test_whoever_wrote_meanwhile_shares_one_commit(http: Http, held: _Held, gate: Gate) -> None:
    gate.commits.clear()
    for number in range(9):
        await held.ask(http.post(CONFIG_MAPS, config_map(f"m{number}")))
    assert await held.statuses() == [201] * 9
    assert gate.commits == [1, 8]


async def test_a_commit_that_fails_fails_everything_that_was_decided_on_top_of_it(
    http: Http, held: _Held, gate: Gate
) -> None:
    kept = await http.post(CONFIG_MAPS, config_map("kept"))
    gate.refused = "a"
    async with http.watch(CONFIG_MAPS, resourceVersion=kept.revision) as watch:
        await held.ask(http.post(CONFIG_MAPS, config_map("a")))
        await held.ask(http.post(CONFIG_MAPS, config_map("a")))
        await held.ask(http.post(CONFIG_MAPS, config_map("b")))
        await held.ask(http.delete(f"{CONFIG_MAPS}/kept"))
        assert await held.statuses() == [507, 507, 507, 507]
        listed = await http.get(CONFIG_MAPS)
        assert [item["metadata"]["name"] for item in listed.body["items"]] == ["kept"]
        assert listed.revision == kept.revision
        gate.refused = ""
        again = await http.post(CONFIG_MAPS, config_map("a"))
        assert (again.status, int(again.revision) > int(kept.revision)) == (201, True)
        assert await watch.names(1) == [("ADDED", "a")]


async def test_a_write_whose_client_has_left_is_committed_all_the_same(http: Http, gate: Gate) -> None:
    gate.close()
    request = asyncio.create_task(http.post(CONFIG_MAPS, config_map("a")))
    await gate.waiting(1)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    async with http.watch(CONFIG_MAPS) as watch:
        gate.open()
        assert await watch.names(1) == [("ADDED", "a")]
