"""The life of a Bundle on a real API server and engine, with the test in the place of the agent."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import timedelta

import pytest

from kardinal.api import BUNDLE, PROMOTION_STEP
from kardinal.api.names import label_value
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, GRAPH, JsonObject
from kardinal_controller.program import Controller
from tests.bundles.reading import REPOSITORY, condition, gone, node_of, patch, phase, states
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, PROD, STAGING
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.world import World


async def test_a_bundle_gets_a_graph_and_its_status_follows_the_steps(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    started = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    assert started["status"]["pipeline"] == "my-app"
    assert started["status"]["graphRef"] == "app-1"
    assert states(started) == {DEV: "Pending", STAGING: "Pending", PROD: "Pending"}
    ready = condition(started)
    assert ready is not None
    assert (ready["status"], ready["message"]) == ("False", "0 of 3 environments are Verified")
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}", f"app-1-{PROD}")
    ended = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert states(ended) == {DEV: "Verified", STAGING: "Verified", PROD: "Verified"}
    ready = condition(ended)
    assert ready is not None
    assert (ready["status"], ready["reason"], ready["observedGeneration"]) == ("True", "Verified", 1)
    assert await world.find(GRAPH, "app-1") is not None


async def test_evidence_is_copied_and_outlives_the_step(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1", intent={"target": DEV}))
    evidence = {
        "approvedBy": ["alice"],
        "gateDuration": "1m",
        "metrics": {},
        "policyGates": [{"name": "soak", "scope": "org", "result": "pass", "reason": "why"}],
    }
    now = "2026-03-03T10:00:00Z"
    await agent.step(
        f"app-1-{DEV}",
        state="Verified",
        verifiedAt=now,
        promotedAt=now,
        commit="abc",
        prURL="file://pr/1",
        evidence=evidence,
    )
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.delete(GRAPH, "app-1")
    await world.until(lambda: gone(world, PROMOTION_STEP, f"app-1-{DEV}"))
    await world.settle()
    kept = (await world.get(BUNDLE, "app-1"))["status"]
    assert kept["phase"] == "Verified"
    assert kept["environments"][DEV] == {
        "state": "Verified",
        "admittedAt": kept["environments"][DEV]["admittedAt"],
        "promotedAt": now,
        "verifiedAt": now,
        "commit": "abc",
        "prURL": "file://pr/1",
        "evidence": evidence,
    }
    assert await world.find(GRAPH, "app-1") is None


async def test_a_failed_step_fails_the_bundle_and_nothing_starts_behind_it(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}")
    await agent.step(f"app-1-{STAGING}", state="Failed", message="pull request 7 was closed without merge")
    failed = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    ready = condition(failed)
    assert ready is not None
    assert (ready["reason"], ready["message"]) == (
        "StepFailed",
        f"{STAGING}: pull request 7 was closed without merge; to try again: kardinal retry app-1 --env {STAGING}",
    )
    await world.idle(timedelta(hours=1))
    assert await world.find(PROMOTION_STEP, f"app-1-{PROD}") is None
    assert states(await world.get(BUNDLE, "app-1")) == {DEV: "Verified", STAGING: "Failed", PROD: "Pending"}


async def test_ready_turns_true_only_with_the_last_environment_also_after_the_target_moved(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1", intent={"target": DEV}))
    await agent.verify(f"app-1-{DEV}")
    first = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert states(first) == {DEV: "Verified"}
    seen: list[tuple[str, int, int]] = []

    def noting(accepts: Callable[[JsonObject], bool]) -> Callable[[JsonObject], bool]:
        def accepted(obj: JsonObject) -> bool:
            ready = condition(obj) or {}
            seen.append((ready["status"], ready["observedGeneration"], obj["metadata"]["generation"]))
            return accepts(obj)

        return accepted

    await patch(world, "app-1", {"spec": {"intent": {"target": STAGING}}})
    moved = await world.wait_for(BUNDLE, "app-1", noting(phase("Promoting")))
    assert states(moved) == {DEV: "Verified", STAGING: "Pending"}
    await agent.verify(f"app-1-{STAGING}")
    second = await world.wait_for(BUNDLE, "app-1", noting(phase("Verified")))
    assert states(second) == {DEV: "Verified", STAGING: "Verified"}
    # What `kubectl wait` takes for true: a True of the present generation.
    assert [entry for entry in seen if entry[0] == "True" and entry[1] == entry[2]] == [("True", 2, 2)]
    assert await world.find(PROMOTION_STEP, f"app-1-{PROD}") is None


async def test_moving_the_target_leaves_existing_nodes_unchanged(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1", intent={"target": DEV}))
    before = (await world.wait_for(GRAPH, "app-1", lambda _: True))["spec"]["nodes"]
    today = pipeline(REPOSITORY, environments=[environment(DEV, path="elsewhere"), STAGING, PROD])
    await world.apply(today)
    await world.settle()
    assert (await world.get(GRAPH, "app-1"))["spec"]["nodes"] == before
    await patch(world, "app-1", {"spec": {"intent": {"target": STAGING}}})
    after = await world.wait_for(GRAPH, "app-1", lambda graph: graph["metadata"]["generation"] == 2)
    assert after["spec"]["nodes"][:-1] == before
    assert after["spec"]["nodes"][-1]["id"] == node_of(STAGING)


async def test_deleting_a_bundle_deletes_its_graph_and_steps(world: World, running: Controller) -> None:
    await world.apply(bundle("app-1"))
    await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda _: True)
    await world.delete(BUNDLE, "app-1")
    await world.until(lambda: gone(world, PROMOTION_STEP, f"app-1-{DEV}"))
    await world.until(lambda: gone(world, GRAPH, "app-1"))


@pytest.mark.virtual_time("what is written within a second is one write")
async def test_progress_within_a_second_is_one_write(world: World, running: Controller, agent: ScriptedAgent) -> None:
    await world.apply(bundle("app-1", intent={"target": DEV}))
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await world.settle()
    before = world.audit.count(verbs=["patch"], resource="bundles.kardinal.io", user=world.user("controller"))
    await agent.step(f"app-1-{DEV}", state="Promoting")
    await agent.step(f"app-1-{DEV}", state="HealthChecking")
    await agent.verify(f"app-1-{DEV}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.idle(timedelta(minutes=1))
    after = world.audit.count(verbs=["patch"], resource="bundles.kardinal.io", user=world.user("controller"))
    assert after - before == 1


async def test_progress_is_written_within_a_second(world: World, running: Controller, agent: ScriptedAgent) -> None:
    await world.apply(bundle("app-1"))
    await agent.step(f"app-1-{DEV}", state="HealthChecking")
    await world.settle()
    await world.live(timedelta(seconds=1))
    assert states(await world.get(BUNDLE, "app-1"))[DEV] == "HealthChecking"


async def test_each_phase_gets_one_event_and_an_idle_hour_writes_nothing(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1", intent={"target": DEV}))
    await agent.verify(f"app-1-{DEV}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.idle(timedelta(minutes=1))
    events = [event for event in await world.events() if event["regarding"]["kind"] == "Bundle"]
    assert sorted((event["reason"], event["type"]) for event in events) == [
        ("EnvironmentVerified", "Normal"),
        ("Promoting", "Normal"),
        ("Verified", "Normal"),
    ]
    writes = world.audit.writes
    await world.idle(timedelta(hours=1))
    assert world.audit.writes == writes


async def test_a_restarted_controller_goes_on_without_creating_the_graph_again(
    world: World, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("app-1"))
    first = await start_controller(world, standalone=False)
    await agent.verify(f"app-1-{DEV}")
    await world.settle()
    await world.stop(first)
    writes = world.audit.count(verbs=["create"], resource="graphs.experimental.kro.run")
    await start_controller(world, standalone=False)
    await agent.verify(f"app-1-{STAGING}", f"app-1-{PROD}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert world.audit.count(verbs=["create"], resource="graphs.experimental.kro.run") == writes


@pytest.mark.parametrize(("annotation", "source"), [({}, "kubectl"), ({"kardinal.io/source": "webhook"}, "webhook")])
async def test_every_bundle_is_counted_once_with_its_source(
    world: World, running: Controller, annotation: dict[str, str], source: str
) -> None:
    made = bundle("app-1")
    made["metadata"]["annotations"] = annotation
    await world.apply(made)
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await world.settle()
    labels = {"pipeline": "my-app", "source": source}
    assert running.manager.metrics.get_sample_value("kardinal_bundles_created_total", labels) == 1


async def test_a_pipeline_with_a_name_too_long_for_a_label_is_found(world: World, controller: Controller) -> None:
    name = "a-very-long-name-" * 5 + "x"
    await world.apply(pipeline(REPOSITORY, name=name), bundle("app-1", pipeline=label_value(name)))
    started = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    assert started["status"]["pipeline"] == name
    step = await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda _: True)
    assert step["spec"]["pipeline"] == name


async def test_an_error_of_the_api_server_is_tried_again_and_fails_no_bundle(
    world: World, running: Controller, definitions: list[JsonObject]
) -> None:
    graphs = next(each for each in definitions if each["metadata"]["name"] == "graphs.experimental.kro.run")
    refusing = copy.deepcopy(graphs)
    spec = refusing["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["required"] = ["something-nobody-writes"]
    await world.client.apply(CUSTOM_RESOURCE_DEFINITION, refusing, field_manager="test", force=True)
    await world.apply(bundle("app-1"))
    await world.idle(timedelta(minutes=2))
    assert "phase" not in (await world.get(BUNDLE, "app-1")).get("status", {})
    await world.client.apply(CUSTOM_RESOURCE_DEFINITION, graphs, field_manager="test", force=True)
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))


async def test_what_was_merged_while_a_gate_was_closed_is_flagged_for_good(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1", intent={"target": DEV}))
    flag = {
        "type": "MergedOutOfBand",
        "status": "True",
        "reason": "MergedOutOfBand",
        "message": "pull request 1 was merged by alice although held by gate soak",
        "lastTransitionTime": "2026-03-03T10:00:00Z",
    }
    await agent.step(f"app-1-{DEV}", state="HealthChecking", conditions=[flag])
    await world.settle()
    found = condition(await world.get(BUNDLE, "app-1"), "MergedOutOfBand")
    assert found is not None
    assert found["message"] == f"{DEV}: {flag['message']}"
    assert len(await world.events("MergedOutOfBand")) == 1

    await agent.verify(f"app-1-{DEV}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.delete(GRAPH, "app-1")
    await world.until(lambda: gone(world, PROMOTION_STEP, f"app-1-{DEV}"))
    await world.settle()
    assert condition(await world.get(BUNDLE, "app-1"), "MergedOutOfBand") == found
