"""Every table of the command line on terminals of 80, 100 and 200 columns."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path

from kardinal.api import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal.cli.table import text_width
from kardinal.git import GitRunner, Repositories
from kardinal.kube import PatchType
from kardinal.objects import JsonObject, ResourceType
from kardinal.scm import NewPullRequest, local_pull_requests
from tests.cli.conftest import Cli
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.repository import GitRepository
from tests.support.world import World

LONG = "my-app-1-29-0-rc-1-plus-2-1763850000"
VERSION = "1.29.0-rc.1-build.77"
OTHER = "my-app-1-30-0"
PULL = "https://git.example.com/acme/gitops/pulls/144"
GATE = "no-deployments-at-weekends-and-holidays"
MESSAGE = "the rollout has not finished: 1 of 3 replicas run ghcr.io/acme/my-app:1.28.0, which is not what was promoted"
WAITS = "1 of 2 environments are Verified, and the others wait"
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

IN_TURN = """
import fcntl, json, struct, sys, termios
from kardinal.cli.main import main
for columns in (80, 100, 200):
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    for name, arguments in json.loads(sys.argv[1]):
        print(f"== {columns} {name}", flush=True)
        main(arguments, standalone_mode=False)
        sys.stdout.flush()
"""


async def test_tables_fit_and_show_every_name_state_and_version(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    await _promotion(world, repository)
    await _pull_request(world, repository)
    shown = await asyncio.to_thread(_render, cli, repository)
    assert set(shown) == {(columns, name) for columns in (80, 100, 200) for name in TABLES}
    for (columns, name), lines in shown.items():
        # The place of the repository is one word, which is not broken either.
        wide = [line for line in lines if text_width(line) > columns and not line.startswith(repository.url[:-4])]
        assert not wide, (columns, name, wide)
        missing = TABLES[name][1] - set(" ".join(lines).split())
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


def _render(cli: Cli, repository: GitRepository) -> dict[tuple[int, str], list[str]]:
    """Run all commands on one terminal, whose width changes, in one process."""
    calls = [
        (name, [part.replace("REPOSITORY", repository.url) for part in arguments])
        for name, (arguments, _) in TABLES.items()
    ]
    reader, side = os.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))
    environment = {**cli.environment, "NO_COLOR": "1", "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", IN_TURN, json.dumps(calls)], env=environment, stdout=side, cwd=Path(__file__).parents[2]
    ) as process:
        os.close(side)
        written = b""
        while True:
            try:
                chunk = os.read(reader, 65536)
            except OSError:
                break
            if not chunk:
                break
            written += chunk
    os.close(reader)
    assert process.returncode == 0
    shown: dict[tuple[int, str], list[str]] = {}
    for line in written.decode().replace("\r\n", "\n").splitlines():
        if line.startswith("== "):
            _, columns, name = line.split()
            shown[int(columns), name] = []
        else:
            shown[int(columns), name].append(line)
    return shown


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
