"""The status of a gate template tells of environments that no Pipeline has."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.api import PIPELINE, POLICY_GATE
from kardinal.objects import JsonObject
from kardinal_controller.program import Controller
from tests.bundles.reading import REPOSITORY, condition
from tests.support.names import DEV, POLICIES, TEAM
from tests.support.objects import gate, pipeline
from tests.support.world import World


def verdict(obj: JsonObject) -> tuple[str, str] | None:
    valid = condition(obj, "Valid")
    return (valid["reason"], valid["message"]) if valid else None


@pytest.mark.parametrize(
    ("namespace", "fields"),
    [
        (POLICIES, {"applies_to": "qa"}),
        (TEAM, {"applies_to": None, "appliesTo": ["qa"]}),
        (TEAM, {"applies_to": "qa", "labels": {"kardinal.io/pipeline": "my-app"}}),
    ],
    ids=["organisation", "team", "one Pipeline"],
)
async def test_an_environment_that_no_pipeline_has_is_a_warning_until_one_has_it(
    world: World, controller: Controller, namespace: str, fields: dict[str, Any]
) -> None:
    await world.apply(gate("guard", "true", namespace=namespace, **fields))

    async def says(text: str, *, absent: bool = False) -> None:
        await world.wait_for(
            POLICY_GATE,
            "guard",
            lambda obj: (found := verdict(obj)) is not None and (text in found[1]) is not absent,
            namespace=namespace,
        )

    await says("no Pipeline has", absent=True)
    await world.apply(pipeline(REPOSITORY, name="other", environments=["other"]))
    await world.apply(pipeline(REPOSITORY, environments=[DEV]))
    await says("no Pipeline has an environment qa")
    await world.apply(pipeline(REPOSITORY, environments=[DEV, "qa"]))
    await says("no Pipeline has", absent=True)
    await world.delete(PIPELINE, "my-app")
    await world.settle()
    found = verdict(await world.get(POLICY_GATE, "guard", namespace))
    assert found is not None
    assert ("no Pipeline has" in found[1]) is ("labels" not in fields)


@pytest.mark.parametrize("namespace", [TEAM, POLICIES])
async def test_a_template_with_an_expression_that_is_no_cel_says_where_it_is_wrong(
    world: World, controller: Controller, namespace: str
) -> None:
    await world.apply(gate("guard", "bundle.version == ==", applies_to=None, namespace=namespace))
    invalid = await world.wait_for(
        POLICY_GATE, "guard", lambda obj: condition(obj, "Valid") is not None, namespace=namespace
    )
    valid = condition(invalid, "Valid")
    assert valid is not None
    assert (valid["status"], valid["reason"]) == ("False", "InvalidExpression")
    assert "(at column 19)" in valid["message"]
    assert valid["message"].endswith("the gate stays closed")
