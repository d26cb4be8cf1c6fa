"""The life of a Bundle on a real API server and engine, with the test in the place of the agent."""

from __future__ import annotations

import copy
from datetime import timedelta

import pytest

from kardinal.kube import PatchType
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, GRAPH, JsonObject
from kardinal.promotion.api.names import label_value
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal.runtime.informer import Event
from kardinal_controller.program import ControlPlane
from tests.bundles.in_memory import BundleController
from tests.bundles.reading import REPOSITORY, condition, gone, node_of, phase, states
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, PROD, STAGING, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.world import World


async def test_a_bundle_gets_a_graph_and_its_status_follows_the_steps(
    world: World, running: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    started = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    assert started["status"]["pipeline"] == "my-app"
    assert started["status"]["graphRef"] == "app-1"
    assert states(started) == {DEV: "Pending", STAGING: "Pending", PROD: "Pending"}
    ready = condition(started)
    assert ready is not None
    assert ready["status"] == "False"
    assert ready["message"].startswith("0 of 3 ")
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}", f"app-1-{PROD}")
    ended = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert states(ended) == {DEV: "Verified", STAGING: "Verified", PROD: "Verified"}
    ready = condition(ended)
    assert ready is not None
    assert (ready["status"], ready["reason"], ready["observedGeneration"]) == ("True", "Verified", 1)
    assert await world.find(GRAPH, "app-1") is not None

    await world.idle(timedelta(minutes=1))
    events = [event for event in await world.events() if event["regarding"]["kind"] == "Bundle"]
    told = sorted((event["reason"], event["type"]) for event in events)
    assert told == [*[("EnvironmentVerified", "Normal")] * 3, ("Promoting", "Normal"), ("Verified", "Normal")]
    counted = {"pipeline": "my-app", "source": "kubectl"}
    assert running.manager.metrics.get_sample_value("kardinal_bundles_created_total", counted) == 1
    writes = world.audit.writes
    await world.idle(timedelta(hours=1))
    assert world.audit.writes == writes


async def test_evidence_and_the_flag_of_a_merge_past_a_gate_outlive_the_step(
    world: World, running: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1", intent={"target": DEV}))
    now = "2026-03-03T10:00:00Z"
    flag = {
        "type": "MergedOutOfBand",
        "status": "True",
        "reason": "MergedOutOfBand",
        "message": "merged although a gate was closed",
        "lastTransitionTime": now,
    }
    await agent.step(f"app-1-{DEV}", state="HealthChecking", conditions=[flag])
    await world.settle()
    flagged = condition(await world.get(BUNDLE, "app-1"), "MergedOutOfBand")
    assert flagged is not None
    assert flagged["message"] == f"{DEV}: {flag['message']}"
    assert len(await world.events("MergedOutOfBand")) == 1
    evidence = {
        "approvedBy": ["alice"],
        "gateDuration": "1m",
        "metrics": {},
        "policyGates": [{"name": "soak", "scope": "org", "result": "pass", "reason": "why"}],
    }
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
    found = await world.get(BUNDLE, "app-1")
    kept = found["status"]
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
    assert condition(found, "MergedOutOfBand") == flagged
    assert await world.find(GRAPH, "app-1") is None


async def test_progress_is_written_within_a_second_and_nothing_starts_behind_a_step_that_failed(
    world: World, running: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await agent.step(f"app-1-{DEV}", state="HealthChecking")
    await world.settle()
    await world.live(timedelta(seconds=1))
    assert states(await world.get(BUNDLE, "app-1"))[DEV] == "HealthChecking"
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
    bundles: BundleController,
) -> None:
    await bundles.apply(bundle("app-1", intent={"target": DEV}))
    await bundles.verify("app-1", DEV)
    assert bundles.phase("app-1") == "Verified"
    assert states(bundles.get("app-1")) == {DEV: "Verified"}
    seen: list[tuple[str, int, int]] = []

    def note(event: Event) -> None:
        ready = condition(event.new or {}) or {}
        seen.append((ready["status"], ready["observedGeneration"], (event.new or {})["metadata"]["generation"]))

    bundles.caches.bundles.on_event(note)
    await bundles.patch("app-1", {"spec": {"intent": {"target": STAGING}}})
    assert bundles.phase("app-1") == "Promoting"
    assert states(bundles.get("app-1")) == {DEV: "Verified", STAGING: "Pending"}
    await bundles.verify("app-1", STAGING)
    assert bundles.phase("app-1") == "Verified"
    assert states(bundles.get("app-1")) == {DEV: "Verified", STAGING: "Verified"}
    # What `kubectl wait` takes for true: a True of the present generation.
    assert [entry for entry in seen if entry[0] == "True" and entry[1] == entry[2]] == [("True", 2, 2)]
    assert not bundles.has_step("app-1", PROD)


async def test_moving_the_target_leaves_existing_nodes_unchanged(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1", intent={"target": DEV}))
    before = (bundles.stored(GRAPH, "app-1") or {})["spec"]["nodes"]
    await bundles.apply(pipeline(REPOSITORY, environments=[environment(DEV, path="elsewhere"), STAGING, PROD]))
    assert (bundles.stored(GRAPH, "app-1") or {})["spec"]["nodes"] == before
    await bundles.patch("app-1", {"spec": {"intent": {"target": STAGING}}})
    after = bundles.stored(GRAPH, "app-1") or {}
    assert after["metadata"]["generation"] == 2
    assert after["spec"]["nodes"][:-1] == before
    assert after["spec"]["nodes"][-1]["id"] == node_of(STAGING)


async def test_progress_within_a_second_is_one_write(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1"))
    written: list[dict[str, str]] = []
    bundles.caches.bundles.on_event(lambda event: written.append(states(event.new or {})))
    for state in ("Promoting", "WaitingForMerge", "HealthChecking"):
        bundles.report("app-1", DEV, state=state)
        await bundles.live(timedelta(milliseconds=300))
    assert written == []
    await bundles.live(timedelta(milliseconds=200))
    assert [each[DEV] for each in written] == ["HealthChecking"]
    await bundles.live(timedelta(minutes=1))
    assert len(written) == 1


async def test_a_restarted_controller_goes_on_without_creating_the_graph_again(
    world: World, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("app-1"))
    first = await start_controller(world, standalone=False)
    await agent.verify(f"app-1-{DEV}")
    await world.settle()
    await world.stop(first)
    creations = world.audit.count(verbs=["create"], resource="graphs.experimental.kro.run")
    second = await start_controller(world, standalone=False)
    await world.settle()
    known = (await world.get(BUNDLE, "app-1"))["status"]["graph"]
    await world.stop(second)
    # As it was left by a crash before the uid of the Graph was recorded: the Graph is known by its hash.
    before = {"graph": {"uid": None, "hash": None, "nextHash": known["hash"]}, "graphRef": None, "phase": None}
    await world.client.patch(BUNDLE, "app-1", TEAM, {"status": before}, kind=PatchType.MERGE, subresource="status")
    await start_controller(world, standalone=False)
    found = await world.wait_for(BUNDLE, "app-1", lambda obj: "uid" in obj["status"].get("graph", {}))
    assert found["status"]["graph"] == known
    await agent.verify(f"app-1-{STAGING}", f"app-1-{PROD}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert world.audit.count(verbs=["create"], resource="graphs.experimental.kro.run") == creations


async def test_a_pipeline_with_a_name_too_long_for_a_label_is_found(alone: BundleController) -> None:
    name = "a-very-long-name-" * 5 + "x"
    await alone.apply(pipeline(REPOSITORY, name=name), bundle("app-1", pipeline=label_value(name)))
    started = alone.get("app-1")
    assert (started["status"]["phase"], started["status"]["pipeline"]) == ("Promoting", name)
    assert (alone.stored(PROMOTION_STEP, f"app-1-{DEV}") or {})["spec"]["pipeline"] == name


async def test_an_error_of_the_api_server_is_tried_again_and_fails_no_bundle(
    world: World, running: ControlPlane, definitions: list[JsonObject]
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


@pytest.mark.case("A49")
async def test_environment_after_a_skipped_one_follows_the_one_before_it(
    world: World, running: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1", intent={"skip": [STAGING]}))
    await agent.verify(f"app-1-{DEV}")
    await world.wait_for(PROMOTION_STEP, f"app-1-{PROD}", lambda _: True)
    assert await world.find(PROMOTION_STEP, f"app-1-{STAGING}") is None
    marks = [node.get("x-kardinal", {}) for node in (await world.get(GRAPH, "app-1"))["spec"]["nodes"]]
    assert {mark["environment"]: mark.get("upstreams", []) for mark in marks if mark.get("kind") == "step"} == {
        DEV: [],
        PROD: [DEV],
    }
