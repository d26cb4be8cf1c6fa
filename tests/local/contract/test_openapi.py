"""The OpenAPI documents that kubectl explains, completes and validates with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.wire import Api

covers = pytest.mark.covers

PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


async def _address(api: Api) -> str:
    """Where the document of this test's group is."""
    found = await api.silent.get("/openapi/v3")
    return str(found.body["paths"].get(f"apis/{api.group}/v1", {}).get("serverRelativeURL", ""))


async def _defined(api: Api, **version: Any) -> str:
    await api.define(api.widgets(**version))
    await api.until(lambda: _address(api))
    return await _address(api)


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    """What kubectl reads of an operation; identifiers and descriptions are for programs that generate programs."""
    kept = {key: operation[key] for key in operation if key.startswith("x-kubernetes-")}
    return kept | {
        "parameters": [one["name"] for one in operation.get("parameters", ())],
        "bodies": sorted(operation.get("requestBody", {}).get("content", {})),
    }


def _bare(schema: Any) -> Any:
    """A schema without what it says to people, and with the name of this run's group left out of references."""
    if isinstance(schema, list):
        return [_bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: schema[key].rpartition(".")[2] if key == "$ref" else _bare(schema[key])
        for key in schema
        if key != "description"
    }


@covers("openapi", "discover", "success")
async def test_a_document_is_addressed_by_its_content(api: Api) -> None:
    address = await _defined(api)
    path, _, digest = address.partition("?hash=")
    assert path == f"/openapi/v3/apis/{api.group}/v1"
    assert len(digest) == 128
    found = await api.silent.get(address)
    assert found.status == 200
    api.note("type and caching", [found.headers["Content-Type"], found.headers["Cache-Control"]])
    assert found.headers["ETag"] == f'"{digest}"'
    again = await api.silent("GET", path, headers={"If-None-Match": found.headers["ETag"]})
    assert again.status == 304
    plain = await api.silent.get(path)
    assert (plain.status, plain.headers["ETag"]) == (200, found.headers["ETag"])
    api.note("caching without a digest", plain.headers.getall("Cache-Control", []))


@covers("openapi", "discover", "success")
async def test_an_old_address_leads_to_the_new_one(api: Api) -> None:
    address = await _defined(api)
    path = address.partition("?")[0]
    old = await api.silent.get(f"{path}?hash=0123456789ABCDEF")
    assert (old.status, old.headers["Location"]) == (301, address)


@covers("openapi", "discover", "refusal")
async def test_there_is_no_document_of_what_is_not_served(api: Api) -> None:
    assert (await api.get("/openapi/v3/apis/no.where/v1")).status == 404
    assert (await api.get("/openapi/v3/apis/apps/v9")).status == 404


@covers("openapi", "discover", "success")
async def test_the_paths_of_a_custom_kind_are_described(api: Api) -> None:
    address = await _defined(api)
    document = (await api.silent.get(address)).body
    for path, item in sorted(document["paths"].items()):
        api.note(f"shared by the operations at {path}", [one["name"] for one in item.get("parameters", ())])
        for method, operation in sorted(item.items()):
            if method != "parameters":
                api.note(f"{method} {path}", _operation(operation))


@covers("openapi", "discover", "success")
async def test_the_schema_of_a_custom_kind_is_described(api: Api) -> None:
    address = await _defined(api)
    schemas = (await api.silent.get(address)).body["components"]["schemas"]
    for name, schema in sorted(schemas.items()):
        if name.endswith((".Widget", ".WidgetList")):
            api.note(name.rpartition(".")[2], _bare(schema))


@covers("openapi", "discover", "success")
@pytest.mark.differs("descriptions")
async def test_the_fields_of_built_in_kinds_have_types_and_hardly_a_word(api: Api) -> None:
    document = await api.silent.get("/openapi/v3/apis/apps/v1")
    fields = document.body["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]
    assert fields["replicas"]["type"] == "integer"
    assert all("description" in field for field in fields.values()) == api.real
    assert any("description" in field for field in fields.values()) == api.real


@covers("openapi", "discover", "success")
async def test_the_document_follows_the_definition(api: Api) -> None:
    before = await _defined(api)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{api.group}"
    schema = {"type": "object", "properties": {"spec": {"type": "object", "description": "What is wanted."}}}
    version = api.widgets(schema={"openAPIV3Schema": schema})["spec"]["versions"]
    await api.silent.merge(path, {"spec": {"versions": version}})

    async def changed() -> bool:
        return await _address(api) != before

    await api.until(changed)
    await api.silent.delete(path)

    async def gone() -> bool:
        return await _address(api) == ""

    await api.until(gone)


@covers("openapi", "discover", "success")
async def test_old_clients_get_a_document_of_version_2(api: Api) -> None:
    found = await api.silent("GET", "/openapi/v2", headers={"Accept": PROTOBUF_V2})
    assert found.status == 200
    api.note("type", found.headers["Content-Type"])
