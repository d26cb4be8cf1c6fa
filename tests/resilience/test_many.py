"""Twenty pipelines on one repository, promoted at once by two agents, beside people who push and merge."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from tests.resilience.applications import application, applications, place
from tests.resilience.committers import person
from tests.resilience.installation import Install
from tests.resilience.processes import Shell, make_namespace, phase, state, wait_for
from tests.support.names import DEV, PROD
from tests.support.objects import bundle
from tests.support.repository import create_repository

SHARDS = {shard: [f"{shard}{number}" for number in range(10)] for shard in ("a", "b")}
NAMES = [name for names in SHARDS.values() for name in names]
REVIEWED = ["a0", "a1", "b0", "b1"]
"""Whose prod waits for a person."""
ENVIRONMENTS = [DEV, PROD]


@pytest.mark.timeout(180)
async def test_everything_lands_that_many_promote_push_and_merge_at_once(
    install: Install, shell: Shell, tmp_path: Path
) -> None:
    repository = create_repository(tmp_path / "gitops.git", applications(NAMES, ENVIRONMENTS))
    local = install()
    await local.up()
    for shard in SHARDS:
        await shell.agent(shard, kubeconfig=local.kubeconfig_for("agent"))
    async with local.client() as client:
        await make_namespace(client)
        for shard, names in SHARDS.items():
            for name in names:
                prod = {"approval": "pr-review"} if name in REVIEWED else {}
                environments = (place(name, DEV, shard=shard), place(name, PROD, shard=shard, **prod))
                await client.create(PIPELINE, application(repository, name, *environments))
        others = await person(shell, repository)
        await asyncio.gather(*(client.create(BUNDLE, bundle(name, pipeline=name)) for name in NAMES))
        await wait_for(client, PROMOTION_STEP, state("WaitingForMerge"), *(f"{name}-{PROD}" for name in REVIEWED))
        waiting = orjson.loads(await local.kardinal("pr", "list", "--repo", repository.url, "-o", "json"))
        assert sorted(entry["bundle"] for entry in waiting) == REVIEWED
        merge = ("pr", "merge", "--repo", repository.url)
        await asyncio.gather(*(local.kardinal(*merge, str(entry["number"])) for entry in waiting))
        await wait_for(client, BUNDLE, phase("Verified"), *NAMES)
    theirs = await others.stop()

    log = repository.commits()
    promoted = [
        (commit.trailers["Kardinal-Bundle"], commit.trailers["Kardinal-Environment"])
        for commit in log
        if commit.trailers
    ]
    assert sorted(promoted) == sorted((name, environment) for name in NAMES for environment in ENVIRONMENTS)
    assert [commit.sha for commit in reversed(log) if commit.sha in theirs] == theirs
    assert len(log) == 1 + len(promoted) + len(theirs)
    assert len(repository.git("ls-tree", "--name-only", "main:others").split()) == len(theirs)
    for name in NAMES:
        for environment in ENVIRONMENTS:
            assert 'newTag: "1.1.0"' in repository.read(f"apps/{name}/environments/{environment}/kustomization.yaml")
