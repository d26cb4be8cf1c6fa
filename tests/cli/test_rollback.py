"""`kardinal rollback`, and the hold that it leaves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.objects.conditions import format_time
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from tests.bundles.reading import phase
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.support.names import DEV, PROD, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["cli"]

REPOSITORY = "https://git.example.com/acme/gitops.git"
HOLD = f"my-app-{PROD}-hold"
COMMIT = "c0ffee" + "0" * 34
ROLLED_BACK = "rolled back from 2.0.0 to 1.0.0 by tester"


async def has_run(world: World, name: str, tag: str, *, minute: int, state: str = "Verified") -> JsonObject:
    """Put a Bundle there that has landed in prod, as the controller would record it."""
    await world.apply(bundle(name, tag=tag, provenance={"author": "dana"}, labels={"team": "shop"}))
    moment = format_time(world.clock.now() - timedelta(hours=1) + timedelta(minutes=minute))
    entry = {"state": state, "promotedAt": moment, "commit": COMMIT}
    if state == "Verified":
        entry["verifiedAt"] = moment
    ended = {"phase": state, "pipeline": "my-app", "environments": {PROD: entry}}
    return await world.client.patch(BUNDLE, name, TEAM, {"status": ended}, kind=PatchType.MERGE, subresource="status")


async def made(world: World) -> JsonObject:
    """Return the Bundle that the command has created."""
    (found,) = [each for each in await world.objects(BUNDLE) if "rollback" in each["spec"].get("intent", {})]
    return found


async def test_a_rollback_is_a_bundle_of_what_was_verified_before_and_a_hold(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    before = await has_run(world, "app-1", "1.0.0", minute=1)
    after = await has_run(world, "app-2", "2.0.0", minute=2, state="Failed")
    printed = await cli("rollback", "my-app", "--env", PROD, "--emergency")
    created = await made(world)
    name = created["metadata"]["name"]
    assert printed.splitlines() == [
        f"bundle.kardinal.io/{name} created",
        f"{PROD} goes back from 2.0.0 to 1.0.0, that of app-1",
        f"Nothing else gets there until: kardinal resume my-app --env {PROD}",
    ]
    assert name.startswith("my-app-1-0-0-rollback-")
    assert created["metadata"]["labels"] == {"kardinal.io/pipeline": "my-app", "team": "shop"}
    assert created["spec"]["artifacts"]["images"] == before["spec"]["artifacts"]["images"]
    assert created["spec"]["provenance"] == {"author": "dana"}
    assert created["spec"]["intent"]["rollback"] == {
        "environments": [PROD],
        "of": {"name": "app-2", "uid": after["metadata"]["uid"]},
        "restores": {"name": "app-1", "uid": before["metadata"]["uid"]},
        "emergency": True,
    }
    hold = await world.get(POLICY_GATE, HOLD)
    assert (hold["spec"]["exceptBundle"], hold["spec"]["appliesTo"]) == (name, [PROD])
    assert hold["spec"]["message"] == ROLLED_BACK
    again = await cli.attempt("rollback", "my-app", "--env", PROD)
    assert (again.code, f"Bundle {name} is bringing {PROD} back to that already" in again.err) == (1, True)


async def test_a_hold_is_told_refuses_promotions_and_is_ended_by_name(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    await has_run(world, "app-0", "0.9.0", minute=0)
    await has_run(world, "app-1", "1.0.0", minute=1)
    await has_run(world, "app-2", "2.0.0", minute=2)
    await cli("rollback", "my-app", "--env", PROD)
    first = (await made(world))["metadata"]["name"]
    refused = await cli.attempt("promote", "my-app", "--env", PROD, "--bundle", "app-2")
    assert refused.code == 1
    assert f"kardinal resume my-app --env {PROD}" in refused.err
    assert "requests" not in (await world.get(BUNDLE, "app-2"))["spec"].get("intent", {})
    assert f"kardinal resume my-app --env {PROD}" in await cli("status", "my-app")
    await world.apply(bundle("app-3"))
    assert f"HELD by a hold on {PROD}" in await cli("explain", "my-app", "--env", PROD, "--bundle", "app-3")
    assert await cli("resume", "my-app") == (
        f"Pipeline my-app is not paused\n{PROD} is held: {ROLLED_BACK}\n"
        f"  to let Bundles get there again: kardinal resume my-app --env {PROD}\n"
    )
    unheld = await cli.attempt("rollback", "my-app", "--env", PROD, "--to", "app-0", "--no-hold")
    assert (unheld.code, "Leave --no-hold out" in unheld.err) == (1, True)
    await cli("rollback", "my-app", "--env", PROD, "--to", "app-0")
    assert (await world.get(POLICY_GATE, HOLD))["spec"]["exceptBundle"] not in (first, "")
    assert await cli("resume", "my-app", "--env", PROD) == f"{PROD} of Pipeline my-app takes Bundles again\n"
    assert await world.objects(POLICY_GATE) == []
    assert "is not held" in await cli("resume", "my-app", "--env", PROD)


async def test_impossible_rollback_is_refused_with_a_remedy(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY))
    assert "nothing of Pipeline my-app has landed" in (await cli.attempt("rollback", "my-app", "--env", PROD)).err
    assert "has no environment nowhere" in (await cli.attempt("rollback", "my-app", "--env", "nowhere")).err
    await has_run(world, "app-1", "1.0.0", minute=1)
    await world.apply(bundle("app-2"))
    done = await cli.attempt("rollback", "my-app", "--env", PROD)
    assert (done.code, done.err) == (
        1,
        f"Error: no Bundle is known that was Verified in {PROD} before app-1\n"
        f"  Take its change back by hand, on branch main of {REPOSITORY}:\n  git revert {COMMIT}\n",
    )
    named = await cli.attempt("rollback", "my-app", "--env", PROD, "--to", "app-2")
    assert f"Bundle app-2 was never Verified in {PROD}\n  These were: app-1" in named.err
    assert "has no Bundle app-9" in (await cli.attempt("rollback", "my-app", "--env", PROD, "--to", "app-9")).err
    assert await world.objects(POLICY_GATE) == []


async def test_a_gate_in_the_place_of_the_hold_is_not_changed(cli: Cli, world: World) -> None:
    await world.apply(pipeline(REPOSITORY), gate(HOLD, "true"))
    await has_run(world, "app-1", "1.0.0", minute=1)
    await has_run(world, "app-2", "2.0.0", minute=2)
    done = await cli.attempt("rollback", "my-app", "--env", PROD)
    assert f"PolicyGate {HOLD} is in the place of the hold on {PROD}" in done.err
    assert (await world.get(POLICY_GATE, HOLD))["spec"]["expression"] == "true"
    assert len(await world.objects(BUNDLE)) == 2
    await cli("rollback", "my-app", "--env", PROD, "--no-hold")
    assert (await made(world))["spec"]["intent"]["rollback"]["restores"]["name"] == "app-1"


@pytest.mark.timeout(120)
async def test_a_rollback_brings_back_what_ran_and_holds_what_comes_after(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    """All programs as they run in a cluster, from a release to a rollback and on."""
    await start_controller(world)
    await start_simulator(world, delay=timedelta(0))
    await world.apply(pipeline(repository, environments=[DEV, environment(PROD, approval="auto")]))
    for name, tag in (("app-1", "1.1.0"), ("app-2", "1.2.0")):
        await world.apply(bundle(name, tag=tag))
        await world.wait_for(BUNDLE, name, phase("Verified"))
    await cli("rollback", "my-app", "--env", PROD)
    await world.wait_for(BUNDLE, (await made(world))["metadata"]["name"], phase("Verified"))
    assert "newTag: 1.1.0" in repository.read(f"environments/{PROD}/kustomization.yaml").replace('"', "")
    assert "newTag: 1.2.0" in repository.read(f"environments/{DEV}/kustomization.yaml").replace('"', "")
    await world.apply(bundle("app-3", tag="1.3.0"))
    await world.wait_for(
        PROMOTION_STEP, f"app-3-{PROD}", lambda step: "hold" in step.get("status", {}).get("message", "")
    )
    assert len(repository.promotions(PROD)) == 3
    await cli("resume", "my-app", "--env", PROD)
    await world.wait_for(BUNDLE, "app-3", phase("Verified"))
    assert len(repository.promotions(PROD)) == 4
