"""`kardinal history`: the promotions that the Bundles record."""

from __future__ import annotations

import json

import yaml

from kardinal.objects import GRAPH
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.cli.promoted import put_bundle, verified
from tests.support.names import DEV, PROD
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["cli"]

REPOSITORY = "https://git.example.com/acme/gitops.git"


async def test_promotions_are_listed_newest_first_with_people_and_times(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV, PROD]))
    failed = {"attempt": 1, "state": "Failed", "message": "no", "startedAt": "2026-03-03T09:30:00Z"}
    people = {"approvedBy": ["bob", "carol"], "mergedBy": "alice"}
    again = verified(11, attempt=2, attempts=[failed], evidence=people, commit="0123456789abcdef", prURL="https://x/7")
    await put_bundle(world, "my-app-1", sequence=1, tag="1.0.0", environments={DEV: verified(8), PROD: again})
    waiting = {"state": "Pending", "admittedAt": "2026-03-03T10:20:00Z"}
    await put_bundle(world, "my-app-2", sequence=2, tag="2.0.0", environments={DEV: verified(10), PROD: waiting})
    lines = [line.split() for line in (await cli("history", "my-app")).splitlines()[1:]]
    assert [(line[0], line[1], line[2]) for line in lines] == [
        (PROD, "1.0.0", "my-app-1"),
        (DEV, "2.0.0", "my-app-2"),
        (PROD, "1.0.0", "my-app-1"),
        (DEV, "1.0.0", "my-app-1"),
    ]
    assert lines[0][3:6] == ["(attempt", "2)", "Verified"]
    assert lines[0][7:] == ["15m", "bob,", "carol", "0123456789ab", "https://x/7"]
    assert lines[2][3] == "Failed"

    shown = json.loads(await cli("history", "my-app", "--env", PROD, "-o", "json"))
    assert [(each["attempt"], each["state"]) for each in shown] == [(2, "Verified"), (1, "Failed")]
    assert (shown[0]["by"], shown[0]["seconds"]) == (["bob", "carol"], 900)
    assert shown[0]["evidence"]["mergedBy"] == "alice"
    assert yaml.safe_load(await cli("history", "my-app", "--env", PROD, "-o", "yaml")) == shown


async def test_promotions_of_one_moment_stand_in_the_order_of_their_bundles(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    for sequence, name in enumerate(("my-app-b", "my-app-a", "my-app-c"), 1):
        await put_bundle(world, name, sequence=sequence, environments={DEV: verified(9)})
    listed = [line.split()[2] for line in (await cli("history", "my-app")).splitlines()[1:]]
    assert listed == ["my-app-c", "my-app-a", "my-app-b"]


async def test_names_of_people_cannot_write_to_the_terminal(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    hostile = {"approvedBy": ["eve\x1b[2J\n\u202eroot"]}
    await put_bundle(world, "my-app-1", environments={DEV: verified(9, evidence=hostile, prURL="https://x\x07")})
    printed = await cli("history", "my-app")
    assert all(line.isprintable() for line in printed.splitlines()), printed
    assert "eve\\x1b[2J \\u202eroot" in printed


async def test_an_environment_that_the_pipeline_never_had_is_refused_and_one_it_had_is_shown(
    cli: Cli, world: World
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV]))
    assert "No promotion yet" in (await cli.attempt("history", "my-app")).err
    await put_bundle(world, "my-app-1", environments={"formerly": verified(9)})
    refused = await cli.attempt("history", "my-app", "--env", "nowhere")
    assert (refused.code, f"It has: {DEV}, formerly" in refused.err) == (1, True)
    assert "formerly" in await cli("history", "my-app", "--env", "formerly")


async def test_history_and_evidence_outlive_steps_and_graph(cli: Cli, world: World, repository: GitRepository) -> None:
    await start_simulator(world)
    await start_controller(world)
    await world.apply(gate("quiet", "bundle.version == '1.1.0'", applies_to=DEV))
    await world.apply(pipeline(repository, environments=[DEV]))
    await world.apply(bundle("my-app-1"))
    await world.wait_for(BUNDLE, "my-app-1", lambda obj: obj.get("status", {}).get("phase") == "Verified")
    await world.settle()
    entry = (await world.get(BUNDLE, "my-app-1"))["status"]["environments"][DEV]
    (gate_result,) = entry["evidence"]["policyGates"]
    assert {"name", "namespace", "reason", "evaluatedAt", "templateGeneration"} <= gate_result.keys()
    before = await cli("get", "steps", "my-app")
    assert "RESULT: VERIFIED" in await cli("explain", "my-app", "--env", DEV)
    step = await world.get(PROMOTION_STEP, f"my-app-1-{DEV}")
    assert entry["startedAt"] == step["status"]["startedAt"]
    await world.delete(GRAPH, "my-app-1")

    async def gone() -> bool:
        return await world.find(PROMOTION_STEP, f"my-app-1-{DEV}") is None

    await world.until(gone)
    after = await cli("get", "steps", "my-app")
    assert "RESULT: VERIFIED" in await cli("explain", "my-app", "--env", DEV)
    rows = [[DEV, "gate", "quiet", "[team]", "PASS", *gate_result["reason"].split()], [DEV, "step", "Verified"]]
    for printed in (before, after):
        assert [line.split()[: len(row)] for line, row in zip(printed.splitlines()[1:], rows, strict=True)] == rows
    (kept,) = json.loads(await cli("get", "steps", "my-app", "-o", "json"))["items"]
    assert (kept["kind"], kept["status"]["environments"][DEV]) == ("Bundle", entry)
    assert entry["commit"][:12] in await cli("history", "my-app")
