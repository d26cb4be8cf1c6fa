"""A plane and its directory: what survives, and who may have it."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from pathlib import Path

import aiohttp
import pytest

from kardinal.localplane import Authority, DirectoryInUse, DirectoryUnusable, LocalPlane, PortUnusable, holder
from tests.localplane.wire import CONFIG_MAPS, WIDGETS, Http, config_map, session_for, until, widget, widget_definition

SERVE = """
import asyncio, sys
from pathlib import Path
from kardinal.localplane import LocalPlane

async def serve():
    plane = await LocalPlane.start(Path(sys.argv[1]))
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(serve())
"""


async def test_objects_are_told_with_their_revisions(plane: LocalPlane, http: Http) -> None:
    created = await http.post(CONFIG_MAPS, config_map("a", labels={"x": "y"}))
    await http.post(CONFIG_MAPS, config_map("b"))
    assert plane.objects("configmaps", "default", "x=y") == {("default", "a"): created.revision}
    assert set(plane.objects("configmaps", fields="metadata.name=b")) == {("default", "b")}
    assert plane.objects("unknown.example.com") == {}


async def test_everything_stored_survives_a_restart(tmp_path: Path, authority: Authority) -> None:
    first = await LocalPlane.start(tmp_path, authority=authority)
    async with session_for(first.kubeconfig) as session:
        http = Http(session)
        await http.define(widget_definition())
        created = await http.post(WIDGETS, widget("a", colour="red"))
        last = await http.post(CONFIG_MAPS, config_map("last"))
        await http.delete(f"{CONFIG_MAPS}/last")
    await first.stop()
    second = await LocalPlane.start(tmp_path, authority=authority)
    async with session_for(second.kubeconfig) as session:
        http = Http(session)
        assert (await http.get(f"{WIDGETS}/a")).body == created.body
        # The deletion left no row, and still its revision is not given out twice.
        assert int((await http.post(CONFIG_MAPS, config_map("new"))).revision) > int(last.revision) + 1
        async with http.watch(WIDGETS, resourceVersion=created.revision) as watch:
            assert (await watch.next())[1]["code"] == 410
    await second.stop()


async def test_a_watch_from_the_last_revision_resumes_after_a_restart(tmp_path: Path, authority: Authority) -> None:
    first = await LocalPlane.start(tmp_path, authority=authority)
    async with session_for(first.kubeconfig) as session:
        revision = (await Http(session).get(CONFIG_MAPS)).revision
    await first.stop()
    second = await LocalPlane.start(tmp_path, authority=authority)
    async with (
        session_for(second.kubeconfig) as session,
        Http(session).watch(CONFIG_MAPS, resourceVersion=revision) as watch,
    ):
        await Http(session).post(CONFIG_MAPS, config_map("a"))
        assert await watch.names(1) == [("ADDED", "a")]
    await second.stop()


async def test_work_that_a_dead_process_left_is_taken_up(tmp_path: Path, authority: Authority) -> None:
    first = await LocalPlane.start(tmp_path, authority=authority)
    async with session_for(first.kubeconfig) as session:
        http = Http(session)
        owner = await http.post(CONFIG_MAPS, config_map("owner"))
        child = config_map("child")
        identity = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.body["metadata"]["uid"]}
        child["metadata"]["ownerReferences"] = [identity]
        await http.post(CONFIG_MAPS, child)
    await first.stop()
    with sqlite3.connect(tmp_path / "plane.db") as database:
        database.execute("DELETE FROM objects WHERE name = 'owner'")
    database.close()
    second = await LocalPlane.start(tmp_path, authority=authority)
    async with session_for(second.kubeconfig) as session:
        await Http(session).gone(f"{CONFIG_MAPS}/child")
    await second.stop()


async def test_acknowledged_writes_survive_kill_9(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVE, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    acknowledged: dict[str, str] = {}

    async def write(http: Http, worker: int) -> None:
        number = 0
        while True:
            name = f"m-{worker}-{number}"
            created = await http.post(CONFIG_MAPS, config_map(name, key=name))
            assert created.status == 201
            acknowledged[name] = created.revision
            number += 1

    async with session_for(tmp_path / "kubeconfig") as session:
        http = Http(session)
        workers = [asyncio.create_task(write(http, worker)) for worker in range(4)]

        async def enough() -> bool:
            await asyncio.sleep(0)
            return len(acknowledged) >= 100

        await until(enough)
        process.send_signal(signal.SIGKILL)
        results = await asyncio.gather(*workers, return_exceptions=True)
        assert all(isinstance(result, aiohttp.ClientError) for result in results), results
    await process.wait()

    plane = await LocalPlane.start(tmp_path)
    stored = {name: revision for (_, name), revision in plane.objects("configmaps").items()}
    assert acknowledged.items() <= stored.items()
    assert len(stored) - len(acknowledged) <= len(workers)
    async with session_for(plane.kubeconfig) as session:
        assert all(
            item["data"] == {"key": item["metadata"]["name"]}
            for item in (await Http(session).get(CONFIG_MAPS)).body["items"]
        )
    await plane.stop()


async def test_a_second_plane_is_told_who_serves_the_directory(
    plane: LocalPlane, tmp_path: Path, authority: Authority
) -> None:
    with pytest.raises(DirectoryInUse, match=f"is served by process {os.getpid()} already"):
        await LocalPlane.start(tmp_path / "plane", authority=authority)
    assert holder(tmp_path / "plane") == os.getpid()


async def test_a_directory_that_nobody_serves_has_no_holder(tmp_path: Path, authority: Authority) -> None:
    assert holder(tmp_path / "plane") is None
    plane = await LocalPlane.start(tmp_path / "plane", authority=authority)
    await plane.stop()
    assert holder(tmp_path / "plane") is None


async def test_a_port_that_is_taken_is_an_error_that_leaves_nothing_behind(
    plane: LocalPlane, tmp_path: Path, authority: Authority
) -> None:
    with pytest.raises(PortUnusable, match=f"cannot listen on 127.0.0.1:{plane.port}"):
        await LocalPlane.start(tmp_path / "other", port=plane.port, authority=authority)
    assert holder(tmp_path / "other") is None


async def test_a_file_of_a_newer_version_is_refused(tmp_path: Path, authority: Authority) -> None:
    with sqlite3.connect(tmp_path / "plane.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(DirectoryUnusable, match="written by a newer kardinal"):
        await LocalPlane.start(tmp_path, authority=authority)


async def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, authority: Authority) -> None:
    damaged = b"this is no database" * 1000
    (tmp_path / "plane.db").write_bytes(damaged)
    with pytest.raises(DirectoryUnusable, match=r"plane\.db cannot be read"):
        await LocalPlane.start(tmp_path, authority=authority)
    assert (tmp_path / "plane.db").read_bytes() == damaged


async def test_stopping_ends_watches_cleanly(tmp_path: Path, authority: Authority) -> None:
    plane = await LocalPlane.start(tmp_path, authority=authority)
    async with session_for(plane.kubeconfig) as session, Http(session).watch(CONFIG_MAPS) as watch:
        await plane.stop()
        assert await watch.ended()
