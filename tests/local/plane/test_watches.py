"""Watches: in order, nothing twice, nothing missing, or an honest end."""

from __future__ import annotations

import aiohttp
import pytest

from kardinal_local.plane.handlers import watches
from kardinal_local.plane.storage import history
from tests.local.plane.wire import CONFIG_MAPS, Http, config_map


async def test_a_watch_from_a_forgotten_revision_is_told_to_begin_again(http: Http) -> None:
    # More than the history keeps.
    for number in range(24):
        await http.post(CONFIG_MAPS, config_map(f"m{number}", key="x" * 1_450_000))
    async with http.watch(CONFIG_MAPS, resourceVersion="1") as watch:
        kind, status = await watch.next()
        assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
        assert status["message"].startswith("too old resource version: 1 (")
        assert await watch.ended()


async def test_an_idle_watch_is_kept_up_to_date_by_bookmarks(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "BOOKMARK_SECONDS", 0.01)
    revision = (await http.get(CONFIG_MAPS)).revision
    async with http.watch(CONFIG_MAPS, resourceVersion=revision, allowWatchBookmarks="true") as watch:
        elsewhere = await http.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}})
        while True:
            kind, bookmark = await watch.next()
            assert kind == "BOOKMARK"
            assert set(bookmark) == {"apiVersion", "kind", "metadata"}
            if bookmark["metadata"]["resourceVersion"] == elsewhere.revision:
                break


async def test_who_did_not_ask_for_bookmarks_gets_none(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watches, "BOOKMARK_SECONDS", 0.001)
    revision = (await http.get(CONFIG_MAPS)).revision
    async with http.watch(CONFIG_MAPS, resourceVersion=revision, timeoutSeconds="1") as watch:
        assert await watch.ended()


async def test_a_reader_that_is_too_slow_is_cut_off(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history.Subscription.__init__, "__kwdefaults__", {"limit": 3_000_000})
    async with http.watch(CONFIG_MAPS) as slow:
        # Nothing is read from the watch: the kernel's buffers fill up, then the server's queue.
        for number in range(40):
            await http.post(CONFIG_MAPS, config_map(f"m{number}", key="x" * 800_000))
        with pytest.raises(aiohttp.ClientError):
            await slow.answer.read()
