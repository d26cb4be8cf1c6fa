"""The status of a gate template tells of environments that no Pipeline has."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.api import PIPELINE, POLICY_GATE
from kardinal.api.names import LABEL_PIPELINE, LABEL_TYPE, TYPE_FREEZE, TYPE_HOLD, hold_name
from kardinal.objects import JsonObject
from kardinal_controller.program import Controller
from tests.bundles.reading import REPOSITORY, condition
from tests.support.names import DEV, POLICIES, PROD, TEAM
from tests.support.objects import gate, pipeline
from tests.support.objects import namespace as namespace_of
from tests.support.world import World

LONELY = f"{TEAM}-lonely"

ORIGIN = {"namespace": TEAM, "name": "guard", "pipeline": "my-app", "bundle": "app-1", "environment": DEV}


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


async def found_of(world: World, name: str = "guard", namespace: str = TEAM) -> tuple[str, str]:
    """Return reason and message of the condition Valid of a gate, once it is about the gate as it is."""
    obj = await world.wait_for(
        POLICY_GATE,
        name,
        lambda obj: obj.get("status", {}).get("observedGeneration") == obj["metadata"]["generation"],
        namespace=namespace,
    )
    await world.settle()
    found = verdict(await world.get(POLICY_GATE, obj["metadata"]["name"], namespace))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"upstreamEnvironment": DEV}, "spec.upstreamEnvironment is of the instances that Graphs make"),
        (
            {"origin": {**ORIGIN, "scope": "org"}},
            "spec.origin is of the instances that Graphs make, and read of no template: leave it out",
        ),
        ({"exceptBundle": "app-1"}, "spec.exceptBundle is of gates of type hold, which kardinal rollback makes"),
        ({"exceptBundle": "app-1", "labels": {LABEL_TYPE: TYPE_FREEZE}}, "spec.exceptBundle is of gates of type hold"),
    ],
)
async def test_a_field_that_is_read_of_no_template_is_a_warning_with_the_remedy(
    world: World, controller: Controller, fields: dict[str, Any], said: str
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV]), gate("guard", "true", applies_to=None, **fields))
    reason, message = await found_of(world)
    assert reason == "Ineffective"
    assert said in message
    assert any(said in event["note"] for event in await world.events("Ineffective"))


async def test_a_hold_may_name_the_bundle_that_it_lets_through(world: World, controller: Controller) -> None:
    labels = {LABEL_TYPE: TYPE_HOLD, LABEL_PIPELINE: "my-app"}
    held = gate(hold_name("my-app", DEV), "false", applies_to=None, labels=labels, exceptBundle="app-1")
    await world.apply(pipeline(REPOSITORY, environments=[DEV]), held)
    assert await found_of(world, held["metadata"]["name"]) == ("Valid", "")


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("bundle.labels.hotfix == true", 'is never true: labels are strings, write bundle.labels.hotfix == "true"'),
        ("bundle.labels.hotfix != true", 'is always true: labels are strings, write bundle.labels.hotfix != "true"'),
        ("bundle.labels.risk < 3", 'cannot be answered: labels are strings, write bundle.labels.risk < "3"'),
        ('bundle.labels["a/b"] == 1', 'is never true: labels are strings, write bundle.labels["a/b"] == "1"'),
    ],
)
@pytest.mark.parametrize("namespace", [TEAM, POLICIES])
async def test_a_label_that_is_compared_with_something_that_is_not_text_is_a_warning_with_the_right_form(
    world: World, controller: Controller, namespace: str, expression: str, said: str
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV]))
    await world.apply(gate("guard", expression, applies_to=None, namespace=namespace))
    reason, message = await found_of(world, namespace=namespace)
    assert (reason, message) == ("Ineffective", f"{expression} {said}")
    await world.apply(gate("guard", 'bundle.labels.hotfix == "true"', applies_to=None, namespace=namespace))
    assert await found_of(world, namespace=namespace) == ("Valid", "")


async def test_a_gate_in_a_namespace_without_a_pipeline_holds_nothing_and_says_so(
    world: World, controller: Controller
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV]))
    await world.apply(gate("guard", "false", applies_to=None, namespace=POLICIES))
    assert await found_of(world, namespace=POLICIES) == ("Valid", "")
    await world.apply(namespace_of(LONELY), gate("guard", "false", applies_to=None, namespace=LONELY))
    reason, message = await found_of(world, namespace=LONELY)
    assert reason == "Ineffective"
    assert message == (
        f"namespace {LONELY} has no Pipeline and is no policy namespace, so the gate holds nothing: "
        f"move it to that of the Pipelines that it is to hold or {POLICIES}"
    )
    await world.apply(pipeline(REPOSITORY, environments=[DEV], namespace=LONELY))
    await world.wait_for(POLICY_GATE, "guard", lambda obj: verdict(obj) == ("Valid", ""), namespace=LONELY)


@pytest.mark.parametrize(
    ("namespace", "fields"),
    [
        (POLICIES, {"applies_to": None}),
        (POLICIES, {"applies_to": None, "match": {"paths": ["environments/*"]}}),
        (TEAM, {"applies_to": None}),
        (TEAM, {"applies_to": DEV}),
    ],
)
async def test_a_soak_before_a_first_environment_is_a_warning(
    world: World, controller: Controller, namespace: str, fields: dict[str, Any]
) -> None:
    soak = gate("guard", "bundle.upstreamSoakMinutes >= 30 && !schedule.isWeekend", namespace=namespace, **fields)
    await world.apply(pipeline(REPOSITORY, environments=[DEV, PROD]), soak)
    said = f"it never opens before {DEV} of Pipeline my-app in {TEAM}: nothing comes before it, so there is no bundle."
    await world.wait_for(POLICY_GATE, "guard", lambda obj: said in (verdict(obj) or ("", ""))[1], namespace=namespace)


@pytest.mark.parametrize(
    ("expression", "applies_to"),
    [
        ("bundle.upstreamSoakMinutes >= 30", PROD),
        ('bundle.upstreamSoakMinutes >= 30 || bundle.labels.hotfix == "true"', None),
        ("!has(bundle.upstreamSoakMinutes) || bundle.upstreamSoakMinutes >= 30", None),
    ],
)
async def test_a_soak_that_can_be_reached_or_passed_over_is_no_warning(
    world: World, controller: Controller, expression: str, applies_to: str | None
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV, PROD]))
    await world.apply(gate("guard", expression, applies_to=applies_to))
    assert await found_of(world) == ("Valid", "")
