"""What `kubectl get` prints: columns and cells, made by the server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.wire import Api

covers = pytest.mark.covers

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
OLD_TABLE = {"Accept": "application/json;as=Table;v=v1beta1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PARTIAL_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}

ANYTHING = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}

SPEC: dict[str, Any] = {
    "text": "one",
    "number": 3,
    "share": 0.5,
    "flag": True,
    "moment": "2020-01-01T00:00:00Z",
    "list": ["a", "b"],
    "map": {"b": 1, "a": {"c": None}},
    "steps": [{"name": "first", "done": True}, {"name": "second", "done": False}],
    "a.b": {"c/d": "dotted"},
    "nothing": None,
}

COLUMNS: dict[str, tuple[str, str]] = {
    "text": ("string", ".spec.text"),
    "number-as-text": ("string", ".spec.number"),
    "share-as-text": ("string", ".spec.share"),
    "flag-as-text": ("string", ".spec.flag"),
    "list-as-text": ("string", ".spec.list"),
    "map-as-text": ("string", ".spec.map"),
    "number": ("integer", ".spec.number"),
    "share-as-integer": ("integer", ".spec.share"),
    "whole-as-integer": ("integer", ".spec.whole"),
    "text-as-integer": ("integer", ".spec.text"),
    "share": ("number", ".spec.share"),
    "number-as-number": ("number", ".spec.number"),
    "flag": ("boolean", ".spec.flag"),
    "text-as-flag": ("boolean", ".spec.text"),
    "moment": ("date", ".spec.moment"),
    "text-as-date": ("date", ".spec.text"),
    "missing": ("string", ".spec.missing"),
    "nothing": ("string", ".spec.nothing"),
    "missing-date": ("date", ".spec.missing"),
    "first": ("string", ".spec.steps[0].name"),
    "last": ("string", ".spec.steps[-1].name"),
    "beyond": ("string", ".spec.steps[5].name"),
    "every": ("string", ".spec.steps[*].name"),
    "chosen": ("string", '.spec.steps[?(@.name=="second")].done'),
    "chosen-flag": ("string", ".spec.steps[?(@.done==true)].name"),
    "quoted": ("string", ".spec['a.b']['c/d']"),
    "escaped": ("string", ".spec.a\\.b.c/d"),
    "slice": ("string", ".spec.list[0:1]"),
    "creation": ("date", ".metadata.creationTimestamp"),
    "name": ("string", ".metadata.name"),
}


def _columns(*, names: tuple[str, ...] = tuple(COLUMNS)) -> list[dict[str, Any]]:
    return [{"name": name, "type": COLUMNS[name][0], "jsonPath": COLUMNS[name][1]} for name in names]


async def _widgets(api: Api, *, spec: dict[str, Any] = SPEC, **version: Any) -> str:
    await api.define(api.widgets(schema=ANYTHING, **version))
    path = api.path("widgets", group=api.group)
    await api.silent.post(path, api.widget("a", **spec))
    return path


@covers("tables", "list", "success")
@pytest.mark.parametrize("name", COLUMNS)
async def test_a_column_shows_what_its_path_finds(api: Api, name: str) -> None:
    path = await _widgets(api, spec=SPEC | {"whole": 4.0}, additionalPrinterColumns=_columns(names=(name,)))
    found = await api("GET", path, headers=TABLE, includeObject="None")
    assert len(found.body["rows"][0]["cells"]) == 2


@covers("tables", "list", "success")
async def test_a_column_has_a_format_a_description_and_a_priority(api: Api) -> None:
    columns = _columns(names=("text", "number"))
    columns[0] |= {"format": "byte", "description": "What it says.", "priority": 1}
    columns[1] |= {"format": "int64"}
    path = await _widgets(api, additionalPrinterColumns=columns)
    assert (await api("GET", path, headers=TABLE, includeObject="None")).status == 200


@covers("tables", "list", "success")
@pytest.mark.parametrize("include", ["", "None", "Metadata", "Object"])
async def test_a_row_carries_as_much_of_its_object_as_is_asked_for(api: Api, include: str) -> None:
    path = await _widgets(api, additionalPrinterColumns=_columns(names=("text",)))
    await api("GET", path, headers=TABLE, includeObject=include)
    await api("GET", f"{path}/a", headers=TABLE, includeObject=include)


@covers("tables", "list", "refusal")
async def test_a_row_cannot_carry_something_else(api: Api) -> None:
    path = await _widgets(api)
    assert (await api("GET", path, headers=TABLE, includeObject="Some")).status == 400


@covers("tables", "list", "success")
@pytest.mark.parametrize("columns", [None, []], ids=["none", "empty"])
async def test_without_columns_there_is_an_age(api: Api, columns: list[Any] | None) -> None:
    path = await _widgets(api, additionalPrinterColumns=columns)
    assert len((await api("GET", path, headers=TABLE, includeObject="None")).body["rows"][0]["cells"]) == 2


@covers("tables", "list", "success")
async def test_the_old_version_of_tables_is_served(api: Api) -> None:
    path = await _widgets(api)
    assert (await api("GET", path, headers=OLD_TABLE)).body["apiVersion"] == "meta.k8s.io/v1beta1"


@covers("tables", "list", "success")
async def test_a_table_of_nothing_has_no_rows(api: Api) -> None:
    await api.define(api.widgets(schema=ANYTHING))
    assert (await api("GET", api.path("widgets", group=api.group), headers=TABLE)).body["rows"] == []


@covers("tables", "watch", "success")
async def test_a_watch_tells_its_columns_once(api: Api) -> None:
    path = await _widgets(api)
    async with api.watch(path, headers=TABLE) as watch:
        await watch.next()
        await api.silent.post(path, api.widget("b", **SPEC))
        await watch.next()
        await api.silent.delete(f"{path}/a")
        await watch.next()


@covers("tables", "create", "success")
async def test_writes_are_answered_with_a_table_too(api: Api) -> None:
    await api.define(api.widgets(schema=ANYTHING))
    path = api.path("widgets", group=api.group)
    await api("POST", path, api.widget("a"), headers=TABLE)
    merge = "application/merge-patch+json"
    await api("PATCH", f"{path}/a", {"spec": {"size": 2}}, content_type=merge, headers=TABLE)
    await api("POST", path, api.widget("a"), headers=TABLE)
    await api("DELETE", f"{path}/a", headers=TABLE)
    await api("GET", f"{path}/a", headers=TABLE)


@covers("tables", "get", "success")
async def test_metadata_is_served_alone(api: Api) -> None:
    path = await _widgets(api)
    await api("GET", f"{path}/a", headers=PARTIAL)
    await api("GET", path, headers=PARTIAL_LIST)
    async with api.watch(path, headers=PARTIAL) as watch:
        await watch.next()
    await api("DELETE", path, headers=PARTIAL_LIST)


@covers("tables", "get", "refusal")
@pytest.mark.parametrize("accept", [PARTIAL, PARTIAL_LIST], ids=["one", "many"])
async def test_metadata_of_one_is_not_that_of_many(api: Api, accept: dict[str, str]) -> None:
    path = await _widgets(api)
    await api("GET", path, headers=accept)
    await api("GET", f"{path}/a", headers=accept)


@covers("tables", "get", "refusal")
@pytest.mark.parametrize("version", ["v2", "v1alpha1", ""])
async def test_an_unknown_version_of_a_table_is_refused(api: Api, version: str) -> None:
    path = await _widgets(api)
    await api("GET", path, headers={"Accept": f"application/json;as=Table;v={version};g=meta.k8s.io"})
    await api("GET", path, headers={"Accept": f"application/json;as=Table;v={version};g=meta.k8s.io,application/json"})
