"""Bundles walk through a real Gitea while controller and agent are killed: nothing is lost, and nothing done twice."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from pathlib import Path
from random import Random

import pytest

from kardinal.kube import Client, load_connection
from kardinal.objects import SECRET
from kardinal.promotion.api import names
from kardinal.promotion.kinds import BUNDLE
from kardinal.tree.git_names import TRAILER_BUNDLE, TRAILER_ENVIRONMENT
from kardinal_local.plane import LocalPlane
from tests.hosts.gitea_host import GiteaHost
from tests.hosts.projects import add_files, git_secret
from tests.hosts.walk import Landed, Walk, environments_of, landed, lift_locks
from tests.resilience.lives.clock import FastClock
from tests.resilience.lives.observed import observe
from tests.resilience.lives.programs import APART, Kills, Programs, processes
from tests.support.gitea import GiteaProject
from tests.support.names import TEAM
from tests.support.repository import GitRepository, sample_files

__all__ = ["processes"]

BUNDLES = int(os.environ.get("WALK", "3"))
SEED = int(os.environ.get("WALK_SEED", "0"))
PIPELINES = ("shop", "cart", "mail")
# Within the delay a push to Gitea mostly ends.
KILLS = Kills(BUNDLES * 8 // 3, gap=30, delay=0.3, at_host=0.5)

log = logging.getLogger(__name__)


@pytest.fixture
def clock() -> FastClock:
    """Return the time of the plane and of the programs, as fast as that of the host: it shows a merge after a while."""
    return FastClock.start(speed=1.0)


def was_cut_short(promotion: Landed) -> bool:
    """Return whether the host has moved the base for a merge that kardinal died in, and then forgot to note it.

    Gitea ends the merge when its client hangs up, and shows the pull request as open from then on; kardinal closes it.
    """
    return promotion.pulls == ("closed",) and "nothing is left to merge" in promotion.comments[-1]


@pytest.mark.timeout(120 + 60 * BUNDLES)
async def test_bundles_walk_through_a_host_whatever_is_killed(
    processes: None,
    gitea_project: GiteaProject,
    prepared_plane: LocalPlane,
    clock: FastClock,
    tmp_path: Path,
) -> None:
    project = gitea_project
    began = time.monotonic()
    overlays = sample_files([each for name in PIPELINES for each in environments_of(name)])
    add_files(project, {path: text for path, text in overlays.items() if path not in sample_files([])})
    rules = {"enable_push": True, "enable_status_check": True, "status_check_contexts": ["kardinal"]}
    project.protect("main", **rules)
    observed = observe(prepared_plane)(TEAM)
    programs = Programs(prepared_plane, tmp_path, clock=clock, random=Random(SEED), kills=KILLS, parts=APART)
    lifted: list[str] = []
    async with Client(await load_connection(prepared_plane.kubeconfig), user_agent="kardinal-test") as client:
        await client.create(SECRET, git_secret(project))
        walks = [Walk(name, project, client=client, observed=observed) for name in PIPELINES]
        administrator = asyncio.create_task(lift_locks(project, observed, lifted))
        try:
            async with programs:
                await asyncio.gather(*(walk.walk(BUNDLES // len(PIPELINES)) for walk in walks))
        except BaseException as error:
            error.add_note("\n".join(["processes died:", *programs.deaths, "their log ends:", programs.log]))
            raise
        finally:
            administrator.cancel()
            await asyncio.gather(administrator, return_exceptions=True)
    assert programs.bugs == []
    assert {each["status"]["phase"] for each in observed.all(BUNDLE)} == {"Verified"}
    host = GiteaHost(tmp_path, project)
    host.fetch()
    mirror = GitRepository(host.git.directory)
    found = landed(project, mirror)
    expected = {
        names.step_name(name, each): (name, each, walk.name)
        for walk in walks
        for name in walk.bundles
        for each in environments_of(walk.name)
    }
    assert found.keys() == expected.keys()
    for step, (name, where, walked) in expected.items():
        promotion = found[step]
        (commit,) = promotion.commits
        assert commit.trailers[TRAILER_BUNDLE] == name
        assert commit.trailers[TRAILER_ENVIRONMENT] == where
        pushed, _, _ = environments_of(walked)
        if where == pushed:
            assert promotion.pulls == ()
        else:
            assert promotion.pulls == ("merged",) or was_cut_short(promotion), step
        assert len(set(promotion.comments)) == len(promotion.comments), promotion.comments
    assert mirror.branches() == ["main"]
    for walk in walks:
        for each in environments_of(walk.name):
            overlay = mirror.read(f"environments/{each}/kustomization.yaml")
            assert f'newTag: "1.0.{BUNDLES // len(PIPELINES)}"' in overlay
    log.warning(
        "%d Bundles, %d kills, %d merges cut short, %d locks lifted, nothing lost or doubled, %.0f s:\n%s",
        BUNDLES,
        programs.killed,
        sum(map(was_cut_short, found.values())),
        len(lifted),
        time.monotonic() - began,
        "\n".join(programs.deaths),
    )
