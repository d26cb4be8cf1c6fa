"""Killed at every step it has written down, a process that is started again finishes the walk, nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from kardinal.kube import Client, ConnectionFailed
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from tests.resilience.processes import IN_TEAM, Local, Process, Shell, make_namespace, phase, wait_for
from tests.support.names import DEV, PROD, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.repository import GitRepository

BEFORE_PUSH = f"{DEV} Promoting: git-push Running"
AFTER_PUSH = f"{DEV} HealthChecking: health-check Running"
WAITING = f"{PROD} WaitingForMerge: wait-for-merge Running"
MERGED = f"{PROD} HealthChecking: health-check Running"
VERIFIED = f"{PROD} Verified: health-check Succeeded"
STAYS = {BEFORE_PUSH, AFTER_PUSH, WAITING, MERGED, VERIFIED}
"""The first point of the walk, and those at which it rests: here nothing overtakes the kill."""

WALK = STAYS | {
    f"{DEV} Verified: health-check Succeeded",
    f"{PROD} Promoting: git-push Running",
    f"{PROD} Promoting: open-pr Running",
}
"""Everything that is written down on the way."""


def _point(step: JsonObject) -> str | None:
    """Return the position of a promotion, as its status says."""
    status = step.get("status") or {}
    if not status.get("steps"):
        return None
    last = status["steps"][-1]
    return f"{step['spec']['environment']} {status['state']}: {last['uses']} {last['state']}"


async def _points(client: Client) -> AsyncIterator[str]:
    """Yield the positions of the promotions over time, until the server is gone."""
    try:
        async with client.watch(PROMOTION_STEP, TEAM, initial_events=True) as events:
            async for event in events:
                if event.type != "BOOKMARK" and (point := _point(event.object)):
                    yield point
    except ConnectionFailed:
        return


@pytest.mark.local_only("kills the server with the programs, which are one process there")
@pytest.mark.timeout(240)
async def test_a_walk_is_finished_whenever_its_process_is_killed(
    shell: Shell, repository: GitRepository, tmp_path: Path
) -> None:
    local = Local(shell, tmp_path / "local", "--simulate")
    await local.up()
    seen: set[str] = set()
    killed: set[str] = set()
    merging: Process | None = None
    async with asyncio.timeout(200), local.client() as client:
        prod = environment(PROD, approval="pr-review")
        await make_namespace(client)
        await client.create(PIPELINE, pipeline(repository, environments=[DEV, prod]))
        await client.create(BUNDLE, bundle("b"))
        while VERIFIED not in killed:
            alive = True
            async for point in _points(client):
                # What was written before the kill took effect is still read; if the walk rests there, it is met again.
                seen.add(point)
                if alive and point not in killed:
                    local.process.kill()
                    killed.add(point)
                    alive = False
                elif alive and point == WAITING and merging is None:
                    installer = local.kubeconfig_for("installer")  # there while it starts, too
                    merging = await shell.start("kardinal", "pr", "merge", "1", *IN_TEAM, kubeconfig=installer)
            await local.process.ended()
            await local.begin()
        await local.process.says("ready")
        await wait_for(client, BUNDLE, phase("Verified"), "b")

        assert merging is not None
        assert await merging.ended() == 0, merging.output

    assert killed >= STAYS
    assert seen >= WALK
    for name in (DEV, PROD):
        (commit,) = repository.promotions(name)
        assert commit.trailers["Kardinal-Bundle"] == "b"
        assert commit.trailers["Kardinal-Step"] == f"{TEAM}/b-{name}"
    assert len(repository.commits()) == 3
    (pull_request,) = orjson.loads(await local.kardinal("pr", "list", "--all", "-o", "json", *IN_TEAM))
    assert (pull_request["number"], pull_request["environment"], pull_request["state"]) == (1, PROD, "merged")
