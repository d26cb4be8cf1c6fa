"""Gates that read metrics: what they see, when they open and close, and how often a server is asked."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, METRIC_CHECK, POLICY_GATE
from kardinal_controller.metric_checks import reconciler
from kardinal_controller.program import ControlPlane
from tests.bundles.reading import REPOSITORY, condition, reason
from tests.bundles.scripted_agent import ScriptedAgent
from tests.metrics.serving import HERE, MetricServer, check, serving_metrics
from tests.support.names import DEV, EU, POLICIES, PROD, STAGING, TEAM, US
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.world import World

CANARY = f"app-1-{PROD}-canary"
HEALTHY = 'metrics["success-rate"].value >= 0.99'


def is_open(obj: JsonObject) -> bool:
    return obj.get("status", {}).get("ready") is True


def is_closed(obj: JsonObject) -> bool:
    return obj.get("status", {}).get("ready") is False


@pytest.fixture
async def server() -> AsyncIterator[MetricServer]:
    async with serving_metrics() as served:
        yield served


@pytest.fixture
async def controller(world: World) -> ControlPlane:
    return await start_controller(world, standalone=False, allow_metric_hosts=(HERE,))


@pytest.fixture
def agent(world: World) -> ScriptedAgent:
    return ScriptedAgent(world)


async def begin(world: World, agent: ScriptedAgent, *objects: JsonObject, **fields: Any) -> None:
    """Take a Bundle to the gates before the last environment."""
    await world.apply(pipeline(REPOSITORY), *objects)
    await world.settle()
    await world.apply(bundle("app-1", **fields))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")


async def test_gate_opens_by_the_value_of_a_metric(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    server.answer = (0.97,)
    await begin(world, agent, check(server, interval="30s"), gate("canary", HEALTHY))
    shut = await world.wait_for(POLICY_GATE, CANARY, is_closed)
    assert shut["status"]["reason"] == "metrics.success-rate.value = 0.97 (threshold: >= 0.99)"
    assert server.queries == ['rate{app="my-app"}']
    server.answer = (0.995,)
    opened = await world.wait_for(POLICY_GATE, CANARY, is_open, within=timedelta(seconds=31))
    assert opened["status"]["reason"] == "metrics.success-rate.value = 0.995 (threshold: >= 0.99)"
    server.answer = (0.5,)
    await world.wait_for(POLICY_GATE, CANARY, is_closed, within=timedelta(seconds=31))


async def test_result_is_in_the_status_of_the_check(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    server.answer = (0.97,)
    await begin(world, agent, check(server), gate("canary", HEALTHY))
    stored = await world.wait_for(METRIC_CHECK, "success-rate", lambda obj: "results" in obj.get("status", {}))
    assert condition(stored)["status"] == "True"  # type: ignore[index]
    (result,) = stored["status"]["results"]
    assert result["at"] == result["since"]
    del result["at"], result["since"]
    wanted = {"namespace": TEAM, "bundle": "app-1", "environment": PROD, "status": "Unknown", "value": 0.97}
    assert result == wanted


@pytest.mark.virtual_time("counts what ten minutes take")
async def test_one_query_an_interval_answers_all_gates(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    server.answer = (0.5,)
    gates = [gate(f"canary-{n}", HEALTHY) for n in range(5)]
    await begin(world, agent, check(server, interval="1m"), *gates)
    await world.apply(pipeline(REPOSITORY, name="other"))
    await world.live(timedelta(seconds=1))
    asked = len(server.queries)
    assert asked == 1
    await world.live(timedelta(minutes=10))
    assert len(server.queries) == asked + 10


@pytest.mark.virtual_time("counts what an hour takes")
async def test_nothing_is_asked_while_nothing_waits(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    await world.apply(check(server, interval="2s"), pipeline(REPOSITORY), gate("canary", HEALTHY))
    await world.live(timedelta(hours=1))
    assert server.queries == []
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await world.wait_for(POLICY_GATE, CANARY, is_open)
    await agent.verify(f"app-1-{PROD}")
    await world.settle()
    asked = len(server.queries)
    assert asked
    await world.live(timedelta(hours=1))
    assert len(server.queries) == asked


@pytest.mark.virtual_time("counts what twenty minutes take")
async def test_value_that_moves_is_not_written_at_each_query(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    server.answer = (0.5,)
    await begin(world, agent, check(server, interval="2s"), gate("canary", HEALTHY, recheckInterval="5m"))
    await world.wait_for(POLICY_GATE, CANARY, is_closed)
    before = {kind: world.audit.count(verbs=["patch"], resource=kind) for kind in WRITTEN}
    for step in range(40):
        server.answer = (0.5 + step / 100,)
        await world.live(timedelta(seconds=30))
    written = {kind: world.audit.count(verbs=["patch"], resource=kind) - before[kind] for kind in WRITTEN}
    # Every five minutes, for people.
    assert written == dict.fromkeys(WRITTEN, 4)


WRITTEN = ("metricchecks.kardinal.io", "policygates.kardinal.io")


async def test_policy_gate_reads_the_check_of_the_policy_namespace(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    async with serving_metrics() as other:
        other.answer = (1.0,)
        server.answer = (0.5,)
        of_team = check(other)
        of_policies = check(server, namespace=POLICIES)
        await begin(world, agent, of_team, of_policies, gate("canary", HEALTHY, namespace=POLICIES))
        await world.wait_for(POLICY_GATE, CANARY, is_closed)
        await world.live(timedelta(seconds=5))
        assert len(server.queries) == 1
        assert other.queries == []


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((), "no data: no series"),
        (("NaN",), "no data: the query gives NaN"),
        ((1.0, 0.9), "the query gives 2 values: combine them in the query, or say how by spec.reduce"),
        (("+Inf",), "the value is inf"),
    ],
    ids=["no series", "NaN", "two series", "infinity"],
)
async def test_gate_without_a_value_is_closed_and_says_why(
    world: World, agent: ScriptedAgent, server: MetricServer, values: tuple[float | str, ...], says: str
) -> None:
    await start_controller(world, standalone=False, allow_metric_hosts=(HERE,))
    server.answer = values
    await begin(world, agent, check(server), gate("canary", HEALTHY))
    shut = await world.wait_for(POLICY_GATE, CANARY, is_closed)
    assert f"metrics.success-rate.value is not set: {says}" in shut["status"]["reason"]


async def test_queries_beyond_those_of_one_run_are_asked_in_the_next(
    world: World, controller: ControlPlane, server: MetricServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconciler, "QUERIES", 1)
    by_environment = check(server, query='rate{env="{{ .Environment }}"}')
    environments = [environment(name, dependsOn=[]) for name in (DEV, EU, US)]
    await world.apply(by_environment, gate("canary", HEALTHY, applies_to=None))
    await world.apply(pipeline(REPOSITORY, environments=environments))
    await world.settle()
    await world.apply(bundle("app-1"))
    for name in (DEV, EU, US):
        await world.wait_for(POLICY_GATE, f"app-1-{name}-canary", is_open, within=timedelta(seconds=5))
    assert sorted(server.queries) == sorted(f'rate{{env="{name}"}}' for name in (DEV, EU, US))


async def test_team_gate_reads_no_check_of_the_policy_namespace(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    await begin(world, agent, check(server, namespace=POLICIES), gate("canary", HEALTHY))
    shut = await world.wait_for(POLICY_GATE, CANARY, is_closed)
    assert f"there is no MetricCheck {TEAM}/" in shut["status"]["reason"]
    assert server.queries == []


@pytest.mark.virtual_time("waits for three minutes")
async def test_forged_result_opens_no_gate(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    server.answer = (0.5,)
    await begin(world, agent, check(server), gate("canary", HEALTHY))
    await world.wait_for(POLICY_GATE, CANARY, is_closed)
    stored = await world.wait_for(METRIC_CHECK, "success-rate", lambda obj: "results" in obj.get("status", {}))
    forged = [{**each, "status": "Success", "value": 1.0} for each in stored["status"]["results"]]
    await world.client.patch(
        METRIC_CHECK, "success-rate", TEAM, {"status": {"results": forged}}, kind=PatchType.MERGE, subresource="status"
    )
    await world.live(timedelta(minutes=3))
    assert is_closed(await world.get(POLICY_GATE, CANARY))


async def test_gate_whose_check_does_not_exist_opens_once_it_does(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    await begin(world, agent, gate("canary", HEALTHY))
    shut = await world.wait_for(POLICY_GATE, CANARY, is_closed)
    assert f"there is no MetricCheck {TEAM}/success-rate" in shut["status"]["reason"]
    await world.apply(check(server))
    await world.wait_for(POLICY_GATE, CANARY, is_open, within=timedelta(seconds=1))
    await world.delete(METRIC_CHECK, "success-rate")
    await world.wait_for(POLICY_GATE, CANARY, is_closed, within=timedelta(seconds=1))


async def test_server_that_is_not_listed_is_not_asked(world: World, agent: ScriptedAgent, server: MetricServer) -> None:
    await start_controller(world, standalone=False)
    await begin(world, agent, check(server), gate("canary", HEALTHY))
    stored = await world.wait_for(METRIC_CHECK, "success-rate", lambda obj: reason(obj) == "HostNotAllowed")
    remedy = f"Ask the operator for --allow-metric-hosts {server.endpoint.host}={TEAM}"
    assert remedy in condition(stored)["message"]  # type: ignore[index]
    shut = await world.wait_for(POLICY_GATE, CANARY, is_closed)
    assert remedy in shut["status"]["reason"]
    assert server.queries == []


@pytest.mark.virtual_time("waits for an answer to expire")
async def test_open_gate_stays_open_over_a_restart(world: World, agent: ScriptedAgent, server: MetricServer) -> None:
    controller = await start_controller(world, standalone=False, allow_metric_hosts=(HERE,))
    await begin(world, agent, check(server), gate("canary", HEALTHY))
    before = await world.wait_for(POLICY_GATE, CANARY, is_open)
    await world.stop(controller)
    await start_controller(world, standalone=False, allow_metric_hosts=(HERE,))
    await world.live(timedelta(minutes=6))
    after = await world.get(POLICY_GATE, CANARY)
    assert after["status"]["history"] == before["status"]["history"]


async def test_status_and_age_are_read(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    expression = 'metrics["success-rate"].status == "Success" && metrics["success-rate"].ageSeconds < 90'
    await begin(world, agent, check(server), gate("canary", expression))
    opened = await world.wait_for(POLICY_GATE, CANARY, is_open)
    read = re.fullmatch(
        r"metrics\.success-rate\.status = Success, metrics\.success-rate\.ageSeconds = (\S+) \(threshold: < 90\)",
        opened["status"]["reason"],
    )
    assert read is not None
    assert 0 <= float(read[1]) < 90


async def test_bundle_says_which_metric_holds_it(
    world: World, controller: ControlPlane, agent: ScriptedAgent, server: MetricServer
) -> None:
    server.answer = (0.5,)
    await begin(world, agent, check(server), gate("canary", HEALTHY))
    await world.wait_for(POLICY_GATE, CANARY, is_closed)
    event = (await world.events("GateClosed"))[0]
    assert "metrics.success-rate.value = 0.5" in event["note"]
    assert (await world.get(BUNDLE, "app-1"))["status"]["phase"] == "Promoting"
