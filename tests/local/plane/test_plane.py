"""A plane and its directory: what survives, and who may have it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from kardinal_local.plane import Authority, DirectoryInUse, LocalPlane, PortUnusable, holder
from tests.local.plane.wire import CONFIG_MAPS, WIDGETS, Http, config_map, session_for, widget, widget_definition


async def test_objects_are_told_with_their_revisions(plane: LocalPlane, http: Http) -> None:
    created = await http.post(CONFIG_MAPS, config_map("a", labels={"x": "y"}))
    await http.post(CONFIG_MAPS, config_map("b"))
    assert plane.objects("configmaps", "default", "x=y") == {("default", "a"): created.revision}
    assert set(plane.objects("configmaps", fields="metadata.name=b")) == {("default", "b")}
    assert plane.objects("unknown.example.com") == {}


async def test_what_a_plane_starts_with_is_there_before_the_first_answer(plane: LocalPlane, http: Http) -> None:
    accounts = await http.get("/api/v1/serviceaccounts")
    namespaces = await http.get("/api/v1/namespaces")
    assert {one["metadata"]["namespace"] for one in accounts.body["items"]} == {
        one["metadata"]["name"] for one in namespaces.body["items"]
    }
    # Nothing is added by and by: watches begin after all of it, as those of a real server do.
    revision = str(max(int(revision) for revision in plane.objects("serviceaccounts").values()))
    assert {accounts.revision, namespaces.revision} == {revision}
    async with http.watch("/api/v1/namespaces", resourceVersion=str(int(revision) - 1)) as watch:
        assert (await watch.next())[1]["code"] == 410


async def test_what_was_deleted_of_it_comes_back_at_the_next_start(tmp_path: Path, authority: Authority) -> None:
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/view"
    first = await LocalPlane.start(tmp_path, authority=authority)
    async with session_for(first.kubeconfig) as session:
        before = (await Http(session).get(role)).body
        await Http(session).delete(role)
    await first.stop()
    second = await LocalPlane.start(tmp_path, authority=authority)
    async with session_for(second.kubeconfig) as session:
        after = (await Http(session).get(role)).body
    await second.stop()
    assert after["rules"] == before["rules"]
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def test_a_start_on_the_same_port_leaves_the_kubeconfigs_alone(tmp_path: Path, authority: Authority) -> None:
    written = []
    port = 0
    for _ in range(2):
        plane = await LocalPlane.start(tmp_path, port=port, authority=authority)
        port = plane.port
        written.append(plane.kubeconfig_for("agent").stat().st_ino)
        await plane.stop()
    assert written[0] == written[1]


async def test_a_held_plane_is_not_ready_and_has_no_kubeconfig_until_it_is_released(
    tmp_path: Path, authority: Authority
) -> None:
    earlier = await LocalPlane.start(tmp_path, authority=authority)
    await earlier.stop()
    assert earlier.kubeconfig.exists()
    plane = await LocalPlane.start(tmp_path, authority=authority, hold=True)
    assert not plane.kubeconfig.exists()
    async with session_for(plane.kubeconfig_for("installer")) as session:
        http = Http(session)
        for name in ("readyz", "healthz"):
            held = await http.get(f"/{name}")
            assert (held.status, held.body) == (
                500,
                f"[+]ping ok\n[-]hold failed: reason withheld\n{name} check failed\n".encode(),
            )
        assert (await http.get("/livez")).status == 200
        assert (await http.post(CONFIG_MAPS, config_map("meanwhile"))).status == 201
        assert not plane.kubeconfig.exists()
        await plane.release()
        assert (await http.get("/readyz")).body == b"ok"
    assert plane.kubeconfig.stat().st_mode & 0o777 == 0o600
    async with session_for(plane.kubeconfig) as session:
        assert (await Http(session).get(f"{CONFIG_MAPS}/meanwhile")).status == 200
    await plane.stop()


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


async def test_stopping_ends_watches_cleanly(tmp_path: Path, authority: Authority) -> None:
    plane = await LocalPlane.start(tmp_path, authority=authority)
    async with session_for(plane.kubeconfig) as session, Http(session).watch(CONFIG_MAPS) as watch:
        await plane.stop()
        assert await watch.ended()
