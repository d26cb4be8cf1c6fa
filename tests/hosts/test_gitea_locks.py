"""An agent that is killed in the middle of a push leaves locks at a real Gitea, and people are told which."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from kardinal.kube import Client, load_connection
from kardinal.objects import NAMESPACE, SECRET, JsonObject
from kardinal.promotion.api import names
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal.tree.git_names import TRAILER_BUNDLE
from kardinal_local.plane import LocalPlane
from tests.hosts.projects import git_secret, pipeline_of
from tests.hosts.walk import locks
from tests.resilience.lives.clock import FastClock
from tests.resilience.lives.observed import Observed, observe
from tests.resilience.lives.programs import APART, Kills, Programs, processes
from tests.resilience.lives.workloads import roll_out
from tests.resilience.processes import IN_TEAM, Shell, shell
from tests.support.gitea import GiteaProject
from tests.support.held_push import HeldPush
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, namespace
from tests.support.repository import APPLICATION, IMAGE

__all__ = ["processes", "shell"]


_SECONDS = 60.0


@pytest.fixture
def clock() -> FastClock:
    """Return the time of the plane and of the programs, in which pauses after failures are short."""
    return FastClock.start()


@pytest.mark.timeout(200)
@pytest.mark.usefixtures("processes")
async def test_the_locks_of_a_killed_agent_are_told_and_their_removal_is_enough(
    shell: Shell,
    gitea_project: GiteaProject,
    prepared_plane: LocalPlane,
    clock: FastClock,
    tmp_path: Path,
) -> None:
    project = gitea_project
    observed = observe(prepared_plane)(TEAM)
    before = project.api("GET", f"{project.path}/branches/main")["commit"]["id"]
    held = HeldPush(project.bare)
    programs = Programs(prepared_plane, tmp_path, clock=clock, random=Random(0), kills=Kills(0), parts=APART)
    connection = await load_connection(prepared_plane.kubeconfig)
    async with Client(connection, user_agent="kardinal-test") as client:
        await client.create(NAMESPACE, namespace(DEV))
        await client.create(SECRET, git_secret(project))
        await client.create(PIPELINE, pipeline_of(project, "shop", DEV))
        await client.create(BUNDLE, bundle("shop-1", pipeline="shop"))
        async with programs:
            await happens(held.reached)
            programs.kill("agent")
            await happens(held.killed)
            held.forget()
            assert len(locks(project, "main")) == 2

            def told() -> str | None:
                message = step(observed).get("message") or ""
                return message if "File exists" in message else None

            said = await observed.until(told, "the lock to be told", show=lambda: step(observed))
            assert re.search(r" \S+/config\.git/\S*\.lock: remove it", said)
            assert step(observed)["state"] == "Promoting"

            def not_ready() -> str | None:
                found = repository_ready(observed)
                return found["message"] if found.get("reason") == "BranchLocked" else None

            assert "remove it at the host" in await observed.until(not_ready, "RepositoryReady to be False")
            shown = await shell.run("kardinal", "status", "shop", *IN_TEAM, kubeconfig=prepared_plane.kubeconfig)
            assert "File exists" in shown
            assert project.api("GET", f"{project.path}/branches/main")["commit"]["id"] == before

            for lock in locks(project, "main"):
                lock.unlink()
            await observed.until(lambda: step(observed).get("state") == "HealthChecking" or None, "the push to land")
            await roll_out(client, APPLICATION, namespace=DEV, image=f"{IMAGE}:1.1.0")
            await observed.until(lambda: step(observed).get("state") == "Verified" or None, "Verified")
            await observed.until(
                lambda: repository_ready(observed).get("status") == "True" or None, "RepositoryReady to be True"
            )
    assert programs.killed == 1
    assert programs.bugs == []
    (commit, *rest) = project.api("GET", f"{project.path}/commits?sha=main")
    assert rest[0]["sha"] == before
    assert f"{TRAILER_BUNDLE}: shop-1" in commit["commit"]["message"]


async def happens(condition: Callable[[], bool]) -> None:
    """Wait for something at the host."""
    async with asyncio.timeout(_SECONDS):
        while not condition():
            await asyncio.sleep(0.02)


def step(observed: Observed) -> JsonObject:
    """Return the status of the promotion."""
    return (observed.get(PROMOTION_STEP, names.step_name("shop-1", DEV)) or {}).get("status") or {}


def repository_ready(observed: Observed) -> JsonObject:
    """Return the condition of the Pipeline."""
    conditions = ((observed.get(PIPELINE, "shop") or {}).get("status") or {}).get("conditions", ())
    return next((one for one in conditions if one["type"] == "RepositoryReady"), {})
