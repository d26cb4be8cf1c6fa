"""Every request that one reviewed promotion makes at its host, stated, so that a change that adds one is seen."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, reached, start_agent, wake
from tests.agent.sites import EVERYWHERE, Site
from tests.support.world import World

COMMON = {"approvals": 1, "find": 1, "open": 1, "status": 2, "statuses": 2, "push": 1}
BUDGETS = {
    # Two programs may open two pull requests at Gitea, so it is asked which was first; labels have numbers there.
    "gitea": {**COMMON, "labels": 2, "list": 2, "get": 3, "git": 11},
    # Files are fetched when they are needed. GitHub leaves the branch of what was merged, which is removed in the end.
    "github": {**COMMON, "labels": 1, "list": 1, "get": 4, "git": 14, "push": 2},
    "gitlab": {**COMMON, "compare": 1, "list": 1, "get": 4, "git": 13},
}
"""Provider -> the requests for each operation, from the Bundle to Verified: opened, looked at once, merged by a person.

`git`: transfers, of which `push` change something; the last ones look whether the branch is gone.
"""


@EVERYWHERE
@pytest.mark.virtual_time("counts what an instant takes")
async def test_a_reviewed_promotion_costs_what_is_stated(world: World, site: Site) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    await reached(world, "WaitingForMerge")
    await world.settle()
    site.merge(1)
    await wake(world)
    await reached(world, "Verified")
    await world.settle()
    found = Counter(operation_of(site, line) for line in site.lines())
    found["git"] = sum("/info/refs" in line for line in site.git_requests())
    found["push"] = sum(line.startswith("POST") and "receive-pack" in line for line in site.git_requests())
    assert found == BUDGETS[site.provider]


def operation_of(site: Site, line: str) -> str:
    """Return the operation that a request was made for, or the request itself where there is none."""
    return next((name for name, pattern in site.requests.items() if re.fullmatch(pattern, line)), line)
