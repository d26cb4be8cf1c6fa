"""Creating, reading, replacing and deleting."""

from __future__ import annotations

import pytest

from tests.contract.examples import config_map
from tests.contract.wire import Api

covers = pytest.mark.covers


@covers("crud", "create", "success")
async def test_what_was_created_is_read_back(api: Api) -> None:
    path = api.path("configmaps")
    created = await api.post(path, config_map("a", key="value"))
    assert created.status == 201
    assert (await api.get(f"{path}/a")).body == created.body


@covers("crud", "create", "conflict")
async def test_a_name_is_taken_once(api: Api) -> None:
    await api.post(api.path("configmaps"), config_map("a"))
    refused = await api.post(api.path("configmaps"), config_map("a"))
    assert (refused.status, refused.body["reason"]) == (409, "AlreadyExists")


@covers("crud", "create", "success")
async def test_a_custom_object_is_created(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    created = await api.post(path, api.widget("a", colour="red"))
    assert created.body["spec"] == {"size": 3, "colour": "red"}
    async with api.watch(path) as stream:
        assert await stream.names(1) == [("ADDED", "a")]
