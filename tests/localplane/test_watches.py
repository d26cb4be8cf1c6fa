"""Watches: in order, nothing twice, nothing missing, or an honest end."""

from __future__ import annotations

import aiohttp
import pytest

from kardinal.localplane.handlers import watches
from kardinal.localplane.storage import history
from tests.localplane.wire import CONFIG_MAPS, Http, config_map, widget


async def test_a_watch_tells_what_is_there_and_then_what_happens(http: Http) -> None:
    await http.post(CONFIG_MAPS, config_map("a"))
    async with http.watch(CONFIG_MAPS) as watch:
        assert await watch.names(1) == [("ADDED", "a")]
        await http.post(CONFIG_MAPS, config_map("b"))
        await http.merge(f"{CONFIG_MAPS}/a", {"data": {"key": "value"}})
        await http.delete(f"{CONFIG_MAPS}/b")
        assert await watch.names(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_a_watch_resumes_after_a_revision_without_gap_or_repetition(http: Http) -> None:
    for name in ("a", "b"):
        await http.post(CONFIG_MAPS, config_map(name))
    revision = (await http.get(CONFIG_MAPS)).revision
    await http.post(CONFIG_MAPS, config_map("c"))
    await http.delete(f"{CONFIG_MAPS}/a")
    async with http.watch(CONFIG_MAPS, resourceVersion=revision) as watch:
        await http.post(CONFIG_MAPS, config_map("d"))
        assert await watch.names(3) == [("ADDED", "c"), ("DELETED", "a"), ("ADDED", "d")]


async def test_a_deleted_object_is_told_with_its_last_state_and_a_new_revision(http: Http) -> None:
    created = await http.post(CONFIG_MAPS, config_map("a", key="value"))
    async with http.watch(CONFIG_MAPS, resourceVersion=created.revision) as watch:
        await http.delete(f"{CONFIG_MAPS}/a")
        kind, last = await watch.next()
    assert kind == "DELETED"
    assert last["data"] == {"key": "value"}
    assert int(last["metadata"]["resourceVersion"]) > int(created.revision)


async def test_a_watch_from_a_forgotten_revision_is_told_to_begin_again(http: Http) -> None:
    # More than the history keeps.
    for number in range(24):
        await http.post(CONFIG_MAPS, config_map(f"m{number}", key="x" * 1_450_000))
    async with http.watch(CONFIG_MAPS, resourceVersion="1") as watch:
        kind, status = await watch.next()
        assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
        assert status["message"].startswith("too old resource version: 1 (")
        assert await watch.ended()


async def test_a_watch_from_the_future_is_silent(http: Http) -> None:
    async with http.watch(CONFIG_MAPS, resourceVersion="99999999", timeoutSeconds="1") as watch:
        assert await watch.ended()


async def test_initial_events_end_with_a_bookmark(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a"))
    query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    async with http.watch(widgets, **query) as watch:
        assert await watch.names(1) == [("ADDED", "a")]
        kind, bookmark = await watch.next()
        assert kind == "BOOKMARK"
        assert (bookmark["apiVersion"], bookmark["kind"]) == ("example.com/v1", "Widget")
        assert bookmark["metadata"] == {
            "resourceVersion": (await http.get(widgets)).revision,
            "annotations": {"k8s.io/initial-events-end": "true"},
        }


async def test_initial_events_need_their_match(http: Http) -> None:
    refused = await http.get(CONFIG_MAPS, watch="true", sendInitialEvents="true")
    assert refused.status == 422
    assert "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan" in refused.body["message"]
    async with http.watch(
        CONFIG_MAPS, sendInitialEvents="True", resourceVersionMatch="NotOlderThan", resourceVersion="99999999"
    ) as watch:
        kind, status = await watch.next()
        assert (kind, status["code"]) == ("ERROR", 504)


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


async def test_a_selection_is_entered_and_left(http: Http, widgets: str) -> None:
    created = await http.post(widgets, widget("a", labels={"shard": "a"}))
    await http.post(widgets, widget("other", labels={"shard": "b"}))
    async with http.watch(widgets, resourceVersion=created.revision, labelSelector="shard=a") as watch:
        moved = await http.merge(f"{widgets}/a", {"metadata": {"labels": {"shard": "b"}}})
        kind, left = await watch.next()
        assert kind == "DELETED"
        assert left["metadata"]["labels"] == {"shard": "a"}
        assert left["metadata"]["resourceVersion"] == moved.revision
        await http.merge(f"{widgets}/a", {"metadata": {"labels": {"shard": "a"}}})
        assert await watch.names(1) == [("ADDED", "a")]
        await http.merge(f"{widgets}/a", {"spec": {"size": 9}})
        assert await watch.names(1) == [("MODIFIED", "a")]


async def test_a_watch_of_one_name_hears_of_no_other(http: Http) -> None:
    async with http.watch(CONFIG_MAPS, fieldSelector="metadata.name=b") as watch:
        for name in ("a", "b", "c"):
            await http.post(CONFIG_MAPS, config_map(name))
        await http.delete(f"{CONFIG_MAPS}/b")
        assert await watch.names(2) == [("ADDED", "b"), ("DELETED", "b")]


async def test_a_watch_of_one_namespace_hears_of_no_other(http: Http) -> None:
    async with http.watch(CONFIG_MAPS) as here, http.watch("/api/v1/configmaps") as everywhere:
        await http.post("/api/v1/namespaces/kube-system/configmaps", config_map("far"))
        await http.post(CONFIG_MAPS, config_map("near"))
        assert await here.names(1) == [("ADDED", "near")]
        assert await everywhere.names(2) == [("ADDED", "far"), ("ADDED", "near")]


async def test_a_watch_can_be_read_as_a_table(http: Http, widgets: str) -> None:
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    async with http.session.get(widgets, params={"watch": "1"}, headers=accept) as answer:
        await http.post(widgets, widget("a", size=5))
        await http.merge(f"{widgets}/a", {"spec": {"size": 6}})
        first, second = [await answer.content.readline() for _ in range(2)]
    assert b'"columnDefinitions"' in first
    assert b'"cells":["a",5]' in first
    assert b'"cells":["a",6]' in second


async def test_the_end_of_a_definition_ends_its_watches(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a"))
    async with http.watch(widgets) as watch:
        assert await watch.names(1) == [("ADDED", "a")]
        await http.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
        assert await watch.names(1) == [("DELETED", "a")]
        assert await watch.ended()


async def test_a_reader_that_is_too_slow_is_cut_off(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history.Subscription.__init__, "__kwdefaults__", {"limit": 3_000_000})
    async with http.watch(CONFIG_MAPS) as slow:
        # Nothing is read from the watch: the kernel's buffers fill up, then the server's queue.
        for number in range(40):
            await http.post(CONFIG_MAPS, config_map(f"m{number}", key="x" * 800_000))
        with pytest.raises(aiohttp.ClientError):
            await slow.answer.read()
