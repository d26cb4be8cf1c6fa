"""JSON patch, merge patch and strategic merge patch, and what is wrong with a patch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map, deployment
from tests.local.contract.things import define_things, shortly, thing
from tests.local.contract.wire import Api

covers = pytest.mark.covers


@covers("patch", "patch", "success")
@pytest.mark.parametrize(
    "operations",
    [
        [
            {"op": "test", "path": "/spec/colour", "value": "red"},
            {"op": "replace", "path": "/spec/colour", "value": "b"},
        ],
        [{"op": "add", "path": "/metadata/labels", "value": {"kardinal.io/x": "1"}}],
        [{"op": "add", "path": "/spec/tags/-", "value": "z"}, {"op": "add", "path": "/spec/tags/0", "value": "w"}],
        [{"op": "add", "path": "/spec/tags/-1", "value": "z"}],
        [{"op": "remove", "path": "/spec/tags/-1"}, {"op": "remove", "path": "/spec/free"}],
        [{"op": "move", "from": "/spec/free/x", "path": "/spec/free/y"}],
        [{"op": "copy", "from": "/spec/config", "path": "/spec/free/config"}],
        [{"op": "copy", "from": "/spec/missing", "path": "/spec/note"}],
        [{"op": "replace", "path": "/spec/note", "value": "new"}],
        [{"op": "add", "path": "/spec/note"}],
        [{"op": "test", "path": "/spec/note", "value": None}],
        [
            {"op": "add", "path": "/spec/config/a~1b", "value": "1"},
            {"op": "add", "path": "/spec/free/a~0b", "value": 1},
        ],
        [],
    ],
    ids=shortly,
)
async def test_a_json_patch_applies_all_its_operations(api: Api, operations: list[Any]) -> None:
    things = await define_things(api)
    await api.silent.post(things, thing(api, colour="red", tags=["x", "y"], config={"a": "1"}, free={"x": {"y": 1}}))
    patched = await api.json(f"{things}/a", operations)
    assert patched.status == 200


@covers("patch", "patch", "refusal")
async def test_a_json_patch_copies_three_mebibytes_at_most(api: Api) -> None:
    path = api.path("configmaps")
    await api.silent.post(path, config_map("a", key="x" * (1024 * 1024 - 1024)))
    again = [{"op": "copy", "from": "/data/key", "path": "/data/b"}, {"op": "remove", "path": "/data/b"}]
    assert (await api.silent.json(f"{path}/a", again * 3)).status == 200
    assert (await api.json(f"{path}/a", again * 4)).status == 422
    await api.silent.post(path, config_map("b", key="1"))
    doubled = [{"op": "copy", "from": "/data", "path": f"/data/{number}"} for number in range(40)]
    assert (await api.json(f"{path}/b", doubled)).status == 422


@covers("patch", "patch", "refusal")
@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "test", "path": "/data/key", "value": "2"}],
        [{"op": "replace", "path": "/data/key", "value": "2"}, {"op": "test", "path": "/data/key", "value": "1"}],
        [{"op": "test", "path": "/data/key/deep", "value": "2"}],
        [{"op": "remove", "path": "/data/missing"}],
        [{"op": "add", "path": "/missing/deep", "value": "1"}],
        [{"op": "add", "path": "/metadata/finalizers/5", "value": "a.io/b"}],
        [{"op": "move", "from": "/data/missing", "path": "/data/x"}],
        [{"op": "copy", "path": "/data/x"}],
        [{"op": "add", "path": "", "value": {}}],
        [{"op": "add", "path": "data", "value": {}}],
        [{"op": "add", "value": 1}],
        [{"op": "dance", "path": "/data/x"}],
        [{"path": "/data/x"}],
        [{"op": "replace", "path": "", "value": 1}],
        [{"op": "replace", "path": "", "value": [1]}],
        [{"op": "replace", "path": "", "value": {}}],
        [{"op": "add", "path": "/metadata/name", "value": "b"}],
        [{"op": "add", "path": "/metadata/namespace", "value": "b"}],
        [{"op": "remove", "path": "/metadata"}],
    ],
    ids=shortly,
)
async def test_a_json_patch_that_does_not_apply_changes_nothing(api: Api, operations: list[Any]) -> None:
    path = api.path("configmaps")
    await api.silent.post(path, config_map("a", key="1"))
    refused = await api.json(f"{path}/a", operations)
    assert refused.status in {400, 422}
    assert (await api.get(f"{path}/a")).body["data"] == {"key": "1"}


@covers("patch", "patch", "refusal")
@pytest.mark.parametrize(
    "body",
    [{"op": "add"}, [1], "add", 1, [{"op": 1, "path": "/a"}], [{"op": "add", "path": ["a"]}], b"[{", b""],
    ids=["object", "numbers", "text", "number", "operation", "path", "half", "nothing"],
)
async def test_a_json_patch_must_be_readable(api: Api, body: Any) -> None:
    path = api.path("configmaps")
    await api.silent.post(path, config_map("a", key="1"))
    refused = await api.json(f"{path}/a", body)
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")


@covers("patch", "patch", "refusal")
async def test_a_json_patch_has_at_most_ten_thousand_operations(api: Api) -> None:
    path = api.path("configmaps")
    await api.silent.post(path, config_map("a", key="1"))
    operations = [{"op": "test", "path": "/data/key", "value": "1"}] * 10_001
    refused = await api.json(f"{path}/a", operations)
    assert (refused.status, refused.body["reason"]) == (413, "RequestEntityTooLarge")
    assert (await api.json(f"{path}/a", operations[1:])).status == 200


@covers("patch", "patch", "success")
@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"colour": None, "config": {"a": None, "b": "2"}}},
        {"spec": {"tags": ["z"], "ports": [{"port": 2}]}},
        {"spec": {"free": {"x": None, "new": {"deep": None, "kept": 1}}}},
        {"spec": {"free": {"l": [{"gone": None}, None, 1]}}},
        {"spec": {"note": None, "size": None}},
        {"spec": None},
        {"metadata": {"labels": {"l": "1"}, "annotations": None, "finalizers": ["kardinal.io/x"]}},
        {"metadata": {"generation": 7, "creationTimestamp": None}},
        {"kind": "Thing"},
        {},
    ],
    ids=shortly,
)
async def test_a_merge_patch(api: Api, patch: dict[str, Any]) -> None:
    things = await define_things(api)
    live = thing(api, colour="red", tags=["x"], config={"a": "1"}, free={"x": {"y": 1}, "l": [1]}, note="n")
    await api.silent.post(things, live)
    patched = await api.merge(f"{things}/a", patch)
    assert patched.status == 200


@covers("patch", "patch", "refusal")
@pytest.mark.parametrize(
    "patch",
    [
        [1],
        "text",
        1,
        None,
        b"{",
        {"metadata": {"name": "b"}},
        {"metadata": {"namespace": "b"}},
        {"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}},
        {"metadata": {"resourceVersion": "1"}},
        {"metadata": None},
    ],
    ids=shortly,
)
@pytest.mark.parametrize("custom", [False, True], ids=["built-in", "custom"])
async def test_a_merge_patch_that_cannot_be_applied(api: Api, patch: Any, custom: bool) -> None:
    collection = await define_things(api) if custom else api.path("configmaps")
    await api.silent.post(collection, thing(api, colour="red") if custom else config_map("a", key="1"))
    refused = await api.merge(f"{collection}/a", patch if patch is not None else b"null")
    assert refused.status >= 400


@covers("patch", "patch", "conflict")
async def test_a_patch_may_say_what_it_has_seen(api: Api) -> None:
    path = api.path("configmaps")
    created = await api.post(path, config_map("a", key="1"))
    seen = {"metadata": {"resourceVersion": created.revision}}
    patched = await api.merge(f"{path}/a", seen | {"data": {"key": "2"}})
    assert patched.status == 200
    refused = await api.merge(f"{path}/a", seen | {"data": {"key": "3"}})
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")


@covers("patch", "patch", "success")
async def test_a_strategic_merge_keeps_what_has_another_name(api: Api) -> None:
    path = api.path("deployments", group="apps")
    created = await api.post(path, deployment("a", paused=True))
    containers = [{"name": "two", "image": "registry.example.com/two:1"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    # Its controller reports meanwhile, so what the patch made is looked at by itself.
    patched = await api.silent.strategic(f"{path}/a", patch)
    assert created.status == 201
    assert [one["name"] for one in patched.body["spec"]["template"]["spec"]["containers"]] == ["two", "one"]


@covers("patch", "patch", "refusal")
@pytest.mark.parametrize(
    ("content_type", "custom"),
    [
        ("application/strategic-merge-patch+json", True),
        ("application/json", True),
        ("text/plain", True),
        ("application/json", False),
        ("text/plain", False),
        ("application/apply-patch+cbor", False),
    ],
)
async def test_a_patch_must_be_of_a_type_that_is_known(api: Api, content_type: str, custom: bool) -> None:
    collection = await define_things(api) if custom else api.path("configmaps")
    await api.silent.post(collection, thing(api) if custom else config_map("a"))
    refused = await api("PATCH", f"{collection}/a", {}, content_type=content_type)
    assert refused.status == 415


@covers("patch", "patch", "refusal")
@pytest.mark.parametrize("verb", ["merge", "json", "strategic"])
async def test_nothing_cannot_be_patched(api: Api, verb: str) -> None:
    path = f"{api.path('configmaps')}/a"
    refused = await getattr(api, verb)(path, [] if verb == "json" else {})
    assert (refused.status, refused.body["reason"]) == (404, "NotFound")


TYPES: dict[str, Any] = {
    "no-version": {"apiVersion": None},
    "empty-version": {"apiVersion": ""},
    "no-kind": {"kind": None},
    "neither": {"apiVersion": None, "kind": None},
    "another-version": {"apiVersion": "other.io/v1"},
    "another-kind": {"kind": "Other"},
    "no-text": {"apiVersion": 3},
}


@covers("patch", "patch", "refusal")
@pytest.mark.parametrize("case", TYPES)
async def test_a_custom_object_does_not_lose_its_type_to_a_patch(api: Api, case: str) -> None:
    things = await define_things(api)
    await api.silent.post(things, thing(api, colour="red"))
    refused = await api.merge(f"{things}/a", TYPES[case])
    assert refused.status in (422, 500), refused.body


@covers("patch", "patch", "refusal")
async def test_a_built_in_object_may_lose_its_kind_to_a_patch_and_not_its_version(api: Api) -> None:
    path = api.path("configmaps", "a")
    await api.silent.post(api.path("configmaps"), config_map("a", key="value"))
    for case in ("no-version", "empty-version", "neither"):
        assert (await api.merge(path, TYPES[case])).status == 400
    assert (await api.merge(path, TYPES["no-kind"])).status == 200
    assert (await api.json(path, [{"op": "remove", "path": "/apiVersion"}])).status == 400


@covers("patch", "patch", "success")
async def test_a_strategic_patch_has_no_say_about_the_type(api: Api) -> None:
    path = api.path("configmaps", "a")
    await api.silent.post(api.path("configmaps"), config_map("a", key="value"))
    for case in ("no-version", "no-kind", "another-version", "another-kind"):
        assert (await api.strategic(path, TYPES[case])).status == 200
    assert (await api.strategic(path, TYPES["no-text"])).status == 422
