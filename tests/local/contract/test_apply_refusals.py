"""Configurations that cannot be applied, and how that is said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.things import define_things, shortly, thing
from tests.local.contract.wire import Api

covers = pytest.mark.covers

UNTYPED: list[dict[str, Any]] = [
    {"unknown": 1},
    {"colour": 1},
    {"size": "many"},
    {"size": [1]},
    {"ports": [{"name": "x"}]},
    {"ports": [{"port": 1, "colour": 1}]},
    {"ports": ["x"]},
    {"ports": [None]},
    {"ports": {"port": 1}},
    {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
    {"tags": ["x", "x"]},
    {"tags": [{"x": 1}]},
    {"tags": [["x"]]},
    {"tags": [None]},
    {"tags": [1]},
    {"list": "x"},
    {"list": [1]},
    {"selector": ["a"]},
    {"config": {"a": {"b": 1}}},
    {"config": "a"},
    {"share": [1]},
    {"share": {"a": 1}},
    {"free": 1},
]


@covers("apply", "apply", "refusal")
@pytest.mark.parametrize("spec", UNTYPED, ids=shortly)
async def test_a_configuration_must_fit_the_schema(api: Api, spec: dict[str, Any]) -> None:
    path = f"{await define_things(api)}/a"
    refused = await api.apply(path, thing(api, **spec))
    assert refused.status in {422, 500}


@covers("apply", "apply", "refusal")
@pytest.mark.parametrize(
    "change",
    [
        {"data": {"key": 1}},
        {"dat": {"key": "1"}},
        {"apiVersion": "v2"},
        {"apiVersion": ""},
        {"kind": "Secret"},
        {"metadata": {"name": "b"}},
        {"metadata": {"name": "a", "namespace": "kube-system"}},
        {"metadata": {"name": "a", "managedFields": []}},
        {"metadata": {"name": "a", "labels": {"l": 1}}},
        {"metadata": {"name": "a", "unknown": 1}},
        {"metadata": {"name": "a", "uid": "11111111-2222-3333-4444-555555555555"}},
    ],
    ids=shortly,
)
@pytest.mark.parametrize("exists", [False, True], ids=["new", "live"])
async def test_a_configuration_of_a_built_in_kind_is_refused(api: Api, change: dict[str, Any], exists: bool) -> None:
    path = f"{api.path('configmaps')}/a"
    if exists:
        await api.silent.apply(path, config_map("a", other="1"), fieldManager="other")
    refused = await api.apply(path, config_map("a", key="1") | change)
    assert refused.status >= 400


@covers("apply", "apply", "success")
async def test_an_object_that_is_there_has_a_name_already(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    nameless = config_map("a", key="1") | {"metadata": {}}
    refused = await api.apply(path, nameless)
    assert refused.status == 400
    await api.apply(path, config_map("a", other="1"), fieldManager="other")
    applied = await api.apply(path, nameless)
    assert applied.status == 200


@covers("apply", "apply", "conflict")
async def test_a_configuration_may_say_what_it_has_seen(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    seen = config_map("a", key="1")
    seen["metadata"]["resourceVersion"] = "1"
    created = await api.apply(path, seen)
    assert created.status == 201
    refused = await api.apply(path, seen)
    assert refused.status == 409
    seen["metadata"]["resourceVersion"] = created.revision
    again = await api.apply(path, seen)
    assert again.status == 200


@covers("apply", "apply", "refusal")
@pytest.mark.parametrize(
    "body",
    [b"[1]", b"text", b"", b"{", b"a: [", b"null", b"a: \tb: c: d"],
    ids=["list", "text", "nothing", "brace", "bracket", "null", "tab"],
)
async def test_a_configuration_must_be_an_object(api: Api, body: bytes) -> None:
    refused = await api.apply(f"{api.path('configmaps')}/a", body)
    assert refused.status == 400


@covers("apply", "apply", "refusal")
async def test_a_key_must_not_stand_twice_in_a_strict_configuration(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  key: a\n  key: b\n"
    warned = await api.apply(path, text)
    assert warned.status == 201
    refused = await api.apply(path, text, fieldValidation="Strict")
    assert refused.status == 400


@covers("apply", "apply", "refusal")
@pytest.mark.parametrize(
    "query",
    [
        {"fieldManager": ""},
        {"fieldManager": "m" * 129},
        {"fieldManager": "bell\u0007"},
        {"dryRun": "Some"},
        {"fieldValidation": "Never"},
    ],
    ids=shortly,
)
async def test_the_parameters_of_an_apply(api: Api, query: dict[str, str]) -> None:
    refused = await api.apply(f"{api.path('configmaps')}/a", config_map("a"), **query)
    assert refused.status >= 400


@covers("apply", "apply", "conflict")
@pytest.mark.parametrize(
    "force", ["false", "False", "0", "true", "1", "perhaps", ""], ids=["no", "No", "0", "yes", "1", "perhaps", "empty"]
)
async def test_force_is_anything_but_false(api: Api, force: str) -> None:
    path = f"{api.path('configmaps')}/a"
    await api.apply(path, config_map("a", key="1"), fieldManager="other")
    answer = await api.apply(path, config_map("a", key="2"), force=force)
    assert answer.status == (409 if force.lower() in {"false", "0"} else 200)


@covers("apply", "apply", "success")
async def test_a_manager_has_up_to_128_bytes(api: Api) -> None:
    applied = await api.apply(f"{api.path('configmaps')}/a", config_map("a", key="1"), fieldManager="m" * 128)
    assert applied.status == 201


@covers("apply", "patch", "refusal")
@pytest.mark.parametrize("verb", ["merge", "json", "strategic"])
@pytest.mark.parametrize("query", [{"force": "true"}, {"force": "false"}, {"fieldManager": "m" * 129}], ids=shortly)
async def test_only_an_apply_can_be_forced(api: Api, verb: str, query: dict[str, str]) -> None:
    path = f"{api.path('configmaps')}/a"
    await api.silent.apply(path, config_map("a"))
    refused = await getattr(api, verb)(path, [] if verb == "json" else {}, **query)
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")
