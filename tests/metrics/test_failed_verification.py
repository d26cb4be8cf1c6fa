"""Metrics that fail after a good health check, while their time runs, and what `onHealthFailure` makes of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from tests.bundles.reading import phase, reason
from tests.metrics.serving import HERE, MetricServer, check, serving_metrics, vector
from tests.support.names import DEV, PROD, STAGING
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.reviewer import merge_pull_request, open_pull_requests
from tests.support.world import World

pytestmark = pytest.mark.virtual_time("waits for some minutes")

GOOD = "1.1.0"
BAD = "2.0.0"
GOOD_ANSWERS = 4
"""The queries about the bad version that succeed before it fails."""


@pytest.fixture
async def server() -> AsyncIterator[MetricServer]:
    """Serve metrics that are good of every version, and of the bad one for a while."""
    async with serving_metrics() as served:

        async def answer(request: web.Request) -> web.Response:
            asked = [query for query in served.queries if BAD in query]
            bad = BAD in (await request.text()) and len(asked) > GOOD_ANSWERS
            return web.json_response(vector(0.5 if bad else 1.0))

        served.answer = answer
        yield served


async def begin(
    world: World, repository: GitRepository, server: MetricServer, environments: Sequence[str | dict[str, Any]]
) -> None:
    await start_controller(world, allow_metric_hosts=(HERE,))
    await start_simulator(world)
    asked = check(server, interval="10s", query='up{v="{{ .Version }}"}')
    await world.apply(asked, pipeline(repository, environments=environments))
    await world.settle()


def verified_by_metrics(name: str, **fields: Any) -> dict[str, Any]:
    return environment(name, verify={"metrics": ["success-rate"], "for": "2m"}, **fields)


async def reached(world: World, name: str, environment: str, state: str) -> JsonObject:
    return await world.wait_for(
        PROMOTION_STEP, f"{name}-{environment}", lambda obj: obj.get("status", {}).get("state") == state
    )


async def promoted(world: World, name: str, tag: str) -> None:
    await world.apply(bundle(name, tag=tag))
    await world.wait_for(BUNDLE, name, phase("Verified"))
    await world.live(timedelta(seconds=1))


async def fails(world: World, name: str, environment: str) -> JsonObject:
    """Wait until the metrics of a Bundle fail that have passed before; returns the failed Bundle."""
    failed = await reached(world, name, environment, "Failed")
    assert reason(failed) == "MetricsFailed"
    assert "verifyingSince" in failed["status"], "the environment was healthy"
    return await world.wait_for(BUNDLE, name, phase("Failed"))


async def test_failure_in_the_last_environment_is_rolled_back(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    await begin(world, repository, server, [DEV, verified_by_metrics(PROD, onHealthFailure="rollback")])
    await promoted(world, "app-1", GOOD)
    await world.apply(bundle("app-2", tag=BAD))
    failed = await fails(world, "app-2", PROD)
    back = failed["status"]["environments"][PROD]["rolledBackBy"]
    await world.wait_for(BUNDLE, back, phase("Verified"))
    assert GOOD in repository.read(f"environments/{PROD}/kustomization.yaml")
    assert BAD in repository.read(f"environments/{DEV}/kustomization.yaml")
    asked = [query for query in server.queries if BAD in query]
    assert len(asked) == GOOD_ANSWERS + 1


async def test_failure_aborts_where_the_bundle_has_not_landed(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    environments: list[str | dict[str, Any]] = [
        DEV,
        verified_by_metrics(STAGING, dependsOn=[DEV], onHealthFailure="abort"),
        environment(PROD, dependsOn=[DEV], approval="pr-review"),
    ]
    await begin(world, repository, server, environments)
    await world.apply(bundle("app-1", tag=BAD))
    await reached(world, "app-1", PROD, "WaitingForMerge")
    failed = await fails(world, "app-1", STAGING)
    assert failed["status"]["environments"][PROD]["stopped"] == f"stopped because {STAGING} failed"
    await reached(world, "app-1", PROD, "Failed")
    assert await open_pull_requests(world, repository) == []
    assert BAD not in repository.read(f"environments/{PROD}/kustomization.yaml")


async def test_failure_is_rolled_back_wherever_the_bundle_has_landed(
    world: World, repository: GitRepository, server: MetricServer
) -> None:
    environments: list[str | dict[str, Any]] = [
        DEV,
        environment(STAGING, approval="pr-review"),
        verified_by_metrics(PROD, onHealthFailure="rollback-all"),
    ]
    await begin(world, repository, server, environments)
    for number, (name, tag) in enumerate((("app-1", GOOD), ("app-2", BAD)), start=1):
        await world.apply(bundle(name, tag=tag))
        await reached(world, name, STAGING, "WaitingForMerge")
        await merge_pull_request(world, repository, number)
        if tag != BAD:
            await world.wait_for(BUNDLE, name, phase("Verified"))
            await world.live(timedelta(seconds=1))
    failed = await fails(world, "app-2", PROD)
    back = {name: entry["rolledBackBy"] for name, entry in failed["status"]["environments"].items()}
    assert len(set(back.values())) == 3
    said = failed["status"]["conditions"][0]["message"]
    assert all(f"; Bundle {rollback} rolls {name} back" in said for name, rollback in back.items())
    notes = {event["note"] for event in await world.events("RollingBack")}
    assert notes == {
        f"{PROD} failed, and Bundle {back[PROD]} rolls it back",
        f"{PROD} failed, and Bundle {back[STAGING]} rolls {STAGING} back",
        f"{PROD} failed, and Bundle {back[DEV]} rolls {DEV} back",
    }
    await world.wait_for(BUNDLE, back[DEV], phase("Verified"))
    await world.wait_for(BUNDLE, back[PROD], phase("Verified"))
    await reached(world, back[STAGING], STAGING, "WaitingForMerge")
    assert BAD in repository.read(f"environments/{STAGING}/kustomization.yaml")
    await merge_pull_request(world, repository, 3)
    await world.wait_for(BUNDLE, back[STAGING], phase("Verified"))
    for name in (DEV, STAGING, PROD):
        assert GOOD in repository.read(f"environments/{name}/kustomization.yaml")
