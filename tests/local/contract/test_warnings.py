"""Warning headers: what people are told while they are served."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.wire import Answer, Api

covers = pytest.mark.covers


def warnings(answer: Answer) -> list[str]:
    return list(answer.headers.getall("Warning", []))


@covers("warnings", "create", "success")
async def test_a_field_that_nobody_knows_is_a_warning(api: Api) -> None:
    obj = config_map("a") | {"nothing": 1, 'quo"ted': 2}
    created = await api.post(api.path("configmaps"), obj)
    assert created.status == 201
    assert '299 - "unknown field \\"nothing\\""' in warnings(created)
    assert warnings(await api.post(api.path("configmaps"), obj, fieldValidation="Ignore", dryRun="All")) == []


@covers("warnings", "create", "success")
async def test_a_field_that_stands_twice_is_a_warning(api: Api) -> None:
    await api.define(api.widgets())
    text = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2","k":"3"}}'
    created = await api("POST", api.path("configmaps"), text)
    assert (created.body["data"], warnings(created)) == ({"k": "3"}, ['299 - "duplicate field \\"data.k\\""'])
    refused = await api("POST", api.path("configmaps"), text.replace(b'"a"', b'"b"'), fieldValidation="Strict")
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")


@covers("warnings", "create", "refusal")
async def test_a_refusal_carries_warnings_too(api: Api) -> None:
    refused = await api.post(api.path("configmaps"), {"nothing": 1})
    assert (refused.status, warnings(refused)) == (422, ['299 - "unknown field \\"nothing\\""'])


@covers("warnings", "create", "success")
async def test_what_is_too_much_is_shortened(api: Api) -> None:
    # Each is told in full until all of them together are too many.
    many = {f"field-{number:02}-{'x' * 300}": number for number in range(20)}
    created = await api.post(api.path("configmaps"), config_map("a") | many)
    found = warnings(created)
    assert len(found) == 16
    assert all(len(one) < 280 for one in found)


@covers("warnings", "list", "success")
async def test_a_version_that_is_deprecated_says_so_on_every_request(api: Api) -> None:
    definition = api.widgets(deprecated=True)
    version = definition["spec"]["versions"][0]
    other: dict[str, Any] = version | {"name": "v2", "storage": False, "deprecationWarning": 'use "something" else'}
    definition["spec"]["versions"].append(other)
    await api.define(definition)
    first, second = (api.path("widgets", group=api.group, version=name) for name in ("v1", "v2"))
    assert warnings(await api.post(first, api.widget("a"))) == [f'299 - "{api.group}/v1 Widget is deprecated"']
    for answer in (await api.get(second), await api.get(f"{second}/a"), await api.get(f"{second}/none")):
        assert warnings(answer) == ['299 - "use \\"something\\" else"']
    async with api.watch(second) as watch:
        assert watch.answer.headers["Warning"] == '299 - "use \\"something\\" else"'
    assert warnings(await api.get(api.path("configmaps", "none"))) == []
