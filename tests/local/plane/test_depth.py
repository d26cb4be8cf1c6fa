"""How deeply an object may be nested: what is taken can be read in every way, and the rest is refused in every way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.plane.wire import Http, widget, widget_definition

APPLY = "application/apply-patch+yaml"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.fixture
async def frees(http: Http) -> str:
    """The path of a kind that takes anything."""
    spec = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    await http.define(widget_definition(schema=schema))
    return "/apis/example.com/v1/namespaces/default/widgets"


async def test_what_was_taken_is_read_in_every_way(http: Http, frees: str) -> None:
    levels = 200
    while (await http.post(frees, widget(f"w{levels}", **nested(levels)))).status == 201:
        levels += 1
    assert levels > 210
    for headers in ({}, TABLE, {"Accept": "application/yaml"}):
        for path in (frees, f"{frees}/w{levels - 1}"):
            assert (await http("GET", path, headers=headers, includeObject="Object")).status == 200
    async with http.watch(frees) as stream:
        assert len(await stream.names(levels - 200)) == levels - 200


@pytest.mark.parametrize("levels", [250, 900, 9_000])
async def test_what_is_nested_too_deeply_is_refused_by_every_write(http: Http, frees: str, levels: int) -> None:
    await http.post(frees, widget("a"))
    text = '{"a":' * levels + "1" + "}" * levels
    whole = f'{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"b"}},"spec":{text}}}'.encode()
    part = f'{{"spec":{text}}}'.encode()
    operations = f'[{{"op":"add","path":"/spec","value":{text}}}]'.encode()
    for answer in (
        await http.post(frees, whole),
        await http.post(frees, whole, dryRun="All"),
        await http("POST", frees, whole, content_type="application/yaml"),
        await http("PATCH", f"{frees}/a", part, content_type="application/merge-patch+json"),
        await http("PATCH", f"{frees}/a", operations, content_type="application/json-patch+json"),
        await http("PATCH", f"{frees}/b", whole, content_type=APPLY, fieldManager="me"),
        await http("PATCH", f"{frees}/a", whole.replace(b'"b"', b'"a"'), content_type=APPLY, fieldManager="me"),
    ):
        assert (answer.status, answer.body["reason"]) == (400, "BadRequest"), answer.body
    assert (await http.get("/readyz")).status == 200
