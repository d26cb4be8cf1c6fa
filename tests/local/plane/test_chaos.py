"""Injected faults of the plane: which clients meet them, and that one seed injects the same faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import orjson
import pytest

from kardinal_local.plane import Authority, LocalPlane
from tests.local.plane.wire import CONFIG_MAPS, Http, config_map, session_for

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"
SEED = 7


@pytest.fixture
async def stormy(tmp_path: Path, authority: Authority) -> AsyncIterator[LocalPlane]:
    plane = await LocalPlane.start(tmp_path / "stormy", authority=authority, chaos=SEED)
    yield plane
    await plane.stop()


async def token(plane: LocalPlane) -> str:
    """The credentials of a program that may read and write config maps."""
    async with session_for(plane.kubeconfig) as session:
        admin = Http(session)
        await admin.post(CONFIG_MAPS, config_map("a"))
        await admin.post(ACCOUNT, {"metadata": {"name": "program"}})
        subject = {"kind": "ServiceAccount", "name": "program", "namespace": "default"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
        binding = {"metadata": {"name": "program"}, "roleRef": role, "subjects": [subject]}
        await admin.post("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding)
        issued = await admin.post(f"{ACCOUNT}/program/token", {"spec": {}})
    return str(issued.body["status"]["token"])


async def outcomes(plane: LocalPlane) -> list[str]:
    """What a program is answered that writes one object again and again."""
    heard = []
    async with session_for(plane.kubeconfig, token=await token(plane)) as session:
        for number in range(200):
            try:
                answer = await Http(session).merge(f"{CONFIG_MAPS}/a", {"data": {"n": str(number)}})
            except aiohttp.ClientError:
                heard.append("lost")
            else:
                heard.append(str(answer.status))
                assert answer.headers.get("Retry-After", "1") == "1"
    return heard


async def test_a_program_meets_conflicts_refusals_and_lost_connections(stormy: LocalPlane) -> None:
    heard = Counter(await outcomes(stormy))
    assert heard["200"] > heard["409"] > 0
    assert heard["429"] > 0
    assert heard["lost"] > 0
    assert set(heard) == {"200", "409", "429", "lost"}


async def test_same_seed_injects_same_faults(stormy: LocalPlane, tmp_path: Path, authority: Authority) -> None:
    again = await LocalPlane.start(tmp_path / "again", authority=authority, chaos=SEED)
    other = await LocalPlane.start(tmp_path / "other", authority=authority, chaos=SEED + 1)
    first = await outcomes(stormy)
    assert await outcomes(again) == first
    assert await outcomes(other) != first
    await again.stop()
    await other.stop()


async def test_who_administers_the_plane_is_spared(stormy: LocalPlane) -> None:
    async with session_for(stormy.kubeconfig) as session:
        admin = Http(session)
        for number in range(100):
            assert (await admin.post(CONFIG_MAPS, config_map(f"m{number}"))).status == 201


async def test_watches_break_off_and_expire(stormy: LocalPlane) -> None:
    ends: Counter[str] = Counter()
    async with session_for(stormy.kubeconfig, token=await token(stormy)) as session:
        for _ in range(60):
            async with session_for(stormy.kubeconfig) as admin:
                revision = (await Http(admin).get(CONFIG_MAPS)).revision
                await Http(admin).merge(f"{CONFIG_MAPS}/a", {"data": {"revision": revision}})
            try:
                async with session.get(CONFIG_MAPS, params={"watch": "1", "resourceVersion": revision}) as answer:
                    event = orjson.loads(await answer.content.readline())
            except aiohttp.ClientError:
                ends["LOST"] += 1
            else:
                ends[event["type"]] += 1
                assert event["type"] == "MODIFIED" or event["object"]["code"] == 410
    assert ends["MODIFIED"] > ends["ERROR"] > 0
