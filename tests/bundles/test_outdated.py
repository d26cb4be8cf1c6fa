"""A Bundle that goes by an older Pipeline or older gates says so, with the command that mends it."""

from __future__ import annotations

from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from kardinal_controller.program import ControlPlane
from tests.bundles.in_memory import BundleController
from tests.bundles.reading import REPOSITORY, condition, phase, states
from tests.bundles.scripted_agent import ScriptedAgent
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.support.names import DEV, POLICIES, PROD, STAGING
from tests.support.objects import bundle, gate, pipeline
from tests.support.world import World

__all__ = ["cli"]

MENDED = "file:///mended"
AGAIN = "kardinal create bundle my-app --image app=ghcr.io/acme/my-app:1.1.0"


def outdated(obj: JsonObject) -> str | None:
    found = condition(obj, "Outdated")
    return found["reason"] if found else None


async def test_a_changed_pipeline_is_told_with_the_command_until_the_bundle_goes_by_it(
    cli: Cli, world: World, running: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}")
    await world.apply(pipeline(MENDED))
    told = await world.wait_for(BUNDLE, "app-1", lambda obj: outdated(obj) == "PipelineChanged")
    found = condition(told, "Outdated")
    assert found is not None
    assert f"with today's: {AGAIN}; other today: {STAGING} (git.url), {PROD} (git.url)" in found["message"]
    (event,) = await world.events("PipelineChanged")
    assert event["regarding"]["name"] == "app-1"

    shown = " ".join((await cli("status", "my-app")).split())
    assert f"with today's: {AGAIN}" in shown
    assert f"NEXT {AGAIN} to promote it by the Pipeline and gates of today" in shown
    explained = " ".join((await cli("explain", "my-app", "--env", PROD)).split())
    assert f"NOTE: the Bundle goes by the Pipeline and gates that it started with; with today's: {AGAIN}" in explained

    await world.apply(pipeline(REPOSITORY))
    await world.wait_for(BUNDLE, "app-1", lambda obj: outdated(obj) is None)
    await world.apply(pipeline(MENDED))
    await agent.step(f"app-1-{STAGING}", state="Failed", message="git.url: there is no repository")
    failed = await world.wait_for(BUNDLE, "app-1", lambda obj: phase("Failed")(obj) and bool(outdated(obj)))
    assert AGAIN in str(condition(failed, "Outdated"))
    ready = condition(failed)
    assert ready is not None
    assert ready["message"].endswith(f"the Pipeline has changed since; to try with today's: {AGAIN}")


async def test_gates_that_come_and_go_are_told_and_an_extended_graph_is_not_called_old(
    bundles: BundleController,
) -> None:
    await bundles.apply(bundle("app-1", intent={"target": STAGING}))
    await bundles.apply(gate("release", "true", applies_to=STAGING, namespace=POLICIES))
    told = bundles.get("app-1")
    assert outdated(told) == "GatesChanged"
    assert f"{STAGING} (gate {POLICIES}/release is new)" in str(condition(told, "Outdated"))
    await bundles.delete(POLICY_GATE, "release", POLICIES)
    assert outdated(bundles.get("app-1")) is None
    seen: list[str | None] = []
    bundles.caches.bundles.on_event(lambda event: seen.append(outdated(event.new or {})))
    await bundles.patch("app-1", {"spec": {"intent": {"target": PROD}}})
    assert (bundles.stored(GRAPH, "app-1") or {})["metadata"]["generation"] == 2
    assert set(seen) == {None}


async def test_an_environment_that_came_since_is_told_until_the_bundle_is_sent_there(alone: BundleController) -> None:
    await alone.apply(pipeline(REPOSITORY, environments=[DEV, STAGING]), bundle("app-1"))
    await alone.apply(pipeline(REPOSITORY))
    told = alone.get("app-1")
    assert outdated(told) == "EnvironmentAdded"
    command = f"kardinal promote my-app --bundle app-1 --env {PROD}"
    assert f"{PROD} came to the Pipeline since; to go there: {command}" in str(condition(told, "Outdated"))
    await alone.ask("app-1", {"id": "one", "action": "promote", "environment": PROD})
    assert outdated(alone.get("app-1")) is None
    assert set(states(alone.get("app-1"))) == {DEV, STAGING, PROD}


async def test_a_graph_that_another_user_changed_is_not_compared(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1"))
    nodes = (bundles.stored(GRAPH, "app-1") or {})["spec"]["nodes"]
    without = [{key: value for key, value in node.items() if key != "template"} for node in nodes]
    await bundles.patch("app-1", {"spec": {"nodes": without}}, resource=GRAPH)
    await bundles.apply(pipeline(MENDED))
    found = bundles.get("app-1")
    assert outdated(found) is None
    assert found["status"]["phase"] == "Promoting"
