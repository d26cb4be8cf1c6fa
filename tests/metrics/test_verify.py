"""Environments that are Verified by metrics: they pass for long enough, fail, or are waited for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from tests.agent.promotion_steps import deploy
from tests.bundles.reading import phase, reason
from tests.metrics.serving import HERE, MetricServer, check, serving_metrics
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_agent, start_controller, start_simulator
from tests.support.repository import APPLICATION, GitRepository
from tests.support.world import World

STEP = f"app-1-{DEV}"


@pytest.fixture
async def server() -> AsyncIterator[MetricServer]:
    async with serving_metrics() as served:
        yield served


async def begin(world: World, repository: GitRepository, *objects: JsonObject, **fields: Any) -> None:
    await start_controller(world, allow_metric_hosts=(HERE,))
    await start_agent(world, shard="metrics")
    await start_simulator(world)
    verify = {"metrics": ["success-rate"], "for": "2m"}
    verified = environment(DEV, verify=verify, shard="metrics", **fields)
    await world.apply(*objects, pipeline(repository, environments=[verified]))
    await world.settle()
    await world.apply(bundle("app-1"))


def state(name: str) -> Any:
    return lambda obj: obj.get("status", {}).get("state") == name


def is_verifying(obj: JsonObject) -> bool:
    return "verifyingSince" in obj.get("status", {})


def moment(obj: JsonObject, name: str) -> datetime:
    return datetime.fromisoformat(obj["status"][name])


@pytest.mark.virtual_time("waits for two minutes")
async def test_environment_is_verified_once_its_metrics_have_passed_for_long_enough(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    server.answer = (0.998,)
    await begin(world, repository, check(server, interval="10s", query='up{v="{{ .Version }}"}'))
    waiting = await world.wait_for(PROMOTION_STEP, STEP, is_verifying)
    assert waiting["status"]["state"] == "HealthChecking"
    verified = await world.wait_for(PROMOTION_STEP, STEP, state("Verified"))
    waited = moment(verified, "verifiedAt") - moment(verified, "verifyingSince")
    assert timedelta(minutes=2) <= waited <= timedelta(minutes=2, seconds=15)
    assert verified["status"]["evidence"]["metrics"] == {"success-rate": 0.998}
    assert set(server.queries) == {'up{v="1.1.0"}'}
    assert len(server.queries) == 13
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert done["status"]["environments"][DEV]["evidence"]["metrics"] == {"success-rate": 0.998}
    await world.live(timedelta(minutes=10))
    assert len(server.queries) == 13


@pytest.mark.virtual_time("waits for some minutes")
async def test_value_that_fails_for_the_limit_fails_the_promotion(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    server.answer = (0.5,)
    await begin(world, repository, check(server, interval="10s", failureLimit=3))
    failed = await world.wait_for(PROMOTION_STEP, STEP, state("Failed"))
    assert reason(failed) == "MetricsFailed"
    assert failed["status"]["message"] == "metric success-rate fails, 3 times in a row: the value is 0.5"
    assert len(server.queries) == 3
    assert (await world.wait_for(BUNDLE, "app-1", phase("Failed")))["status"]["environments"][DEV]["state"] == "Failed"


@pytest.mark.virtual_time("waits for some minutes")
async def test_time_counts_anew_after_a_value_that_does_not_pass(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    server.answer = (0.998,)
    await begin(world, repository, check(server, interval="10s"))
    await world.wait_for(PROMOTION_STEP, STEP, is_verifying)
    await world.live(timedelta(seconds=90))
    server.answer = (0.97,)
    waiting = await world.wait_for(PROMOTION_STEP, STEP, lambda obj: "0.97" in obj["status"]["message"])
    assert waiting["status"]["message"] == "waits for metric success-rate: the value is 0.97"
    server.answer = (0.998,)
    again = world.clock.now()
    verified = await world.wait_for(PROMOTION_STEP, STEP, state("Verified"))
    assert moment(verified, "verifiedAt") - again >= timedelta(minutes=2)


@pytest.mark.virtual_time("waits for half an hour")
async def test_outage_of_the_server_fails_nothing(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    server.answer = ()
    await begin(world, repository, check(server, interval="10s"), onHealthFailure="abort")
    await world.wait_for(PROMOTION_STEP, STEP, is_verifying)
    await world.live(timedelta(minutes=30))
    waiting = await world.get(PROMOTION_STEP, STEP)
    assert waiting["status"]["state"] == "HealthChecking"
    assert waiting["status"]["message"] == "waits for metric success-rate: no data: no series"
    server.answer = (1.0,)
    await world.wait_for(PROMOTION_STEP, STEP, state("Verified"), within=timedelta(minutes=3))


@pytest.mark.virtual_time("waits for some minutes")
async def test_successes_before_the_promotion_do_not_count(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    server.answer = (1.0,)
    canary = gate("canary", 'metrics["success-rate"].value > 0.9', applies_to=DEV)
    await begin(world, repository, check(server, interval="10s"), canary)
    verified = await world.wait_for(PROMOTION_STEP, STEP, state("Verified"))
    waited = moment(verified, "verifiedAt") - moment(verified, "verifyingSince")
    assert timedelta(minutes=2) <= waited <= timedelta(minutes=2, seconds=25)


@pytest.mark.virtual_time("waits for twenty minutes")
async def test_time_and_deadline_count_anew_after_health_broke(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    server.answer = (1.0,)
    await deploy(world)
    await start_controller(world, allow_metric_hosts=(HERE,))
    long = {"metrics": ["success-rate"], "for": "15m"}
    verified = environment(DEV, verify=long, health={"resource": {"name": APPLICATION}, "timeout": "10m"})
    await world.apply(check(server), pipeline(repository, environments=[verified]))
    await world.settle()
    await world.apply(bundle("app-1"))
    first = moment(await world.wait_for(PROMOTION_STEP, STEP, is_verifying), "verifyingSince")
    # Past the time that the environment had to become healthy.
    await world.live(timedelta(minutes=11))
    asked = len(server.queries)
    await deploy(world, available=False)
    broken = await world.wait_for(PROMOTION_STEP, STEP, lambda obj: not is_verifying(obj))
    assert broken["status"]["state"] == "HealthChecking"
    await world.live(timedelta(minutes=5))
    assert len(server.queries) == asked
    await deploy(world)
    again = moment(await world.wait_for(PROMOTION_STEP, STEP, is_verifying), "verifyingSince")
    assert again - first >= timedelta(minutes=16)
    done = await world.wait_for(PROMOTION_STEP, STEP, state("Verified"))
    assert moment(done, "verifiedAt") - again >= timedelta(minutes=15)


@pytest.mark.virtual_time("waits for ten minutes")
async def test_environment_that_stays_broken_fails_after_its_timeout(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    await deploy(world)
    await start_controller(world, allow_metric_hosts=(HERE,))
    long = {"metrics": ["success-rate"], "for": "15m"}
    verified = environment(DEV, verify=long, health={"resource": {"name": APPLICATION}, "timeout": "10m"})
    await world.apply(check(server), pipeline(repository, environments=[verified]))
    await world.settle()
    await world.apply(bundle("app-1"))
    await world.wait_for(PROMOTION_STEP, STEP, is_verifying)
    await deploy(world, available=False)
    broken = world.clock.now()
    failed = await world.wait_for(PROMOTION_STEP, STEP, state("Failed"))
    assert reason(failed) == "HealthTimeout"
    assert timedelta(minutes=10) <= world.clock.now() - broken <= timedelta(minutes=11)


async def test_value_that_a_gate_has_read_is_in_the_evidence(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    server.answer = (0.9975,)
    await start_controller(world, allow_metric_hosts=(HERE,))
    await start_simulator(world)
    canary = gate("canary", 'metrics["success-rate"].value > 0.9', applies_to=DEV)
    await world.apply(check(server), canary, pipeline(repository, environments=[DEV]))
    await world.settle()
    await world.apply(bundle("app-1"))
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert done["status"]["environments"][DEV]["evidence"]["metrics"] == {"success-rate": 0.9975}


async def test_check_that_does_not_exist_is_waited_for(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    await begin(world, repository)
    waiting = await world.wait_for(PROMOTION_STEP, STEP, is_verifying)
    assert "MetricCheck success-rate" in waiting["status"]["message"]


async def test_check_that_may_not_be_asked_is_said(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    await begin(world, repository, check("https://prometheus.example.com"))
    await world.wait_for(PROMOTION_STEP, STEP, is_verifying)
    waiting = await world.wait_for(PROMOTION_STEP, STEP, lambda obj: "metric success-rate" in obj["status"]["message"])
    assert f"--allow-metric-hosts prometheus.example.com={TEAM}" in waiting["status"]["message"]
