"""Every table of the command line on terminals of 80, 100 and 200 columns."""

from __future__ import annotations

from itertools import product

import pytest

from kardinal.cli.table import text_width
from kardinal.git import GitRunner, Repositories
from kardinal.kube import PatchType
from kardinal.objects import JsonObject, ResourceType
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal.scm import NewPullRequest, local_pull_requests
from tests.cli.conftest import Cli
from tests.cli.in_process import InProcess, cli
from tests.cli.terminal import on_terminal
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["cli"]

LONG = "my-app-1-29-0-rc-1-plus-2-1763850000"
VERSION = "1.29.0-rc.1-build.77"
OTHER = "my-app-1-30-0"
PULL = "https://git.example.com/acme/gitops/pulls/144"
GATE = "no-deployments-at-weekends-and-holidays"
MESSAGE = "the rollout has not finished: 1 of 3 replicas run ghcr.io/acme/my-app:1.28.0, which is not what was promoted"
WAITS = "1 of 2 environments is Verified, and the others wait"
BROKEN = "the repository does not answer in time"
TABLES: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "bundles": (("get", "bundles", "my-app"), {LONG, VERSION, "Promoting", f"{PROD}=HealthChecking"}),
    "pipelines": (("get", "pipelines"), {"my-app", f"{DEV}={VERSION}"}),
    "bundles-wide": (("get", "bundles", "my-app", "-o", "wide"), {LONG, VERSION, "Promoting", *WAITS.split()}),
    "pipelines-wide": (("get", "pipelines", "-o", "wide"), {"my-app", f"{DEV}={VERSION}", *BROKEN.split()}),
    "steps-wide": (("get", "steps", "my-app", "-o", "wide"), {DEV, "HealthChecking", "not", "promoted"}),
    "steps": (
        ("get", "steps", "my-app"),
        {DEV, STAGING, PROD, "Verified", "HealthChecking", "not", "promoted"},
    ),
    "coverage": (("policy", "coverage", "--policy-namespaces", POLICIES), {f"environments/{PROD}", f"{TEAM}/my-app"}),
    "history": (
        ("history", "my-app"),
        {LONG, VERSION, DEV, PROD, "Verified", "HealthChecking", "0123456789ab", "alice", PULL},
    ),
    "diff": (("diff", LONG, OTHER), {"image", VERSION, "1.30.0", "provenance", "commit", "0123456789abcdef"}),
    "status": (("status", "my-app"), {LONG, DEV, STAGING, PROD, "Verified", "HealthChecking", "Skipped"}),
    "pr": (("pr", "list", "--repo", "REPOSITORY"), {"#1", LONG, PROD, "open", "replicas", "promoted"}),
}


@pytest.mark.virtual_time("two tables show the same ages")
async def test_tables_fit_and_show_every_name_state_and_version(
    cli: InProcess, world: World, repository: GitRepository
) -> None:
    await _promotion(world, repository)
    await _pull_request(world, repository)
    real = await on_terminal(cli, "status", "my-app", columns=80)
    assert real == await cli.on_screen("status", "my-app", columns=80)
    for columns, (name, (arguments, shown)) in product((80, 100, 200), TABLES.items()):
        typed = [part.replace("REPOSITORY", repository.url) for part in arguments]
        lines = await cli.on_screen(*typed, columns=columns)
        # The place of the repository is one word, which is not broken either.
        wide = [line for line in lines if text_width(line) > columns and not line.startswith(repository.url[:-4])]
        assert not wide, (columns, name, wide)
        missing = shown - set(" ".join(lines).split())
        assert not missing, (columns, name, missing, lines)


async def test_bundles_of_one_second_are_listed_in_one_order_newest_first(cli: Cli, world: World) -> None:
    await world.apply(pipeline("https://git.example.com/acme/gitops.git"))
    names = ["my-app-b", "my-app-a", "my-app-c"]
    for sequence, name in enumerate(names, 1):
        await world.apply(bundle(name))
        await _status(world, BUNDLE, name, {"phase": "Promoting", "sequence": sequence})
    listed = [line.split()[0] for line in (await cli("get", "bundles", "my-app")).splitlines()[1:]]
    assert listed == ["my-app-c", "my-app-a", "my-app-b"]


async def test_messages_of_others_cannot_write_to_the_terminal(cli: Cli, world: World) -> None:
    await world.apply(pipeline("https://git.example.com/acme/gitops.git"), bundle("my-app-1"))
    await _step(world, "my-app-1", DEV, "Failed", "broken\x1b[2J\n\u202edev   step   Verified")
    for command in (("get", "steps", "my-app"), ("explain", "my-app", "--env", DEV), ("status", "my-app")):
        printed = await cli(*command)
        assert all(line.isprintable() for line in printed.splitlines()), printed
        assert "broken\\x1b[2J \\u202edev step Verified" in printed


async def _promotion(world: World, repository: GitRepository) -> None:
    """Make the objects of a promotion that no controller follows."""
    await world.apply(
        pipeline(repository),
        bundle(LONG, tag=VERSION, intent={"skip": [STAGING]}),
        bundle(OTHER, tag="1.30.0", provenance={"commitSHA": "0123456789abcdef"}, pipeline="another-app"),
        gate(GATE, "false", applies_to=None, namespace=POLICIES, match={"paths": [f"environments/{PROD}"]}),
    )
    verified: JsonObject = {"state": "Verified", "verifiedAt": "2026-03-03T10:00:00Z"}
    verified |= {"startedAt": "2026-03-03T09:50:00Z"}
    verified |= {"commit": "0123456789abcdef", "prURL": PULL, "evidence": {"approvedBy": ["alice"]}}
    environments = {DEV: verified, PROD: {"state": "HealthChecking", "startedAt": "2026-03-03T10:01:00Z"}}
    status = {"phase": "Promoting", "pipeline": "my-app", "environments": environments}
    await _status(world, BUNDLE, LONG, status | _condition("Ready", WAITS))
    await _status(world, PIPELINE, "my-app", _condition("RepositoryReady", BROKEN))
    await _step(world, LONG, DEV, "Verified", "runs it")
    await _step(world, LONG, PROD, "HealthChecking", MESSAGE)


def _condition(kind: str, message: str) -> JsonObject:
    moment = "2026-03-03T10:00:00Z"
    condition = {"type": kind, "status": "False", "reason": "Why", "message": message, "lastTransitionTime": moment}
    return {"conditions": [condition]}


async def _pull_request(world: World, repository: GitRepository) -> None:
    runner = GitRunner(workers=1)
    repositories = Repositories(world.new_directory("git"), runner=runner, clock=world.clock, allow_local=True)
    try:
        repository.commit({"proposed": "1"}, branch="proposal")
        pulls = local_pull_requests(repositories.open(repository.url), clock=world.clock)
        await pulls.open(
            NewPullRequest(title=MESSAGE, body="", head="proposal", base="main", environment=PROD, bundle=LONG)
        )
    finally:
        await repositories.close()
        runner.close()


async def _step(world: World, bundle: str, environment: str, state: str, message: str) -> None:
    name = f"{bundle}-{environment}"
    step: JsonObject = {
        "apiVersion": PROMOTION_STEP.api_version,
        "kind": PROMOTION_STEP.kind,
        "metadata": {"name": name, "namespace": TEAM, "labels": {"kardinal.io/bundle": bundle}},
        "spec": {
            "pipeline": "my-app",
            "environment": environment,
            "bundleRef": bundle,
            "path": f"environments/{environment}",
            "git": {"url": "https://git.example.com/acme/gitops.git"},
        },
    }
    await world.apply(step)
    await _status(world, PROMOTION_STEP, name, {"state": state, "message": message})


async def _status(world: World, resource: ResourceType, name: str, status: JsonObject) -> None:
    await world.client.patch(resource, name, TEAM, {"status": status}, kind=PatchType.MERGE, subresource="status")
