"""A rollback is a Bundle that goes to its environments alone, with what was Verified there before."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kardinal.api import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.api.bundle import BundleIdentity
from kardinal.objects import GRAPH, JsonObject
from kardinal.policy.holds import hold_gate
from kardinal.translation.rollback import past_of, soak_of_restored
from kardinal_controller.program import Controller
from tests.bundles.reading import REPOSITORY, patch, phase, states
from tests.bundles.rollbacks import rollback
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, PROD, STAGING, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.repository import APPLICATION, IMAGE
from tests.support.world import World

START = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)


async def promoted(world: World, agent: ScriptedAgent, name: str, tag: str, *environments: str) -> JsonObject:
    """Promote a Bundle to environments and return it, Verified."""
    await world.apply(bundle(name, tag=tag, intent={"target": environments[-1]}))
    await agent.verify(*(f"{name}-{environment}" for environment in environments))
    return await world.wait_for(BUNDLE, name, phase("Verified"))


async def test_a_rollback_goes_to_its_environment_alone_with_what_was_verified_there(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(gate("soak", "bundle.upstreamSoakMinutes >= 0", applies_to=PROD))
    before = await promoted(world, agent, "app-1", "1.0.0", DEV, STAGING, PROD)
    after = await promoted(world, agent, "app-2", "2.0.0", DEV, STAGING, PROD)
    await world.apply(rollback("back", PROD, of=after, restores=before))
    step = await world.wait_for(PROMOTION_STEP, f"back-{PROD}", lambda _: True)
    assert step["spec"]["upstreamVerified"] == "Verified"
    assert step["spec"]["requiredGates"] == [f"back-{PROD}-soak"]
    await agent.verify(f"back-{PROD}")
    done = await world.wait_for(BUNDLE, "back", phase("Verified"))
    assert states(done) == {PROD: "Verified"}
    nodes = [node["id"] for node in (await world.get(GRAPH, "back"))["spec"]["nodes"]]
    assert len(nodes) == 4, "the Bundle, the freeze, the gate and the step"


async def test_a_rollback_takes_over_from_what_was_made_before_it(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(gate("closed", "bundle.name != 'app-3'", applies_to=PROD))
    before = await promoted(world, agent, "app-1", "1.0.0", DEV, STAGING, PROD)
    after = await promoted(world, agent, "app-2", "2.0.0", DEV, STAGING, PROD)
    await world.apply(bundle("app-3", tag="3.0.0"))
    await agent.verify(f"app-3-{DEV}", f"app-3-{STAGING}")
    await world.apply(rollback("back", PROD, of=after, restores=before))
    await agent.verify(f"back-{PROD}")
    await world.wait_for(BUNDLE, "back", phase("Verified"))
    lost = await world.wait_for(BUNDLE, "app-3", phase("Superseded"))
    assert lost["status"]["environments"][PROD]["displacedBy"] == "back"


async def test_a_rollback_does_not_wait_in_a_queue_for_what_its_hold_keeps_back(
    world: World, controller: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV, PROD], promotionPolicy="queue"))
    before = await promoted(world, agent, "app-1", "1.0.0", DEV, PROD)
    after = await promoted(world, agent, "app-2", "2.0.0", DEV, PROD)
    await world.apply(bundle("app-3", tag="3.0.0"))
    await agent.verify(f"app-3-{DEV}")
    await agent.step(f"app-3-{PROD}", state="WaitingForMerge")
    await world.apply(rollback("back", PROD, of=after, restores=before))
    await agent.prepare(f"back-{PROD}")
    lost = await world.wait_for(BUNDLE, "app-3", phase("Superseded"))
    assert lost["status"]["environments"][PROD]["displacedBy"] == "back"
    await agent.step(f"app-3-{PROD}", state="Failed", message="superseded by Bundle back")
    await agent.verify(f"back-{PROD}")
    await world.wait_for(BUNDLE, "back", phase("Verified"))


async def test_a_hold_keeps_the_place_of_the_rollback_that_it_lets_through(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(gate("closed", "bundle.name != 'back' || bundle.labels.go == 'yes'", applies_to=PROD))
    before = await promoted(world, agent, "app-1", "1.0.0", DEV, STAGING, PROD)
    after = await promoted(world, agent, "app-2", "2.0.0", DEV, STAGING, PROD)
    hold = hold_gate(APPLICATION, PROD, namespace=TEAM, bundle="back", message="rolled back")
    await world.apply(hold, rollback("back", PROD, of=after, restores=before))
    await world.wait_for(POLICY_GATE, f"back-{PROD}-closed", lambda each: each.get("status", {}).get("ready") is False)
    await world.apply(bundle("app-3", tag="3.0.0"))
    await agent.verify(f"app-3-{DEV}", f"app-3-{STAGING}")
    await world.wait_for(PROMOTION_STEP, f"app-3-{PROD}", lambda _: True)
    await world.settle()
    entries = [(await world.get(BUNDLE, name))["status"]["environments"][PROD] for name in ("back", "app-3")]
    assert ["displacedBy" in entries[0], "admittedAt" in entries[1]] == [False, False]
    await patch(world, "back", {"metadata": {"labels": {"go": "yes"}}})
    await agent.verify(f"back-{PROD}")
    await world.wait_for(BUNDLE, "back", phase("Verified"))
    await world.delete(POLICY_GATE, hold["metadata"]["name"])
    await world.settle()
    assert "admittedAt" in (await world.get(BUNDLE, "app-3"))["status"]["environments"][PROD]


async def test_emergency_is_what_gates_are_told_and_opens_no_other(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    before = await promoted(world, agent, "app-1", "1.0.0", DEV)
    after = await promoted(world, agent, "app-2", "2.0.0", DEV)
    await world.apply(gate("weekend", "bundle.emergency", applies_to=DEV), gate("never", "false", applies_to=DEV))
    await world.apply(rollback("back", DEV, of=after, restores=before, rollback={"emergency": True}))
    await world.wait_for(POLICY_GATE, f"back-{DEV}-weekend", lambda each: each.get("status", {}).get("ready") is True)
    await world.wait_for(POLICY_GATE, f"back-{DEV}-never", lambda each: each.get("status", {}).get("ready") is False)
    assert await world.find(PROMOTION_STEP, f"back-{DEV}") is None
    await world.apply(bundle("app-4", tag="4.0.0"))
    await world.wait_for(POLICY_GATE, f"app-4-{DEV}-weekend", lambda each: each.get("status", {}).get("ready") is False)


async def test_a_rollback_is_asked_for_no_other_environment(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    before = await promoted(world, agent, "app-1", "1.0.0", DEV, STAGING)
    after = await promoted(world, agent, "app-2", "2.0.0", DEV, STAGING)
    request = {"id": "one", "action": "promote", "environment": PROD}
    await world.apply(rollback("back", STAGING, of=after, restores=before, intent={"requests": [request]}))
    found = await world.wait_for(BUNDLE, "back", lambda each: "requests" in each.get("status", {}))
    (answer,) = found["status"]["requests"]
    assert (answer["state"], "has no environment" in answer["message"]) == ("Refused", True)


def stored(
    number: int, *, tag: str = "", image: str = IMAGE, restores: int = 0, **environments: tuple[int, str]
) -> JsonObject:
    """Return a Bundle that has landed in environments at a minute, and what has become of it there."""
    made = bundle(f"app-{number}", tag=tag or f"{number}.0.0", image=image)
    made["metadata"]["uid"] = f"uid-{number}"
    if restores:
        identity = {"name": f"app-{restores}", "uid": f"uid-{restores}"}
        made["spec"]["intent"] = {
            "rollback": {"environments": list(environments), "of": identity, "restores": identity}
        }
    entries = {}
    for name, (minute, state) in environments.items():
        moment = (START + timedelta(minutes=minute)).isoformat()
        entries[name] = {"state": state, "promotedAt": moment, "commit": f"c{number}"}
        if state == "Verified":
            entries[name]["verifiedAt"] = moment
    made["status"] = {"environments": entries}
    return made


OK, BROKEN = "Verified", "Failed"


@pytest.mark.parametrize(
    ("bundles", "runs", "previous"),
    [
        pytest.param([], None, None, id="nothing has landed"),
        pytest.param([stored(1, prod=(1, OK))], "app-1", None, id="the first one"),
        pytest.param([stored(1, prod=(1, OK)), stored(2, prod=(2, OK))], "app-2", "app-1", id="the one before"),
        pytest.param([stored(1, prod=(1, OK)), stored(2, prod=(2, BROKEN))], "app-2", "app-1", id="failed"),
        pytest.param([stored(1, prod=(1, OK)), stored(2, dev=(2, OK))], "app-1", None, id="elsewhere"),
        pytest.param(
            [stored(1, prod=(1, OK)), stored(2, image="ghcr.io/acme/other", prod=(2, OK)), stored(3, prod=(3, OK))],
            "app-3",
            "app-1",
            id="past what brought another image",
        ),
        pytest.param(
            [stored(1, prod=(1, OK)), stored(2, image="ghcr.io/acme/other", prod=(2, OK))],
            "app-2",
            None,
            id="not to what would leave the image as it is",
        ),
        pytest.param(
            [stored(1, prod=(1, OK)), stored(2, prod=(2, OK)), stored(3, tag="2.0.0", prod=(3, OK))],
            "app-3",
            "app-1",
            id="the same version again is no way back",
        ),
        pytest.param(
            [stored(1, prod=(1, OK)), stored(2, prod=(2, OK)), stored(3, tag="1.0.0", restores=1, prod=(3, OK))],
            "app-3",
            None,
            id="never forward to what was rolled back",
        ),
        pytest.param(
            [
                *(stored(number, prod=(number, OK)) for number in (1, 2, 3)),
                stored(4, tag="2.0.0", restores=2, prod=(4, OK)),
            ],
            "app-4",
            "app-1",
            id="further back",
        ),
        pytest.param(
            [
                stored(1, prod=(1, OK)),
                stored(2, prod=(2, OK)),
                stored(3, tag="1.0.0", restores=1, prod=(3, OK)),
                stored(4, prod=(4, OK)),
            ],
            "app-4",
            "app-1",
            id="back to the evidence and not to the rollback",
        ),
    ],
)
def test_what_an_environment_goes_back_to(bundles: list[JsonObject], runs: str | None, previous: str | None) -> None:
    past = past_of(reversed(bundles), "prod")
    assert (past.runs and past.runs.name, past.previous and past.previous.name) == (runs, previous)


def test_an_earlier_attempt_counts_as_what_it_came_to() -> None:
    again = stored(1, prod=(3, BROKEN))
    moment = START.isoformat()
    again["status"]["environments"]["prod"]["attempts"] = [
        {"attempt": 1, "state": "Verified", "promotedAt": moment, "verifiedAt": moment}
    ]
    past = past_of([again, stored(2, prod=(2, OK))], "prod")
    assert past.runs is not None
    assert past.previous is not None
    assert (past.runs.name, past.runs.commit, past.previous.name) == ("app-1", "c1", "app-2")


@pytest.mark.parametrize(
    ("bundles", "minutes", "unknown"),
    [
        pytest.param([stored(1, staging=(0, OK))], 60, "", id="since it was Verified there"),
        pytest.param([stored(1, staging=(0, OK)), stored(2, staging=(45, OK))], 45, "", id="until another landed"),
        pytest.param([stored(1, dev=(0, OK))], 0, "staging is not Verified", id="it was never there"),
        pytest.param([], 0, "Bundle app-1, which it restores, does not exist any more", id="it is gone"),
    ],
)
def test_the_soak_of_a_rollback_is_that_of_what_it_restores(
    bundles: list[JsonObject], minutes: float, unknown: str
) -> None:
    soak = soak_of_restored("prod", ("staging",), BundleIdentity(name="app-1", uid="uid-1"), bundles)
    assert (soak.minutes(START + timedelta(hours=1)), soak.unknown) == (minutes, unknown)
