"""The life of a Bundle on a real API server and engine, with the test in the place of the agent."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from kardinal.api import BUNDLE, GRAPH, METRIC_CHECK, PIPELINE, PROMOTION_STEP, SUBSCRIPTION, ResourceType
from kardinal.kube import JsonObject, PatchType
from kardinal_controller.program import Controller
from tests.promotion.conftest import Hands
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.world import World

REPOSITORY = "file:///repo"


def phase(name: str) -> Callable[[JsonObject], bool]:
    return lambda obj: bool(obj.get("status", {}).get("phase") == name)


def condition(obj: JsonObject, kind: str = "Ready") -> JsonObject | None:
    conditions = obj.get("status", {}).get("conditions", [])
    return next((entry for entry in conditions if entry["type"] == kind), None)


def reason(obj: JsonObject) -> str | None:
    ready = condition(obj)
    return ready["reason"] if ready else None


def states(obj: JsonObject) -> dict[str, str]:
    return {name: entry["state"] for name, entry in obj["status"].get("environments", {}).items()}


async def patch(world: World, name: str, body: JsonObject) -> None:
    await world.client.patch(BUNDLE, name, "default", body, kind=PatchType.MERGE)


@pytest.fixture
async def running(world: World, controller: Controller) -> Controller:
    """A control plane that knows a Pipeline of three environments."""
    await world.apply(pipeline(REPOSITORY))
    return controller


async def test_a_bundle_gets_a_graph_and_says_how_far_it_has_come(
    world: World, running: Controller, hands: Hands
) -> None:
    await world.apply(bundle("app-1"))
    started = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    assert started["status"]["pipeline"] == "my-app"
    assert started["status"]["graphRef"] == "app-1"
    assert states(started) == {"dev": "Pending", "staging": "Pending", "prod": "Pending"}
    ready = condition(started)
    assert ready is not None
    assert (ready["status"], ready["message"]) == ("False", "0 of 3 environments are Verified")
    await hands.verify("app-1-dev", "app-1-staging", "app-1-prod")
    ended = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert states(ended) == {"dev": "Verified", "staging": "Verified", "prod": "Verified"}
    ready = condition(ended)
    assert ready is not None
    assert (ready["status"], ready["reason"], ready["observedGeneration"]) == ("True", "Verified", 1)
    assert await world.find(GRAPH, "app-1") is not None


async def test_evidence_is_copied_and_outlives_the_step(world: World, running: Controller, hands: Hands) -> None:
    await world.apply(bundle("app-1", intent={"target": "dev"}))
    evidence = {
        "approvedBy": ["alice"],
        "gateDuration": "1m",
        "metrics": {},
        "policyGates": [{"name": "soak", "scope": "org", "result": "pass", "reason": "why"}],
    }
    now = "2026-03-03T10:00:00Z"
    await hands.step(
        "app-1-dev",
        state="Verified",
        verifiedAt=now,
        promotedAt=now,
        commit="abc",
        prURL="file://pr/1",
        evidence=evidence,
    )
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.delete(GRAPH, "app-1")
    await world.until(lambda: gone(world, PROMOTION_STEP, "app-1-dev"))
    await world.settle()
    kept = (await world.get(BUNDLE, "app-1"))["status"]
    assert kept["phase"] == "Verified"
    assert kept["environments"]["dev"] == {
        "state": "Verified",
        "promotedAt": now,
        "verifiedAt": now,
        "commit": "abc",
        "prURL": "file://pr/1",
        "evidence": evidence,
    }
    assert await world.find(GRAPH, "app-1") is None


async def gone(world: World, resource: ResourceType, name: str) -> bool:
    return await world.find(resource, name) is None


async def test_a_failed_step_fails_the_bundle_and_nothing_starts_behind_it(
    world: World, running: Controller, hands: Hands
) -> None:
    await world.apply(bundle("app-1"))
    await hands.verify("app-1-dev")
    await hands.step("app-1-staging", state="Failed", message="pull request 7 was closed without merge")
    failed = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    ready = condition(failed)
    assert ready is not None
    assert (ready["reason"], ready["message"]) == ("StepFailed", "staging: pull request 7 was closed without merge")
    await world.live(timedelta(hours=1))
    assert await world.find(PROMOTION_STEP, "app-1-prod") is None
    assert states(await world.get(BUNDLE, "app-1")) == {"dev": "Verified", "staging": "Failed", "prod": "Pending"}


async def test_ready_turns_true_only_with_the_last_environment_also_after_the_target_moved(
    world: World, running: Controller, hands: Hands
) -> None:
    await world.apply(bundle("app-1", intent={"target": "dev"}))
    await hands.verify("app-1-dev")
    first = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert states(first) == {"dev": "Verified"}
    seen: list[tuple[str, int, int]] = []

    def noting(accepts: Callable[[JsonObject], bool]) -> Callable[[JsonObject], bool]:
        def accepted(obj: JsonObject) -> bool:
            ready = condition(obj) or {}
            seen.append((ready["status"], ready["observedGeneration"], obj["metadata"]["generation"]))
            return accepts(obj)

        return accepted

    await patch(world, "app-1", {"spec": {"intent": {"target": "staging"}}})
    moved = await world.wait_for(BUNDLE, "app-1", noting(phase("Promoting")))
    assert states(moved) == {"dev": "Verified", "staging": "Pending"}
    await hands.verify("app-1-staging")
    second = await world.wait_for(BUNDLE, "app-1", noting(phase("Verified")))
    assert states(second) == {"dev": "Verified", "staging": "Verified"}
    # What `kubectl wait` takes for true: a True of the present generation.
    assert [entry for entry in seen if entry[0] == "True" and entry[1] == entry[2]] == [("True", 2, 2)]
    assert await world.find(PROMOTION_STEP, "app-1-prod") is None


async def test_moving_the_target_keeps_the_nodes_that_stand_word_for_word(
    world: World, running: Controller, hands: Hands
) -> None:
    await world.apply(bundle("app-1", intent={"target": "dev"}))
    before = (await world.wait_for(GRAPH, "app-1", lambda _: True))["spec"]["nodes"]
    today = pipeline(REPOSITORY, environments=[environment("dev", path="elsewhere"), "staging", "prod"])
    await world.apply(today)
    await world.settle()
    assert (await world.get(GRAPH, "app-1"))["spec"]["nodes"] == before
    await patch(world, "app-1", {"spec": {"intent": {"target": "staging"}}})
    after = await world.wait_for(GRAPH, "app-1", lambda graph: graph["metadata"]["generation"] == 2)
    assert after["spec"]["nodes"][:-1] == before
    assert after["spec"]["nodes"][-1]["id"] == "staging"


async def test_a_target_that_does_not_exist_is_said_and_left_as_soon_as_it_is_corrected(
    world: World, running: Controller, hands: Hands
) -> None:
    await world.apply(bundle("app-1", intent={"target": "dev"}))
    await hands.verify("app-1-dev")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await patch(world, "app-1", {"spec": {"intent": {"target": "prd"}}})
    wrong = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    invalid = condition(wrong, "InvalidSpec")
    assert invalid is not None
    assert "did you mean prod?" in invalid["message"]
    assert states(wrong) == {"dev": "Verified"}
    await patch(world, "app-1", {"spec": {"intent": {"target": "dev"}}})
    right = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert condition(right, "InvalidSpec") is None


async def test_a_bundle_waits_for_its_pipeline_and_starts_when_it_appears(world: World, controller: Controller) -> None:
    await world.apply(bundle("app-1"))
    waiting = await world.wait_for(BUNDLE, "app-1", lambda obj: reason(obj) == "PipelineNotFound")
    assert waiting["status"]["phase"] == "Available"
    assert await world.objects(GRAPH) == []
    await world.apply(pipeline(REPOSITORY))
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))


async def test_a_bundle_without_label_is_invalid_until_it_gets_one(world: World, running: Controller) -> None:
    lost = bundle("app-1")
    del lost["metadata"]["labels"]["kardinal.io/pipeline"]
    await world.apply(lost)
    invalid = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    assert reason(invalid) == "InvalidSpec"
    assert "metadata.labels[kardinal.io/pipeline]" in str(condition(invalid, "InvalidSpec"))
    await patch(world, "app-1", {"metadata": {"labels": {"kardinal.io/pipeline": "my-app"}}})
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))


async def test_a_pipeline_that_cannot_be_translated_fails_the_bundle_until_it_is_corrected(
    world: World, controller: Controller
) -> None:
    cycle = [environment("a", dependsOn=["b"]), environment("b", dependsOn=["a"])]
    await world.apply(pipeline(REPOSITORY, environments=cycle), bundle("app-1"))
    invalid = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    found = condition(invalid, "InvalidSpec")
    assert found is not None
    assert found["reason"] == "DependencyCycle"
    assert "Pipeline/my-app spec.environments: the environments depend on each other" in found["message"]
    assert await world.objects(GRAPH) == []
    await world.apply(pipeline(REPOSITORY, environments=["a", "b"]))
    corrected = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    assert condition(corrected, "InvalidSpec") is None


async def test_a_denied_skip_names_environment_and_gate_and_creates_nothing(world: World, running: Controller) -> None:
    await world.apply(gate("soak", "true", applies_to="staging", namespace="platform-policies"))
    await world.settle()
    await world.apply(bundle("app-1", intent={"skip": ["staging"]}))
    denied = await world.wait_for(BUNDLE, "app-1", phase("SkipDenied"))
    ready = condition(denied)
    assert ready is not None
    assert ready["message"].startswith("skipping staging is denied by gate soak")
    assert await world.objects(GRAPH) == []
    permission = gate(
        "hotfix",
        'bundle.name == "app-1"',
        applies_to="staging",
        namespace="platform-policies",
        labels={"kardinal.io/type": "skip-permission"},
    )
    await world.apply(permission)
    started = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    assert list(states(started)) == ["dev", "prod"]


async def test_a_changed_label_is_ignored_with_a_warning(world: World, running: Controller) -> None:
    await world.apply(bundle("app-1"))
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await patch(world, "app-1", {"metadata": {"labels": {"kardinal.io/pipeline": "other"}}})
    warned = await world.wait_for(BUNDLE, "app-1", lambda obj: condition(obj, "Warning") is not None)
    assert warned["status"]["pipeline"] == "my-app"
    assert warned["status"]["phase"] == "Promoting"
    await world.settle()
    events = await world.events("PipelineLabelChanged")
    assert [event["type"] for event in events] == ["Warning"]
    await patch(world, "app-1", {"metadata": {"labels": {"kardinal.io/pipeline": "my-app"}}})
    await world.wait_for(BUNDLE, "app-1", lambda obj: condition(obj, "Warning") is None)


async def test_a_newer_bundle_supersedes_one_on_its_way_and_its_graph_goes_when_it_has_come_to_rest(
    world: World, running: Controller, hands: Hands
) -> None:
    await world.apply(bundle("app-1"))
    await hands.verify("app-1-dev")
    await hands.step("app-1-staging", state="HealthChecking", commit="abc", promotedAt="2026-03-03T10:00:00Z")
    await world.apply(bundle("app-2"))
    old = await world.wait_for(BUNDLE, "app-1", phase("Superseded"))
    ready = condition(old)
    assert ready is not None
    assert (ready["status"], ready["message"]) == ("False", "Bundle app-2 is newer")
    await world.live(timedelta(minutes=5))
    assert await world.find(GRAPH, "app-1") is not None
    await hands.verify("app-1-staging")
    # The engine may already have started what the agent then abandons.
    await world.live(timedelta(seconds=2))
    if await world.find(PROMOTION_STEP, "app-1-prod") is not None:
        await hands.step("app-1-prod", state="Failed", message="superseded")
    await world.until(lambda: gone(world, GRAPH, "app-1"))
    await world.live(timedelta(seconds=2))
    ended = await world.get(BUNDLE, "app-1")
    assert ended["status"]["phase"] == "Superseded"
    assert states(ended)["staging"] == "Verified"
    assert (await world.get(BUNDLE, "app-2"))["status"]["phase"] == "Promoting"
    assert [step["metadata"]["name"] for step in await world.objects(PROMOTION_STEP)] == ["app-2-dev"]


async def test_a_pinned_bundle_is_not_superseded(world: World, running: Controller) -> None:
    pinned = bundle("app-1")
    pinned["metadata"]["annotations"] = {"kardinal.io/pin": "true"}
    await world.apply(pinned)
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await world.apply(bundle("app-2"))
    await world.wait_for(BUNDLE, "app-2", phase("Promoting"))
    await world.settle()
    assert (await world.get(BUNDLE, "app-1"))["status"]["phase"] == "Promoting"


async def test_bundles_of_other_pipelines_and_finished_ones_are_left_alone(
    world: World, running: Controller, hands: Hands
) -> None:
    await world.apply(pipeline(REPOSITORY, name="other"), bundle("other-1", pipeline="other"))
    await world.apply(bundle("app-1", intent={"target": "dev"}))
    await hands.verify("app-1-dev")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.apply(bundle("app-2"))
    await world.wait_for(BUNDLE, "app-2", phase("Promoting"))
    await world.settle()
    found = {obj["metadata"]["name"]: obj["status"]["phase"] for obj in await world.objects(BUNDLE)}
    assert found == {"app-1": "Verified", "app-2": "Promoting", "other-1": "Promoting"}


async def test_a_newer_bundle_that_cannot_start_ends_nothing(world: World, running: Controller) -> None:
    await world.apply(bundle("app-1"))
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await world.apply(bundle("app-2", intent={"target": "nowhere"}))
    await world.wait_for(BUNDLE, "app-2", phase("Failed"))
    await world.settle()
    assert (await world.get(BUNDLE, "app-1"))["status"]["phase"] == "Promoting"


async def test_of_a_backlog_only_the_newest_is_promoted(world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    # Created within one second, in an order that their names do not tell.
    for name in ("app-5", "app-3", "app-4", "app-1"):
        await world.apply(bundle(name))
    await start_controller(world, standalone=False)
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await world.settle()
    found = {obj["metadata"]["name"]: obj["status"]["phase"] for obj in await world.objects(BUNDLE)}
    assert found == {"app-1": "Promoting", "app-3": "Superseded", "app-4": "Superseded", "app-5": "Superseded"}
    assert [graph["metadata"]["name"] for graph in await world.objects(GRAPH)] == ["app-1"]


async def test_a_failed_bundle_is_kept_as_it_ended(world: World, running: Controller, hands: Hands) -> None:
    await world.apply(bundle("app-1"))
    await hands.step("app-1-dev", state="Failed", message="broken")
    await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    await world.apply(bundle("app-2"))
    await world.wait_for(BUNDLE, "app-2", phase("Promoting"))
    await world.live(timedelta(minutes=1))
    assert (await world.get(BUNDLE, "app-1"))["status"]["phase"] == "Failed"
    assert await world.find(GRAPH, "app-1") is not None


async def test_a_failed_bundle_that_still_moves_elsewhere_is_superseded(
    world: World, controller: Controller, hands: Hands
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=["eu", environment("us", dependsOn=[])]), bundle("app-1"))
    await hands.step("app-1-eu", state="Failed", message="broken")
    await hands.step("app-1-us", state="WaitingForMerge")
    await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    await world.apply(bundle("app-2"))
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))


async def test_a_graph_deleted_by_hand_is_made_again_once(world: World, running: Controller, hands: Hands) -> None:
    await world.apply(bundle("app-1"))
    first = await world.wait_for(GRAPH, "app-1", lambda _: True)
    await world.delete(GRAPH, "app-1")
    second = await world.wait_for(GRAPH, "app-1", lambda graph: graph["metadata"]["uid"] != first["metadata"]["uid"])
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("graphRecreated") is True)
    await world.client.delete(GRAPH, "app-1", "default", uid=second["metadata"]["uid"])
    lost = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    assert reason(lost) == "GraphDeleted"
    await world.settle()
    assert await world.find(GRAPH, "app-1") is None


async def test_a_foreign_graph_in_the_way_is_named_and_waited_for(world: World, running: Controller) -> None:
    foreign = {"apiVersion": GRAPH.api_version, "kind": "Graph", "metadata": {"name": "app-1", "namespace": "default"}}
    await world.apply({**foreign, "spec": {"nodes": []}})
    await world.apply(bundle("app-1"))
    blocked = await world.wait_for(BUNDLE, "app-1", lambda obj: reason(obj) == "GraphNameTaken")
    assert blocked["status"]["phase"] == "Available"
    await world.delete(GRAPH, "app-1")
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))


async def test_deleting_a_bundle_takes_its_graph_and_steps_along(world: World, running: Controller) -> None:
    await world.apply(bundle("app-1"))
    await world.wait_for(PROMOTION_STEP, "app-1-dev", lambda _: True)
    await world.delete(BUNDLE, "app-1")
    await world.until(lambda: gone(world, PROMOTION_STEP, "app-1-dev"))
    await world.until(lambda: gone(world, GRAPH, "app-1"))


async def test_the_history_limit_deletes_the_oldest_finished_bundles(
    world: World, controller: Controller, hands: Hands
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=["dev"], historyLimit=2))
    for number in range(1, 5):
        await world.apply(bundle(f"app-{number}"))
        if number == 3:
            await hands.step("app-3-dev", state="Failed", message="broken")
            await world.wait_for(BUNDLE, "app-3", phase("Failed"))
        else:
            await hands.verify(f"app-{number}-dev")
            await world.wait_for(BUNDLE, f"app-{number}", phase("Verified"))
        await world.live(timedelta(seconds=2))
    await world.apply(bundle("app-5"))
    await world.wait_for(BUNDLE, "app-5", phase("Promoting"))
    await world.settle()
    assert sorted(obj["metadata"]["name"] for obj in await world.objects(BUNDLE)) == ["app-3", "app-4", "app-5"]
    assert sorted(obj["metadata"]["name"] for obj in await world.objects(GRAPH)) == ["app-3", "app-4", "app-5"]


async def test_what_an_environment_runs_is_never_collected(world: World, controller: Controller, hands: Hands) -> None:
    await world.apply(pipeline(REPOSITORY, environments=["dev"], historyLimit=1))
    await world.apply(bundle("app-1"))
    await hands.verify("app-1-dev")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    for number in (2, 3):
        await world.live(timedelta(seconds=2))
        await world.apply(bundle(f"app-{number}"))
        await hands.step(f"app-{number}-dev", state="Failed", message="broken")
        await world.wait_for(BUNDLE, f"app-{number}", phase("Failed"))
    await world.settle()
    assert sorted(obj["metadata"]["name"] for obj in await world.objects(BUNDLE)) == ["app-1", "app-3"]


async def test_quick_steps_are_written_together(world: World, running: Controller, hands: Hands) -> None:
    await world.apply(bundle("app-1"))
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    await world.settle()
    before = world.plane.audit.count(verbs=["patch"], resource="bundles.kardinal.io", user="kardinal:controller")
    await hands.step("app-1-dev", state="Promoting")
    await hands.step("app-1-dev", state="HealthChecking")
    await hands.verify("app-1-dev", "app-1-staging", "app-1-prod")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.live(timedelta(minutes=1))
    after = world.plane.audit.count(verbs=["patch"], resource="bundles.kardinal.io", user="kardinal:controller")
    assert after - before == 1


async def test_progress_is_written_within_a_second(world: World, running: Controller, hands: Hands) -> None:
    await world.apply(bundle("app-1"))
    await hands.step("app-1-dev", state="HealthChecking")
    await world.settle()
    await world.live(timedelta(seconds=1))
    assert states(await world.get(BUNDLE, "app-1"))["dev"] == "HealthChecking"


async def test_each_turn_is_told_once_and_an_idle_hour_writes_nothing(
    world: World, running: Controller, hands: Hands
) -> None:
    await world.apply(bundle("app-1", intent={"target": "dev"}))
    await hands.verify("app-1-dev")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.live(timedelta(minutes=1))
    events = [event for event in await world.events() if event["regarding"]["kind"] == "Bundle"]
    assert sorted((event["reason"], event["type"]) for event in events) == [
        ("Promoting", "Normal"),
        ("Verified", "Normal"),
    ]
    writes = world.plane.audit.writes
    await world.live(timedelta(hours=1))
    assert world.plane.audit.writes == writes


async def test_a_controller_that_restarts_goes_on_where_the_other_stopped(world: World, hands: Hands) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("app-1"))
    first = await start_controller(world, standalone=False)
    await hands.verify("app-1-dev")
    await world.settle()
    await world.stop(first)
    writes = world.plane.audit.count(verbs=["create"], resource="graphs.experimental.kro.run")
    await start_controller(world, standalone=False)
    await hands.verify("app-1-staging", "app-1-prod")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert world.plane.audit.count(verbs=["create"], resource="graphs.experimental.kro.run") == writes


async def test_pipelines_say_whether_they_can_be_translated(world: World, controller: Controller) -> None:
    await world.apply(pipeline(REPOSITORY, promotionPolicy="queue"))
    bad = await world.wait_for(PIPELINE, "my-app", lambda obj: reason(obj) == "NotAvailable")
    ready = condition(bad)
    assert ready is not None
    assert (ready["status"], ready["observedGeneration"]) == ("False", 1)
    assert "spec.promotionPolicy: 'queue' is not available in this version" in ready["message"]
    await world.settle()
    assert [event["regarding"]["name"] for event in await world.events("NotAvailable")] == ["my-app"]
    await world.apply(pipeline(REPOSITORY))
    good = await world.wait_for(PIPELINE, "my-app", lambda obj: reason(obj) == "Translatable")
    ready = condition(good)
    assert ready is not None
    assert (ready["status"], ready["observedGeneration"]) == ("True", 2)


async def test_kinds_that_are_not_built_say_so(world: World, controller: Controller) -> None:
    check = {
        "apiVersion": "kardinal.io/v1alpha1",
        "kind": "MetricCheck",
        "metadata": {"name": "rate", "namespace": "default"},
        "spec": {
            "provider": {"type": "prometheus", "address": "http://prometheus:9090"},
            "query": "up",
            "successCondition": ">= 0.99",
        },
    }
    subscription = {
        "apiVersion": "kardinal.io/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": "watch", "namespace": "default"},
        "spec": {"pipeline": "my-app", "source": {"type": "image", "image": {"repository": "ghcr.io/acme/app"}}},
    }
    await world.apply(check, subscription)
    for resource, name in ((METRIC_CHECK, "rate"), (SUBSCRIPTION, "watch")):
        stored = await world.wait_for(resource, name, lambda obj: reason(obj) == "NotImplemented")
        assert condition(stored)["status"] == "False"  # type: ignore[index]


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
