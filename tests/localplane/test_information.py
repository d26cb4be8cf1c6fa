"""What the server says about itself."""

from __future__ import annotations

import pytest

from tests.localplane.wire import Http

AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)


async def test_the_version_is_the_one_it_emulates(http: Http) -> None:
    version = (await http.get("/version")).body
    assert (version["major"], version["minor"], version["gitVersion"]) == ("1", "36", "v1.36.3+kardinal")


async def test_the_core_group_is_listed(http: Http) -> None:
    assert (await http.get("/api")).body["versions"] == ["v1"]
    resources = (await http.get("/api/v1")).body["resources"]
    assert {"namespaces", "secrets", "configmaps", "events"} <= {one["name"] for one in resources}
    assert (await http.get("/apis/no.such.group")).status == 404


@pytest.mark.parametrize(("path", "expected"), [("/api", "configmaps"), ("/apis", "deployments")])
async def test_everything_is_in_one_aggregated_document(http: Http, path: str, expected: str) -> None:
    found = await http("GET", path, headers={"Accept": AGGREGATED})
    assert found.headers["Content-Type"] == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    assert found.body["kind"] == "APIGroupDiscoveryList"
    resources = [
        resource["resource"]
        for item in found.body["items"]
        for version in item["versions"]
        for resource in version["resources"]
    ]
    assert expected in resources


async def test_openapi_documents_are_addressed_by_their_content(http: Http, widgets: str) -> None:
    paths = (await http.get("/openapi/v3")).body["paths"]
    address = paths["apis/example.com/v1"]["serverRelativeURL"]
    path, _, digest = address.partition("?hash=")
    assert len(digest) == 64
    assert "paths" in (await http.get(path, hash=digest)).body
    await http.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
    await http.gone("/apis/example.com/v1")
    assert "apis/example.com/v1" not in (await http.get("/openapi/v3")).body["paths"]
    assert (await http.get(path)).status == 404


async def test_openapi_v2_is_an_empty_document_that_old_clients_accept(http: Http) -> None:
    found = await http.get("/openapi/v2")
    assert found.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert found.body == b""
