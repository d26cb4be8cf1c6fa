"""The branch moves while promotions push to it: whatever was on it stays on it, and every promotion lands."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from tests.resilience.applications import application, applications, place
from tests.resilience.committers import job
from tests.resilience.installation import Install
from tests.resilience.processes import Shell, make_namespace, state, wait_for
from tests.support.names import DEV
from tests.support.objects import bundle
from tests.support.repository import create_repository

NAMES = ["a", "b", "c", "d"]
TAGS = ["2", "3", "4"]
ROUNDS = 2
"""Least number of times that other commits and promotions must have alternated on the branch."""


@pytest.mark.timeout(120)
async def test_nothing_is_lost_while_others_commit_all_the_time(install: Install, shell: Shell, tmp_path: Path) -> None:
    repository = create_repository(tmp_path / "gitops.git", applications(NAMES, [DEV]))
    local = install(deploys=False)
    await local.up()
    others = await job(shell, repository)
    async with local.client() as client:
        await make_namespace(client)
        for name in NAMES:
            await client.create(PIPELINE, application(repository, name, place(name, DEV)))
        for tag in TAGS:
            for name in NAMES:
                await client.create(BUNDLE, bundle(f"{name}-{tag}", tag=tag, pipeline=name))
            await wait_for(client, PROMOTION_STEP, state("HealthChecking"), *(f"{name}-{tag}-{DEV}" for name in NAMES))
    theirs = await others.stop()

    log = repository.commits()
    promoted = [commit.trailers["Kardinal-Bundle"] for commit in log if commit.trailers]
    assert sorted(promoted) == sorted(f"{name}-{tag}" for name in NAMES for tag in TAGS)
    assert [commit.sha for commit in reversed(log) if commit.sha in theirs] == theirs
    assert len(log) == 1 + len(promoted) + len(theirs)
    changes_of_hands = len(list(groupby(log, key=lambda commit: bool(commit.trailers))))
    assert changes_of_hands > 2 * ROUNDS
    assert len(repository.git("ls-tree", "--name-only", "main:others").split()) == len(theirs)
    for name in NAMES:
        assert f'newTag: "{TAGS[-1]}"' in repository.read(f"apps/{name}/environments/{DEV}/kustomization.yaml")
