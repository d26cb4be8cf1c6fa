"""No space left: writes are refused, everything else goes on, and so do writes once there is space."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kardinal_local.plane import Authority, LocalPlane
from tests.local.plane.baddays.disk import Gate, Space
from tests.local.plane.baddays.processes import found, nursery
from tests.local.plane.wire import CONFIG_MAPS, Answer, Http, config_map, session_for, until
from tests.support.clock import VirtualClock

BIG = "x" * 200_000
modes = pytest.mark.parametrize("durable", [False, True], ids=["normal", "durable"])


def _refused_for_want_of_space(answer: Answer) -> bool:
    return (answer.status, answer.body["reason"], answer.headers["Retry-After"]) == (507, "InsufficientStorage", "1")


@modes
async def test_a_full_disk_refuses_writes_and_nothing_else(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    space = Space(monkeypatch)
    plane = await LocalPlane.start(tmp_path, authority=authority, durable=durable)
    async with session_for(plane.kubeconfig) as session:
        http = Http(session)
        small = await http.post(CONFIG_MAPS, config_map("small"))
        async with http.watch(CONFIG_MAPS, resourceVersion=small.revision) as earlier:
            space.run_out()
            answers = await asyncio.gather(
                *(http.post(CONFIG_MAPS, config_map(f"big{number}", key=BIG)) for number in range(4)),
                http.merge(f"{CONFIG_MAPS}/small", {"data": {"key": BIG}}),
            )
            assert all(_refused_for_want_of_space(answer) for answer in answers), answers
            listed = await http.get(CONFIG_MAPS)
            assert [item["metadata"]["uid"] for item in listed.body["items"]] == [small.body["metadata"]["uid"]]
            assert listed.revision == small.revision
            async with http.watch(CONFIG_MAPS) as later:
                assert await later.names(1) == [("ADDED", "small")]
                space.again()
                assert (await http.post(CONFIG_MAPS, config_map("big", key=BIG))).status == 201
                assert await later.names(1) == [("ADDED", "big")]
            assert await earlier.names(1) == [("ADDED", "big")]
    await plane.stop()
    plane = await LocalPlane.start(tmp_path, authority=authority, durable=durable)
    assert {name for _, name in plane.objects("configmaps")} == {"small", "big"}
    await plane.stop()


@modes
async def test_housekeeping_that_found_no_space_is_done_later(
    tmp_path: Path, clock: VirtualClock, authority: Authority, monkeypatch: pytest.MonkeyPatch, durable: bool
) -> None:
    gate = Gate(monkeypatch)
    plane = await LocalPlane.start(tmp_path, clock=clock, authority=authority, durable=durable)
    async with session_for(plane.kubeconfig) as session:
        http = Http(session)
        owner = await http.post(CONFIG_MAPS, config_map("owner"))
        child = config_map("child")
        child["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.body["metadata"]["uid"]}
        ]
        await http.post(CONFIG_MAPS, child)
        gate.refused = "child"
        assert (await http.delete(f"{CONFIG_MAPS}/owner")).status == 200
        await until(lambda: _busy(plane))
        assert (await http.get(f"{CONFIG_MAPS}/child")).status == 200
        gate.refused = ""
        await clock.advance(1)
        await http.gone(f"{CONFIG_MAPS}/child")
    await plane.stop()


async def _busy(plane: LocalPlane) -> bool:
    await asyncio.sleep(0)
    return not plane.idle


async def test_a_real_disk_that_is_full_is_no_different(tmp_path: Path) -> None:
    (tmp_path / "plane").mkdir(mode=0o700)
    inside = await _on_a_small_disk(tmp_path / "plane")
    async with (
        nursery(inside) as planes,
        planes.plane(tmp_path / "plane", durable=True) as plane,
        session_for(plane.kubeconfig) as session,
    ):
        http = Http(session)
        await http.post(CONFIG_MAPS, config_map("small"))
        await plane.order("fill")
        refused = await http.post(CONFIG_MAPS, config_map("big", key=BIG))
        assert _refused_for_want_of_space(refused), refused
        assert (await http.get(f"{CONFIG_MAPS}/small")).status == 200
        assert (await http.get(f"{CONFIG_MAPS}/big")).status == 404
        await plane.order("free")
        assert (await http.post(CONFIG_MAPS, config_map("big", key=BIG))).status == 201


async def _on_a_small_disk(directory: Path) -> tuple[str, ...]:
    """What runs a program with a file system of 4 MB at `directory`, which nobody else sees."""
    unshare = (found("unshare") or "unshare", "--user", "--map-root-user", "--mount", "--")
    mounted = ("sh", "-c", f'mount -t tmpfs -o size=4m,mode=700 none {directory} && exec "$@"', "sh")
    try:
        trial = await asyncio.create_subprocess_exec(*unshare, *mounted, "true", stderr=asyncio.subprocess.DEVNULL)
    except FileNotFoundError:
        pytest.skip("there is no unshare: no disk of its own was filled")
    if await trial.wait():
        pytest.skip("user namespaces are not allowed: no disk of its own was filled")
    return *unshare, *mounted
