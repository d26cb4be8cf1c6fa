"""Errors that an author has to fix stay in the status of the Bundle until they are fixed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.kube import Invalid
from kardinal.objects import GRAPH
from kardinal.promotion.kinds import BUNDLE, PIPELINE, SUBSCRIPTION
from kardinal_controller.program import ControlPlane
from tests.bundles.in_memory import BundleController
from tests.bundles.reading import REPOSITORY, condition, patch, phase, reason, states
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, EU, POLICIES, PROD, STAGING, TEAM, US, of_run
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.world import World


async def test_a_target_that_does_not_exist_fails_the_bundle_until_it_is_corrected(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1", intent={"target": DEV}))
    await bundles.verify("app-1", DEV)
    await bundles.patch("app-1", {"spec": {"intent": {"target": of_run("prd")}}})
    wrong = bundles.get("app-1")
    assert wrong["status"]["phase"] == "Failed"
    invalid = condition(wrong, "InvalidSpec")
    assert invalid is not None
    assert f"did you mean {PROD}?" in invalid["message"]
    assert states(wrong) == {DEV: "Verified"}
    await bundles.patch("app-1", {"spec": {"intent": {"target": DEV}}})
    assert bundles.phase("app-1") == "Verified"
    assert condition(bundles.get("app-1"), "InvalidSpec") is None


async def test_a_bundle_that_goes_everywhere_gets_no_target(world: World) -> None:
    specs: list[dict[str, Any]] = [{}, {"intent": {}}, {"intent": {"skip": [STAGING]}}]
    await world.apply(pipeline(REPOSITORY))
    for number, spec in enumerate(specs, 1):
        await world.apply(bundle(f"app-{number}", **spec))
        with pytest.raises(Invalid, match="moves forward"):
            await patch(world, f"app-{number}", {"spec": {"intent": {"target": DEV}}})
    # From one target to the next, and from the last to all, is forward.
    await world.apply(bundle("app-4", intent={"target": DEV}))
    await patch(world, "app-4", {"spec": {"intent": {"target": STAGING}}})
    await patch(world, "app-4", {"spec": {"intent": {"target": None}}})
    with pytest.raises(Invalid, match="moves forward"):
        await patch(world, "app-4", {"spec": {"intent": {"target": STAGING}}})


async def test_a_bundle_waits_for_its_pipeline_and_starts_when_that_is_there_and_correct(
    world: World, controller: ControlPlane
) -> None:
    await world.apply(bundle("app-1"))
    waiting = await world.wait_for(BUNDLE, "app-1", lambda obj: reason(obj) == "PipelineNotFound")
    assert waiting["status"]["phase"] == "Available"
    assert await world.objects(GRAPH) == []
    cycle = [environment(EU, dependsOn=[US]), environment(US, dependsOn=[EU])]
    await world.apply(pipeline(REPOSITORY, environments=cycle))
    invalid = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    found = condition(invalid, "InvalidSpec")
    assert found is not None
    assert found["reason"] == "DependencyCycle"
    assert "Pipeline/my-app spec.environments: the environments depend on each other" in found["message"]
    assert await world.objects(GRAPH) == []
    await world.apply(pipeline(REPOSITORY, environments=[EU, US]))
    corrected = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    assert condition(corrected, "InvalidSpec") is None


async def test_a_bundle_without_label_is_invalid_until_it_gets_one(bundles: BundleController) -> None:
    lost = bundle("app-1")
    del lost["metadata"]["labels"]["kardinal.io/pipeline"]
    await bundles.apply(lost)
    invalid = bundles.get("app-1")
    assert (invalid["status"]["phase"], reason(invalid)) == ("Failed", "InvalidSpec")
    assert "metadata.labels[kardinal.io/pipeline]" in str(condition(invalid, "InvalidSpec"))
    await bundles.patch("app-1", {"metadata": {"labels": {"kardinal.io/pipeline": "my-app"}}})
    assert bundles.phase("app-1") == "Promoting"


async def test_a_denied_skip_names_environment_and_gate_and_creates_nothing(
    world: World, running: ControlPlane
) -> None:
    await world.apply(gate("soak", "true", applies_to=STAGING, namespace=POLICIES))
    await world.settle()
    await world.apply(bundle("app-1", intent={"skip": [STAGING]}))
    denied = await world.wait_for(BUNDLE, "app-1", phase("SkipDenied"))
    ready = condition(denied)
    assert ready is not None
    assert ready["message"].startswith(f"skipping {STAGING} ")
    assert "gate soak" in ready["message"]
    assert await world.objects(GRAPH) == []
    permission = gate(
        "hotfix",
        'bundle.name == "app-1"',
        applies_to=STAGING,
        namespace=POLICIES,
        labels={"kardinal.io/type": "skip-permission"},
    )
    await world.apply(permission)
    started = await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    assert list(states(started)) == [DEV, PROD]


async def test_a_changed_label_is_ignored_with_a_warning(world: World, running: ControlPlane) -> None:
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


async def test_graph_of_another_owner_is_waited_for_and_a_deleted_one_created_again_once(
    world: World, running: ControlPlane, agent: ScriptedAgent
) -> None:
    foreign = {"apiVersion": GRAPH.api_version, "kind": "Graph", "metadata": {"name": "app-1", "namespace": TEAM}}
    await world.apply({**foreign, "spec": {"nodes": []}})
    await world.apply(bundle("app-1"))
    blocked = await world.wait_for(BUNDLE, "app-1", lambda obj: reason(obj) == "GraphNameTaken")
    assert blocked["status"]["phase"] == "Available"
    await world.delete(GRAPH, "app-1")
    await world.wait_for(BUNDLE, "app-1", phase("Promoting"))
    first = await world.get(GRAPH, "app-1")

    await world.delete(GRAPH, "app-1")
    second = await world.wait_for(GRAPH, "app-1", lambda graph: graph["metadata"]["uid"] != first["metadata"]["uid"])
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("graphRecreated") is True)
    await world.client.delete(GRAPH, "app-1", TEAM, uid=second["metadata"]["uid"])
    lost = await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    assert reason(lost) == "GraphDeleted"
    assert "kardinal create bundle my-app --image app=ghcr.io/acme/my-app:1.1.0" in str(condition(lost))
    await world.settle()
    assert await world.find(GRAPH, "app-1") is None


async def test_kind_that_is_not_implemented_has_a_condition_that_says_so(
    world: World, controller: ControlPlane
) -> None:
    subscription = {
        "apiVersion": "kardinal.io/v1alpha1",
        "kind": "Subscription",
        "metadata": {"name": "watch", "namespace": TEAM},
        "spec": {"pipeline": "my-app", "source": {"type": "image", "image": {"repository": "ghcr.io/acme/app"}}},
    }
    await world.apply(subscription)
    stored = await world.wait_for(SUBSCRIPTION, "watch", lambda obj: reason(obj) == "NotImplemented")
    assert condition(stored)["status"] == "False"  # type: ignore[index]


async def test_engine_error_is_in_the_status_of_the_bundle(
    world: World, running: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(gate("soak", "true"), gate(f"app-1-{PROD}-soak", "false", applies_to="nowhere"))
    await world.settle()
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    stuck = await world.wait_for(BUNDLE, "app-1", lambda obj: reason(obj) == "GraphTrouble")
    assert stuck["status"]["phase"] == "Promoting"
    assert str(condition(stuck)).find("Conflict") > 0


async def test_a_target_that_moves_while_the_pipeline_is_gone_waits_for_it(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1", intent={"target": DEV}))
    await bundles.verify("app-1", DEV)
    await bundles.delete(PIPELINE, "my-app")
    await bundles.patch("app-1", {"spec": {"intent": {"target": STAGING}}})
    assert bundles.phase("app-1") == "Failed"
    assert condition(bundles.get("app-1"), "InvalidSpec")["reason"] == "PipelineNotFound"  # type: ignore[index]
    await bundles.live(timedelta(minutes=1))
    assert bundles.phase("app-1") == "Failed"
    await bundles.apply(pipeline(REPOSITORY))
    assert bundles.phase("app-1") == "Promoting"
    await bundles.verify("app-1", STAGING)
    assert bundles.phase("app-1") == "Verified"


async def test_a_graph_that_cannot_be_created_again_is_created_when_the_pipeline_is_corrected(
    bundles: BundleController,
) -> None:
    await bundles.apply(bundle("app-1"))
    await bundles.apply(pipeline(REPOSITORY, environments=[environment(DEV, update={"strategy": "oci"})]))
    await bundles.delete(GRAPH, "app-1")
    assert bundles.phase("app-1") == "Failed"
    assert bundles.stored(GRAPH, "app-1") is None
    await bundles.apply(pipeline(REPOSITORY))
    assert bundles.phase("app-1") == "Promoting"
    assert bundles.stored(GRAPH, "app-1") is not None
