"""Watches: in order, nothing twice, nothing missing, or an honest end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.wire import DEFINITIONS, Api

covers = pytest.mark.covers

FUTURE = "999999999999"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
INITIAL: dict[str, Any] = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
BOOKMARKS: dict[str, Any] = {"allowWatchBookmarks": "true"}


@covers("watch", "watch", "success")
async def test_a_watch_tells_what_is_there_and_then_what_happens(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    async with api.watch(path) as watch:
        assert await watch.names(1) == [("ADDED", "a")]
        await api.post(path, config_map("b"))
        await api.merge(f"{path}/a", {"data": {"key": "value"}})
        await api.delete(f"{path}/b")
        assert await watch.names(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


@covers("watch", "watch", "success")
async def test_a_watch_resumes_after_a_revision_without_gap_or_repetition(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    revision = (await api.post(path, config_map("b"))).revision
    await api.post(path, config_map("c"))
    await api.delete(f"{path}/a")
    async with api.watch(path, resourceVersion=revision) as watch:
        await api.post(path, config_map("d"))
        assert await watch.names(3) == [("ADDED", "c"), ("DELETED", "a"), ("ADDED", "d")]


@covers("watch", "watch", "success")
async def test_a_watch_begins_after_the_list_that_it_follows(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    await api.post(path, api.widget("a"))
    revision = (await api.get(path)).revision
    async with api.watch(path, resourceVersion=revision) as watch:
        await api.post(path, api.widget("b"))
        assert await watch.names(1) == [("ADDED", "b")]


@covers("watch", "watch", "success")
async def test_a_deleted_object_is_told_with_its_last_state_and_a_new_revision(api: Api) -> None:
    path = api.path("configmaps")
    created = await api.post(path, config_map("a", key="value"))
    async with api.watch(path, resourceVersion=created.revision) as watch:
        await api.delete(f"{path}/a")
        kind, last = await watch.next()
    assert kind == "DELETED"
    assert last["data"] == {"key": "value"}
    assert int(last["metadata"]["resourceVersion"]) > int(created.revision)


@covers("watch", "watch", "success")
async def test_an_object_with_a_finalizer_goes_in_stages(api: Api) -> None:
    path = api.path("configmaps")
    held = config_map("a")
    held["metadata"]["finalizers"] = ["example.com/held"]
    created = await api.post(path, held)
    async with api.watch(path, resourceVersion=created.revision) as watch:
        await api.delete(f"{path}/a")
        await api.merge(f"{path}/a", {"metadata": {"finalizers": None}})
        assert await watch.names(2) == [("MODIFIED", "a"), ("DELETED", "a")]


@covers("watch", "watch", "refusal")
async def test_a_watch_from_a_forgotten_revision_is_told_to_begin_again(api: Api) -> None:
    async with api.silent.watch(api.path("configmaps"), resourceVersion="1") as watch:
        assert watch.status == 200
        kind, status = await watch.next()
        assert (kind, status["code"], status["reason"]) == ("ERROR", 410, "Expired")
        assert status["message"].startswith("too old resource version: 1 (")
        assert await watch.ended()


@covers("watch", "watch", "success")
async def test_a_watch_from_the_future_is_silent(api: Api) -> None:
    path = api.path("configmaps")
    async with api.watch(path, resourceVersion=FUTURE, timeoutSeconds=1) as watch:
        await api.silent.post(path, config_map("a"))
        assert await watch.ended()


@covers("watch", "watch", "success")
async def test_a_watch_ends_when_its_time_is_up(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    async with api.watch(path, timeoutSeconds=1) as watch:
        assert await watch.names(1) == [("ADDED", "a")]
        assert await watch.ended()


@covers("watch", "watch", "success")
@pytest.mark.parametrize(
    "query",
    [INITIAL, {**INITIAL, "resourceVersion": "0"}, {**INITIAL, "resourceVersion": "1"}, {"resourceVersion": "0"}, {}],
    ids=["new", "new-0", "new-1", "old-0", "old"],
)
async def test_initial_events_end_with_a_bookmark(api: Api, query: dict[str, Any]) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    created = await api.post(path, api.widget("a"))
    # With revision 0 a server may tell what it remembers, which is "a" once it has heard of it from its store.
    await api.silent.get(path, resourceVersion=created.revision, resourceVersionMatch="NotOlderThan")
    async with api.watch(path, **query, **BOOKMARKS) as watch:
        assert await watch.names(1) == [("ADDED", "a")]
        kind, bookmark = await watch.next()
        assert (kind, bookmark["apiVersion"], bookmark["kind"]) == ("BOOKMARK", f"{api.group}/v1", "Widget")
        assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(bookmark["metadata"]["resourceVersion"]) >= int(created.revision)
        await api.post(path, api.widget("b"))
        assert await watch.names(1) == [("ADDED", "b")]


@covers("watch", "watch", "success")
async def test_who_wants_no_bookmarks_is_told_of_no_end(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    async with api.watch(path, **INITIAL) as watch:
        assert await watch.names(1) == [("ADDED", "a")]
        await api.post(path, config_map("b"))
        assert await watch.names(1) == [("ADDED", "b")]


@covers("watch", "watch", "success")
async def test_a_watch_may_begin_now_without_what_is_there(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    later: dict[str, Any] = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    queries: list[dict[str, Any]] = [{}, {"resourceVersion": "0"}]
    for number, query in enumerate(queries):
        async with api.watch(path, **later, **query) as watch:
            await api.post(path, config_map(f"b{number}"))
            assert await watch.names(1) == [("ADDED", f"b{number}")]


@covers("watch", "watch", "refusal")
async def test_parameters_that_contradict_each_other_are_refused(api: Api) -> None:
    path = api.path("configmaps")
    cases: list[dict[str, str]] = [
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "false"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "Newest", "continue": "x"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "continue": "x"},
        {"resourceVersionMatch": "NotOlderThan"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "1"},
        {"continue": "abc"},
    ]
    for query in cases:
        refused = await api.get(path, watch="true", **query)
        assert (refused.status, refused.body["details"]["kind"]) == (422, "ListOptions"), query


@covers("watch", "watch", "refusal")
async def test_what_cannot_be_read_is_refused_before_the_watch_begins(api: Api) -> None:
    path = api.path("configmaps")
    for query, status in (
        ({"resourceVersion": "abc"}, 500),
        ({"resourceVersion": "-1"}, 500),
        ({"timeoutSeconds": "soon"}, 400),
        ({"labelSelector": "="}, 400),
        ({"fieldSelector": "data.key=x"}, 400),
    ):
        assert (await api.get(path, watch="true", **query)).status == status, query


@covers("watch", "watch", "refusal")
async def test_initial_events_of_the_future_do_not_come(api: Api) -> None:
    path = api.path("configmaps")
    async with api.watch(path, **INITIAL, **BOOKMARKS, resourceVersion=FUTURE, timeoutSeconds=8) as watch:
        kind, status = await watch.next()
        assert (kind, status["code"], status["reason"]) == ("ERROR", 504, "Timeout")
        assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


@covers("watch", "watch", "success")
async def test_a_selection_is_entered_and_left(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    created = await api.post(path, api.widget("a", labels={"shard": "a"}))
    await api.post(path, api.widget("other", labels={"shard": "b"}))
    async with api.watch(path, resourceVersion=created.revision, labelSelector="shard=a") as watch:
        moved = await api.merge(f"{path}/a", {"metadata": {"labels": {"shard": "b"}}})
        kind, left = await watch.next()
        assert kind == "DELETED"
        assert left["metadata"]["labels"] == {"shard": "a"}
        assert left["metadata"]["resourceVersion"] == moved.revision
        await api.merge(f"{path}/a", {"metadata": {"labels": {"shard": "a"}}})
        await api.merge(f"{path}/a", {"spec": {"size": 9}})
        await api.delete(f"{path}/a")
        assert await watch.names(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


@covers("watch", "watch", "success")
async def test_a_watch_of_one_name_hears_of_no_other(api: Api) -> None:
    path = api.path("configmaps")
    revision = (await api.post(path, config_map("before"))).revision
    async with api.watch(path, fieldSelector="metadata.name=b", resourceVersion=revision) as watch:
        for name in ("a", "b", "c"):
            await api.post(path, config_map(name))
        await api.delete(f"{path}/b")
        assert await watch.names(2) == [("ADDED", "b"), ("DELETED", "b")]


@covers("watch", "watch", "success")
async def test_a_watch_of_one_namespace_hears_of_no_other(api: Api) -> None:
    await api.define(api.widgets())
    await api.silent.post("/api/v1/namespaces", {"metadata": {"name": f"{api.namespace}-far"}})
    near = api.path("widgets", group=api.group)
    far = api.path("widgets", group=api.group, namespace=f"{api.namespace}-far")
    everywhere = api.path("widgets", group=api.group, namespace=None)
    async with api.watch(near) as here, api.watch(everywhere) as all_of_them:
        await api.silent.post(far, api.widget("far"))
        await api.silent.post(near, api.widget("near"))
        assert await here.names(1) == [("ADDED", "near")]
        assert await all_of_them.names(2) == [("ADDED", "far"), ("ADDED", "near")]
    await api.silent.delete(f"/api/v1/namespaces/{api.namespace}-far")


@covers("watch", "watch", "success")
async def test_a_write_that_changes_nothing_is_no_event(api: Api) -> None:
    path = api.path("configmaps")
    created = await api.post(path, config_map("a", key="value"))
    async with api.watch(path, resourceVersion=created.revision) as watch:
        await api.merge(f"{path}/a", {"data": {"key": "value"}})
        await api.merge(f"{path}/a", {"data": {"key": "other"}})
        kind, changed = await watch.next()
        assert (kind, changed["data"]) == ("MODIFIED", {"key": "other"})


@covers("watch", "watch", "success")
async def test_a_watch_can_be_read_as_a_table(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    await api.post(path, api.widget("a", size=5))
    async with api.watch(path, headers=TABLE, **INITIAL, **BOOKMARKS) as watch:
        await api.merge(f"{path}/a", {"spec": {"size": 6}})
        tables = [await watch.next() for _ in range(3)]
    assert [kind for kind, _ in tables] == ["ADDED", "BOOKMARK", "MODIFIED"]
    (_, first), (_, bookmark), (_, second) = tables
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Size"]
    assert second["columnDefinitions"] is None
    assert [table["rows"][0]["cells"] for table in (first, second)] == [["a", 5], ["a", 6]]
    assert bookmark["kind"] == "Table"


@covers("watch", "watch", "success")
async def test_a_watch_can_be_read_as_metadata(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    await api.post(path, api.widget("a"))
    async with api.watch(path, headers=METADATA, **INITIAL, **BOOKMARKS) as watch:
        _, first = await watch.next()
        assert set(first) == {"kind", "apiVersion", "metadata"}
        kind, bookmark = await watch.next()
        assert (kind, bookmark["kind"]) == ("BOOKMARK", "PartialObjectMetadata")
        await api.delete(f"{path}/a")
        assert await watch.names(1) == [("DELETED", "a")]


@covers("watch", "watch", "refusal")
async def test_a_watch_cannot_be_read_as_yaml(api: Api) -> None:
    async with api.watch(api.path("configmaps"), headers={"Accept": "application/yaml"}) as watch:
        assert watch.status == 406


@covers("watch", "watch", "success")
async def test_a_change_of_a_definition_ends_the_watches_on_its_kind(api: Api) -> None:
    await api.define(api.widgets())
    path, definition = api.path("widgets", group=api.group), f"{DEFINITIONS}/widgets.{api.group}"
    listed = await api.silent.get(path)
    async with api.watch(path, resourceVersion=listed.revision) as stream:
        # What is said about the definition, and not by it, changes nothing for those who watch.
        await api.silent.merge(definition, {"metadata": {"labels": {"a": "b"}}})
        await api.silent.post(path, api.widget("a", size=1))
        assert await stream.names(1) == [("ADDED", "a")]
        version = api.widgets(additionalPrinterColumns=[])["spec"]["versions"]
        await api.silent.merge(definition, {"spec": {"versions": version}})
        assert await stream.ended()


@covers("watch", "watch", "success")
async def test_the_end_of_a_definition_ends_its_watches(api: Api) -> None:
    definition = api.widgets()
    await api.define(definition)
    path = api.path("widgets", group=api.group)
    created = await api.post(path, api.widget("a"))
    async with api.watch(path, resourceVersion=created.revision) as watch:
        await api.silent.delete(
            f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}"
        )
        assert await watch.names(1) == [("DELETED", "a")]
        assert await watch.ended()


@covers("watch", "watch", "success")
async def test_many_watchers_hear_the_same_in_the_same_order(api: Api) -> None:
    path = api.path("configmaps")
    revision = (await api.silent.post(path, config_map("first"))).revision
    watches = [api.silent.watch(path, resourceVersion=revision) for _ in range(10)]
    opened = [await watch.__aenter__() for watch in watches]
    for number in range(10):
        await api.silent.post(path, config_map(f"m{number}"))
    heard = await asyncio.gather(*(watch.names(10) for watch in opened))
    assert all(one == [("ADDED", f"m{number}") for number in range(10)] for one in heard)
    for watch in watches:
        await watch.__aexit__()
