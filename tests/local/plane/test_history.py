"""The recent past: bounded by bytes, and honest about what it has forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal_local.plane import Authority, LocalPlane
from kardinal_local.plane.storage import history
from tests.local.plane.wire import CONFIG_MAPS, Http, config_map, session_for

LIMIT = 100_000


@pytest.fixture
def short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history.History.__init__, "__kwdefaults__", {"limit": LIMIT})


@pytest.mark.usefixtures("short_memory")
async def test_what_is_too_far_back_in_bytes_has_expired(tmp_path: Path, authority: Authority) -> None:
    plane = await LocalPlane.start(tmp_path, authority=authority)
    async with session_for(plane.kubeconfig) as session:
        http = Http(session)
        first = await http.post(CONFIG_MAPS, config_map("first"))
        for number in range(10):
            created = await http.post(CONFIG_MAPS, config_map(f"m{number}", key="x" * (LIMIT // 5)))
        last = await http.post(CONFIG_MAPS, config_map("last"))
        async with http.watch(CONFIG_MAPS, resourceVersion=first.revision) as watch:
            kind, status = await watch.next()
            assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
        async with http.watch(CONFIG_MAPS, resourceVersion=created.revision) as watch:
            assert await watch.names(1) == [("ADDED", "last")]
        # Both states of a change are remembered, and both count.
        await http.merge(f"{CONFIG_MAPS}/m9", {"data": {"key": "y" * LIMIT}})
        async with http.watch(CONFIG_MAPS, resourceVersion=last.revision) as watch:
            assert await watch.names(1) == [("MODIFIED", "m9")]
        await http.post(CONFIG_MAPS, config_map("more"))
        async with http.watch(CONFIG_MAPS, resourceVersion=last.revision) as watch:
            assert (await watch.next())[1]["code"] == 410
    await plane.stop()
