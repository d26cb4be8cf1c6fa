"""Objects that are nested deeper than a decoder goes: an API server takes 10,000 levels where a schema is open."""

from __future__ import annotations

from contextlib import suppress

import orjson
import pytest

from kardinal.bounded import OverLimit
from kardinal.bounded.nesting import shallow
from kardinal.kube import BadRequest
from kardinal.kube.bounds import HUB, TENANT, decode_body
from kardinal.promotion.kinds import PIPELINE
from tests.bundles.reading import REPOSITORY, reason
from tests.support.names import DEV
from tests.support.objects import environment, pipeline
from tests.support.programs import start_controller
from tests.support.world import World


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + rb'"]\\"' + b"}" * levels


def levels_of(value: object) -> int:
    levels = 0
    while isinstance(value, dict):
        value = value["a"]
        levels += 1
    return levels


@pytest.mark.parametrize("levels", [240, 900, 5_000])
@pytest.mark.parametrize("before", [True, False])
async def test_a_deep_config_of_one_pipeline_stops_no_other(world: World, levels: int, *, before: bool) -> None:
    step = {"uses": "check", "config": {"url": "https://tests.example.com", "more": orjson.Fragment(nested(levels))}}
    deep = pipeline(REPOSITORY, name="deep", environments=[environment(DEV, steps=[step])])

    async def attack() -> None:
        with suppress(BadRequest):  # of a local plane, which takes no such object
            await world.client.create(PIPELINE, deep)

    if before:
        await attack()
    await start_controller(world)
    if not before:
        await attack()
    await world.apply(pipeline(REPOSITORY))
    await world.wait_for(PIPELINE, "my-app", lambda obj: reason(obj) == "Translatable")


@pytest.mark.parametrize("levels", [230, 255, 1_000, 9_000])
async def test_an_object_that_is_too_deep_leaves_a_list_readable(levels: int) -> None:
    content = b'{"items": [%s, {"b": [1, "[{"]}]}' % nested(levels)
    found = (await decode_body(content, HUB.answer, trusted=True)).value
    deep, other = found["items"]
    assert levels_of(deep) == 126
    orjson.dumps(deep)
    assert other == {"b": [1, "[{"]}
    with pytest.raises(OverLimit, match="deeper than 64 levels"):
        await decode_body(content, TENANT.answer, trusted=False)


async def test_an_object_that_can_be_written_is_read_whole() -> None:
    content = b'{"items": [%s]}' % nested(220)
    [found] = (await decode_body(content, HUB.answer, trusted=True)).value["items"]
    assert levels_of(found) == 220


@pytest.mark.parametrize("content", [b'{"items": [', b'"', b"]]]", b"{}}", b"[" * 9_000, b'{"a": "\\'])
async def test_invalid_json_is_refused_as_such(content: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        await decode_body(content, HUB.answer, trusted=True)


def test_shallow_document_stays_as_it_is() -> None:
    content = rb'{"a": ["]\"", {"b": [[], {}]}], "c": 1}'
    assert shallow(content, 5) == content
    assert orjson.loads(shallow(content, 2)) == {"a": [']"', None], "c": 1}
