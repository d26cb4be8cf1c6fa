"""Lists: whole and in pieces, now and at a revision."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.wire import Answer, Api

covers = pytest.mark.covers

FUTURE = "999999999999"
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def names(answer: Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


async def fill(api: Api, *, count: int = 5) -> str:
    """Some config maps, and where they are."""
    path = api.path("configmaps")
    for number in range(count):
        parity = "even" if number % 2 == 0 else "odd"
        created = await api.silent.post(path, config_map(f"m{number}", labels={"parity": parity}))
        assert created.status == 201
    return path


def token(text: str) -> str:
    """A continue token as nobody gave it out."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@covers("lists", "list", "success")
async def test_items_come_in_the_order_of_their_names(api: Api) -> None:
    path = api.path("configmaps")
    for name in ("b", "c", "a", "a-b", "a.b"):
        await api.silent.post(path, config_map(name))
    assert names(await api.get(path)) == ["a", "a-b", "a.b", "b", "c"]


@covers("lists", "list", "success")
async def test_namespaces_follow_one_another_in_the_order_of_their_keys(api: Api) -> None:
    await api.define(api.widgets())
    for suffix in ("", "-b"):
        namespace = f"{api.namespace}{suffix}"
        await api.silent.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        await api.silent.post(api.path("widgets", group=api.group, namespace=namespace), api.widget("x"))
    everywhere = await api.silent.get(api.path("widgets", group=api.group, namespace=None))
    found = [item["metadata"]["namespace"] for item in everywhere.body["items"]]
    # A hyphen stands before the slash that ends a namespace in a key.
    assert found == [f"{api.namespace}-b", api.namespace]
    await api.silent.delete(f"/api/v1/namespaces/{api.namespace}-b")


@covers("lists", "list", "success")
async def test_only_items_of_custom_kinds_say_their_kind(api: Api) -> None:
    await api.define(api.widgets())
    widgets = api.path("widgets", group=api.group)
    path = await fill(api, count=1)
    await api.post(widgets, api.widget("a"))
    assert set((await api.get(path)).body["items"][0]) == {"metadata"}
    found = await api.get(widgets)
    assert set(found.body["items"][0]) == {"apiVersion", "kind", "metadata", "spec"}
    assert found.body["metadata"]["continue"] == ""


@covers("lists", "list", "success")
async def test_metadata_alone_can_be_listed(api: Api) -> None:
    await api.define(api.widgets())
    widgets = api.path("widgets", group=api.group)
    await api.post(widgets, api.widget("a"))
    for path in (widgets, await fill(api, count=2)):
        found = await api("GET", path, headers={"Accept": METADATA})
        assert found.body["kind"] == "PartialObjectMetadataList"
        assert set(found.body["items"][0]) == {"kind", "apiVersion", "metadata"}


@covers("lists", "list", "success")
async def test_a_list_in_pieces_is_the_list_of_one_moment(api: Api) -> None:
    path = await fill(api)
    first = await api.get(path, limit=2)
    assert first.body["metadata"]["remainingItemCount"] == 3
    await api.delete(f"{path}/m3")
    await api.post(path, config_map("m9"))
    await api.merge(f"{path}/m4", {"data": {"changed": "after"}})
    second = await api.get(path, limit=2, **{"continue": first.body["metadata"]["continue"]})
    third = await api.get(path, limit=2, **{"continue": second.body["metadata"]["continue"]})
    assert names(first) + names(second) + names(third) == ["m0", "m1", "m2", "m3", "m4"]
    assert "data" not in third.body["items"][0]
    assert first.revision == second.revision == third.revision
    assert "continue" not in third.body["metadata"]


@covers("lists", "list", "success")
async def test_the_rest_may_be_had_at_once_and_by_another_selector(api: Api) -> None:
    path = await fill(api)
    rest = {"continue": (await api.get(path, limit=1)).body["metadata"]["continue"]}
    assert names(await api.get(path, **rest)) == ["m1", "m2", "m3", "m4"]
    assert names(await api.get(path, labelSelector="parity=even", limit=1, **rest)) == ["m2"]
    assert names(await api.get(path, resourceVersion="0", limit=1, **rest)) == ["m1", "m2", "m3", "m4"]


@covers("lists", "list", "success")
async def test_what_is_left_is_only_counted_where_everything_is_asked_for(api: Api) -> None:
    path = await fill(api)
    chosen = await api.get(path, limit=2, labelSelector="parity=even")
    assert names(chosen) == ["m0", "m2"]
    assert "remainingItemCount" not in chosen.body["metadata"]
    last = await api.get(path, limit=3, labelSelector="parity=even")
    assert "continue" not in last.body["metadata"]
    # Whether those that are left match is not known before they are looked at.
    odd = await api.get(path, limit=2, labelSelector="parity=odd")
    empty = await api.get(path, limit=2, labelSelector="parity=odd", **{"continue": odd.body["metadata"]["continue"]})
    assert names(empty) == []


@covers("lists", "list", "success")
async def test_one_name_is_one_piece(api: Api) -> None:
    path = await fill(api)
    found = await api.get(path, limit=1, fieldSelector="metadata.name=m1")
    assert names(found) == ["m1"]
    assert "continue" not in found.body["metadata"]


@covers("lists", "list", "success")
async def test_pieces_go_on_across_namespaces(api: Api) -> None:
    await api.define(api.widgets())
    everywhere = api.path("widgets", group=api.group, namespace=None)
    for name in ("a", "b", "c"):
        await api.post(api.path("widgets", group=api.group), api.widget(name))
    first = await api.get(everywhere, limit=2)
    second = await api.get(everywhere, limit=2, **{"continue": first.body["metadata"]["continue"]})
    assert (names(first), names(second)) == (["a", "b"], ["c"])


@covers("lists", "list", "success")
@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersion": ""},
        {"resourceVersion": "0"},
        {"resourceVersion": "0", "limit": 1},
        {"resourceVersion": "0", "resourceVersionMatch": "NotOlderThan"},
        {"resourceVersion": "1"},
        {"resourceVersion": "1", "resourceVersionMatch": "NotOlderThan", "limit": 4},
        {"limit": 0},
        {"limit": -1},
        {"limit": 3},
        {"limit": 100},
    ],
    ids=lambda query: "-".join(f"{key}={value}" for key, value in query.items()),
)
async def test_a_revision_is_a_lower_bound(api: Api, query: dict[str, Any]) -> None:
    path = await fill(api, count=3)
    found = await api.get(path, **query)
    assert names(found) == ["m0", "m1", "m2"]


@covers("lists", "list", "success")
async def test_an_exact_revision_is_the_state_of_then(api: Api) -> None:
    path = await fill(api, count=3)
    then = (await api.get(path)).revision
    await api.delete(f"{path}/m1")
    await api.post(path, config_map("m3"))
    await api.merge(f"{path}/m2", {"metadata": {"labels": {"parity": "odd"}}})
    exact = {"resourceVersion": then, "resourceVersionMatch": "Exact"}
    past = await api.silent.get(path, **exact)
    assert names(past) == ["m0", "m1", "m2"]
    assert past.revision == then
    assert names(await api.silent.get(path, labelSelector="parity=even", **exact)) == ["m0", "m2"]
    assert names(await api.silent.get(path, resourceVersion=then, limit=2)) == ["m0", "m1"]
    newer = {"resourceVersion": then, "resourceVersionMatch": "NotOlderThan"}
    assert names(await api.silent.get(path, **newer)) == ["m0", "m2", "m3"]


@covers("lists", "list", "refusal")
async def test_a_revision_that_does_not_come_times_out(api: Api) -> None:
    path = await fill(api, count=1)
    exact = {"resourceVersionMatch": "Exact"}
    late, piece, one, strict = await asyncio.gather(
        api.get(path, resourceVersion=FUTURE),
        api.silent.get(path, resourceVersion=FUTURE, limit=1),
        api.silent.get(f"{path}/m0", resourceVersion=FUTURE),
        api.silent.get(path, resourceVersion=FUTURE, **exact),
    )
    for answer in (late, piece, one, strict):
        assert (answer.status, answer.body["reason"]) == (504, "Timeout")
        assert answer.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
        assert answer.headers["Retry-After"] == "1"


@covers("lists", "list", "refusal")
@pytest.mark.parametrize("revision", ["abc", "-1", "1.5", "9" * 30, "0x1"])
async def test_a_revision_that_is_none_is_refused(api: Api, revision: str) -> None:
    refused = await api.get(api.path("configmaps"), resourceVersion=revision)
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")
    one = await api.get(api.path("configmaps", "kube-root-ca.crt"), resourceVersion=revision)
    assert (one.status, "reason" in one.body) == (500, False)


@covers("lists", "list", "refusal")
async def test_parameters_that_contradict_each_other_are_refused(api: Api) -> None:
    path = api.path("configmaps")
    cases: list[dict[str, str]] = [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "NotOlderThan"},
        {"resourceVersionMatch": "Newest"},
        {"resourceVersionMatch": "Newest", "resourceVersion": "1"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "5", "continue": "abc"},
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "false"},
        {"sendInitialEvents": "maybe", "resourceVersion": "1", "resourceVersionMatch": "NotOlderThan"},
    ]
    for query in cases:
        refused = await api.get(path, **query)
        assert (refused.status, refused.body["details"]["kind"]) == (422, "ListOptions"), query
    await api.define(api.widgets())
    custom = await api.get(api.path("widgets", group=api.group), sendInitialEvents="true")
    assert custom.status == 422


@covers("lists", "list", "refusal")
async def test_a_number_that_is_none_is_refused(api: Api) -> None:
    path = api.path("configmaps")
    for query in ({"limit": "abc"}, {"limit": "1.5"}, {"limit": ""}, {"limit": "9" * 20}, {"timeoutSeconds": "soon"}):
        refused = await api.get(path, **query)
        assert (refused.status, refused.body["reason"]) == (400, "BadRequest"), query


@covers("lists", "list", "success")
async def test_parameters_that_mean_nothing_here_are_overlooked(api: Api) -> None:
    path = await fill(api, count=1)
    for query in ({"watch": "false"}, {"watch": "0"}, {"allowWatchBookmarks": "maybe"}, {"colour": "red"}):
        assert names(await api.get(path, **query)) == ["m0"]


@covers("lists", "list", "refusal")
async def test_a_continue_token_that_nobody_gave_is_refused(api: Api) -> None:
    path = await fill(api, count=1)
    tokens = [
        "abc",
        "ä",
        token("{"),
        token("{}"),
        token("[]"),
        token("null"),
        token('{"v":"meta.k8s.io/v2","rv":1,"start":"a"}'),
        token('{"v":"meta.k8s.io/v1","rv":0,"start":"a"}'),
        token('{"v":"meta.k8s.io/v1","rv":"a","start":"a"}'),
        token('{"v":"meta.k8s.io/v1","rv":5,"start":""}'),
        token('{"v":"meta.k8s.io/v1","rv":5,"start":"../secrets"}'),
        token('{"v":"meta.k8s.io/v1","rv":5,"start":"//a"}'),
    ]
    for forged in tokens:
        refused = await api.get(path, **{"continue": forged})
        assert (refused.status, refused.body["reason"]) == (400, "BadRequest"), forged
        assert refused.message.startswith("invalid continue token: continue key is not valid"), forged


@covers("lists", "list", "refusal")
async def test_a_list_of_a_forgotten_moment_goes_on_as_it_is_now(
    api: Api, forget: Callable[[], Awaitable[None]]
) -> None:
    path = await fill(api)
    before = await api.silent.get(path, limit=2)
    rest = {"limit": 2, "continue": before.body["metadata"]["continue"]}
    await api.silent.delete(f"{path}/m3")
    await forget()

    async def forgotten() -> bool:
        return (await api.silent.get(path, **rest)).status == 410

    await api.until(forgotten)
    expired = await api.get(path, **rest)
    assert (expired.status, expired.body["reason"]) == (410, "Expired")
    # The answer has a token that gives the rest as it is now, and says so.
    again = await api.get(path, limit=2, **{"continue": expired.body["metadata"]["continue"]})
    assert names(again) == ["m2", "m4"]
    exact = {"resourceVersion": before.revision, "resourceVersionMatch": "Exact"}
    for query in (exact, {"resourceVersion": before.revision, "limit": 2}):
        gone = await api.get(path, **query)
        assert (gone.status, gone.body["reason"]) == (410, "Expired")
    assert (await api.silent.get(path, resourceVersion=before.revision)).status == 200


@covers("lists", "list", "refusal")
async def test_a_list_that_goes_on_has_its_revision_already(api: Api) -> None:
    path = await fill(api, count=2)
    rest = {"continue": (await api.silent.get(path, limit=1)).body["metadata"]["continue"]}
    refused = await api.silent.get(path, resourceVersion="5", **rest)
    assert refused.status == 400
    assert refused.message == "specifying resource version is not allowed when using continue"


@covers("lists", "list", "success")
async def test_the_rest_as_it_is_now_may_be_asked_for(api: Api) -> None:
    path = await fill(api, count=3)
    now = token('{"v":"meta.k8s.io/v1","rv":-1,"start":"m1"}')
    await api.silent.delete(f"{path}/m2")
    assert names(await api.get(path, **{"continue": now})) == ["m1"]


@covers("lists", "get", "success")
async def test_one_object_is_read_at_least_as_new_as_asked(api: Api) -> None:
    path = await fill(api, count=1)
    revision = (await api.get(f"{path}/m0")).revision
    for wanted in ("", "0", revision):
        assert (await api.silent.get(f"{path}/m0", resourceVersion=wanted)).revision == revision
    missing = await api.get(f"{path}/none", resourceVersion="0")
    assert missing.status == 404


@covers("lists", "list", "success")
async def test_a_namespace_that_is_not_there_has_no_objects(api: Api) -> None:
    assert names(await api.get(api.path("configmaps", namespace="no-such-namespace"))) == []


@covers("lists", "list", "success")
async def test_a_list_of_megabytes_arrives_whole_and_compressed(api: Api) -> None:
    path = api.path("configmaps")
    for number in range(6):
        await api.silent.post(path, config_map(f"m{number}", key=str(number) * 500_000))
    for encoding in ("gzip", "identity"):
        found = await api.silent("GET", path, headers={"Accept-Encoding": encoding})
        assert [len(item["data"]["key"]) for item in found.body["items"]] == [500_000] * 6
        assert found.headers.get("Content-Encoding", "identity") == encoding
