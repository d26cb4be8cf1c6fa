"""The status of a gate template tells of environments that no Pipeline has."""

from __future__ import annotations

from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api.names import LABEL_PIPELINE, LABEL_TYPE, TYPE_FREEZE, TYPE_HOLD, hold_name
from kardinal.promotion.kinds import PIPELINE, POLICY_GATE
from kardinal_controller.program import ControlPlane
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


async def test_an_environment_that_no_pipeline_has_is_a_warning_until_one_has_it(
    world: World, controller: ControlPlane
) -> None:
    gates: dict[str, tuple[str, dict[str, Any]]] = {
        "organisation": (POLICIES, {"applies_to": "qa"}),
        "team": (TEAM, {"applies_to": None, "appliesTo": ["qa"]}),
        "one-pipeline": (TEAM, {"applies_to": "qa", "labels": {"kardinal.io/pipeline": "my-app"}}),
    }
    await world.apply(
        *(gate(name, "true", namespace=namespace, **fields) for name, (namespace, fields) in gates.items())
    )

    async def warned() -> dict[str, bool]:
        await world.settle()
        found = {}
        for name, (namespace, _) in gates.items():
            said = verdict(await world.get(POLICY_GATE, name, namespace))
            assert said is not None
            found[name] = "environment qa" in said[1]
        return found

    assert await warned() == dict.fromkeys(gates, False)
    await world.apply(pipeline(REPOSITORY, name="other", environments=["other"]))
    await world.apply(pipeline(REPOSITORY, environments=[DEV]))
    assert await warned() == dict.fromkeys(gates, True)
    await world.apply(pipeline(REPOSITORY, environments=[DEV, "qa"]))
    assert await warned() == dict.fromkeys(gates, False)
    await world.delete(PIPELINE, "my-app")
    assert await warned() == {"organisation": True, "team": True, "one-pipeline": False}


async def test_a_template_with_an_expression_that_is_no_cel_says_where_it_is_wrong(
    world: World, controller: ControlPlane
) -> None:
    for namespace in (TEAM, POLICIES):
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


async def test_a_field_that_is_read_of_no_template_is_a_warning_with_the_remedy(
    world: World, controller: ControlPlane
) -> None:
    of_instances = "is of the instances that Graphs make"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"upstreamEnvironment": DEV}, f"spec.upstreamEnvironment {of_instances}"),
        (
            {"origin": {**ORIGIN, "scope": "org"}},
            f"spec.origin {of_instances}, and read of no template: leave it out",
        ),
        ({"exceptBundle": "app-1"}, "spec.exceptBundle is of gates of type hold, which kardinal rollback makes"),
        ({"exceptBundle": "app-1", "labels": {LABEL_TYPE: TYPE_FREEZE}}, "spec.exceptBundle is of gates of type hold"),
    ]
    await world.apply(pipeline(REPOSITORY, environments=[DEV]))
    gates = {f"guard-{number}": case for number, case in enumerate(cases)}
    await world.apply(*(gate(name, "true", applies_to=None, **fields) for name, (fields, _) in gates.items()))
    for name, (_, said) in gates.items():
        reason, message = await found_of(world, name)
        assert reason == "Ineffective"
        assert said in message
        events = [event for event in await world.events("Ineffective") if event["regarding"]["name"] == name]
        assert any(said in event["note"] for event in events)


async def test_a_hold_may_name_the_bundle_that_it_lets_through(world: World, controller: ControlPlane) -> None:
    labels = {LABEL_TYPE: TYPE_HOLD, LABEL_PIPELINE: "my-app"}
    held = gate(hold_name("my-app", DEV), "false", applies_to=None, labels=labels, exceptBundle="app-1")
    await world.apply(pipeline(REPOSITORY, environments=[DEV]), held)
    assert await found_of(world, held["metadata"]["name"]) == ("Valid", "")


MISTAKES = {
    "bundle.labels.hotfix == true": 'is never true: labels are strings, write bundle.labels.hotfix == "true"',
    "bundle.labels.hotfix != true": 'is always true: labels are strings, write bundle.labels.hotfix != "true"',
    "bundle.labels.risk < 3": 'cannot be answered: labels are strings, write bundle.labels.risk < "3"',
    'bundle.labels["a/b"] == 1': 'is never true: labels are strings, write bundle.labels["a/b"] == "1"',
}


async def test_label_compared_with_another_type_is_a_warning_with_the_right_form(
    world: World, controller: ControlPlane
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV]))
    gates = {f"guard-{number}": expression for number, expression in enumerate(MISTAKES)}
    for namespace in (TEAM, POLICIES):
        for name, expression in gates.items():
            await world.apply(gate(name, expression, applies_to=None, namespace=namespace))
        for name, expression in gates.items():
            found = await found_of(world, name, namespace)
            assert found == ("Ineffective", f"{expression} {MISTAKES[expression]}")
        await world.apply(gate("guard-0", 'bundle.labels.hotfix == "true"', applies_to=None, namespace=namespace))
        assert await found_of(world, "guard-0", namespace) == ("Valid", "")


async def test_a_gate_in_a_namespace_without_a_pipeline_holds_nothing_and_says_so(
    world: World, controller: ControlPlane
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


async def test_a_soak_before_a_first_environment_is_a_warning(world: World, controller: ControlPlane) -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        (POLICIES, {"applies_to": None}),
        (POLICIES, {"applies_to": None, "match": {"paths": ["environments/*"]}}),
        (TEAM, {"applies_to": None}),
        (TEAM, {"applies_to": DEV}),
    ]
    await world.apply(pipeline(REPOSITORY, environments=[DEV, PROD]))
    said = f"it never opens before {DEV} of Pipeline my-app in {TEAM}: nothing comes before it, so there is no bundle."
    soak = "bundle.upstreamSoakMinutes >= 30 && !schedule.isWeekend"
    for number, (namespace, fields) in enumerate(cases):
        await world.apply(gate(f"guard-{number}", soak, namespace=namespace, **fields))
    for number, (namespace, _) in enumerate(cases):
        assert said in (await found_of(world, f"guard-{number}", namespace))[1]


async def test_a_soak_that_can_be_reached_or_passed_over_is_no_warning(world: World, controller: ControlPlane) -> None:
    cases = [
        ("bundle.upstreamSoakMinutes >= 30", PROD),
        ('bundle.upstreamSoakMinutes >= 30 || bundle.labels.hotfix == "true"', None),
        ("!has(bundle.upstreamSoakMinutes) || bundle.upstreamSoakMinutes >= 30", None),
    ]
    await world.apply(pipeline(REPOSITORY, environments=[DEV, PROD]))
    for number, (expression, applies_to) in enumerate(cases):
        await world.apply(gate(f"guard-{number}", expression, applies_to=applies_to))
    for number in range(len(cases)):
        assert await found_of(world, f"guard-{number}") == ("Valid", "")
