"""With nothing to do nothing is done: no API writes, no Git operations, however long the hour."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from kardinal.promotion.kinds import POLICY_GATE
from kardinal_controller.program import ControlPlane
from kardinal_local.plane.audit import WRITES, LoggedRequest
from tests.support.names import DEV, POLICIES, PROD
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.repository import GitRepository
from tests.support.world import World

JsonObject = dict[str, Any]
Reached = Callable[..., Awaitable[JsonObject]]
Deployed = Callable[[str], Awaitable[None]]


@contextmanager
def _writes(world: World) -> Iterator[list[str]]:
    """Yield what is written meanwhile, a line each."""
    seen: list[str] = []

    def note(request: LoggedRequest) -> None:
        if request.verb in WRITES:
            where = f"{request.resource}/{request.subresource}".rstrip("/")
            seen.append(f"{request.user}: {request.verb} {where} {request.name}")

    subscription = world.audit.subscribe(note)
    try:
        yield seen
    finally:
        subscription.close()


async def _rest(world: World) -> None:
    """Let what was put off, so that one write may stand for several, be written."""
    await world.idle(timedelta(minutes=1))


def _git_operations(controller: ControlPlane) -> float:
    """Return the fetches, reads and writes of repositories so far."""
    return sum(
        sample.value
        for metric in controller.manager.metrics.collect()
        for sample in metric.samples
        if sample.name == "kardinal_git_operation_duration_seconds_count"
    )


async def test_an_hour_after_the_walk_nothing_is_written_or_fetched(
    world: World,
    repository: GitRepository,
    controller_alone: ControlPlane,
    deployed: Deployed,
    phase: Reached,
) -> None:
    operations = _git_operations(controller_alone)
    with _writes(world) as written:
        await world.apply(pipeline(repository, environments=[DEV]), bundle("b"))
        await deployed(DEV)
        await phase("b", "Verified")
        await world.settle()
        await _rest(world)
    assert any("bundles.kardinal.io/status b" in line for line in written)
    assert _git_operations(controller_alone) > operations
    operations = _git_operations(controller_alone)
    with _writes(world) as written:
        await world.idle(timedelta(hours=1))
    assert written == []
    assert _git_operations(controller_alone) == operations


async def test_an_hour_before_a_closed_gate_nothing_is_written_or_fetched(
    world: World,
    repository: GitRepository,
    controller_alone: ControlPlane,
    deployed: Deployed,
    state: Reached,
) -> None:
    await world.apply(
        pipeline(repository, environments=[DEV, PROD]),
        gate("never", "environment.name == 'elsewhere'", namespace=POLICIES),
        gate("long-soak", "bundle.upstreamSoakMinutes >= 600", namespace=POLICIES),
        bundle("b"),
    )
    await deployed(DEV)
    await state("b", DEV, "Verified")
    await world.wait_for(POLICY_GATE, f"b-{PROD}-never", lambda obj: "lastEvaluatedAt" in obj.get("status", {}))
    await _rest(world)
    operations = _git_operations(controller_alone)
    with _writes(world) as written:
        await world.idle(timedelta(hours=1))
    assert written == []
    assert _git_operations(controller_alone) == operations


@pytest.mark.virtual_time("counts what an hour takes")
async def test_an_open_gate_before_a_closed_one_writes_only_what_freshness_needs(
    world: World,
    repository: GitRepository,
    controller_alone: ControlPlane,
    deployed: Deployed,
    state: Reached,
) -> None:
    await world.apply(
        pipeline(repository, environments=[DEV, PROD]),
        gate("always", "true", namespace=POLICIES, recheckInterval="5m"),
        gate("never", "false", namespace=POLICIES),
        bundle("b"),
    )
    await deployed(DEV)
    await state("b", DEV, "Verified")
    await world.wait_for(POLICY_GATE, f"b-{PROD}-always", lambda obj: obj.get("status", {}).get("ready") is True)
    await _rest(world)
    with _writes(world) as written:
        await world.idle(timedelta(hours=1))
    assert set(written) == {f"{world.user('controller')}: patch policygates.kardinal.io/status b-{PROD}-always"}
    assert 11 <= len(written) <= 12


async def test_an_hour_of_waiting_for_a_merge_writes_nothing(
    world: World, repository: GitRepository, controller_alone: ControlPlane, state: Reached
) -> None:
    await world.apply(pipeline(repository, environments=[environment(PROD, approval="pr-review")]), bundle("b"))
    await state("b", PROD, "WaitingForMerge")
    await _rest(world)
    with _writes(world) as written:
        await world.idle(timedelta(minutes=10))
    assert written == []
