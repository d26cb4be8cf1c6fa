"""A rollback is a Bundle that goes to its environments alone, with what was Verified there before."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.api.bundle import BundleIdentity
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.policy.hold_gate import hold_gate
from kardinal.promotion.translation.rollback import past_of, soak_of_restored
from kardinal_controller.program import ControlPlane
from tests.bundles.in_memory import BundleController
from tests.bundles.reading import REPOSITORY, phase, states
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


def is_ready(ready: bool) -> Callable[[JsonObject], bool]:
    return lambda gate: gate.get("status", {}).get("ready") is ready


async def two_versions(bundles: BundleController, *environments: str) -> list[JsonObject]:
    """Promote two Bundles to environments, one after the other, and return them."""
    for name, tag in (("app-1", "1.0.0"), ("app-2", "2.0.0")):
        await bundles.apply(bundle(name, tag=tag, intent={"target": environments[-1]}))
        await bundles.verify(name, *environments)
    return [bundles.get("app-1"), bundles.get("app-2")]


async def test_a_rollback_goes_to_its_environment_alone_with_what_was_verified_there(
    world: World, running: ControlPlane, agent: ScriptedAgent
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

    # An emergency is what gates are told, and opens no other.
    await world.apply(gate("weekend", "bundle.emergency", applies_to=PROD), gate("never", "false", applies_to=PROD))
    await world.apply(rollback("urgent", PROD, of=done, restores=after, rollback={"emergency": True}))
    await world.wait_for(POLICY_GATE, f"urgent-{PROD}-weekend", is_ready(True))
    await world.wait_for(POLICY_GATE, f"urgent-{PROD}-never", is_ready(False))
    assert await world.find(PROMOTION_STEP, f"urgent-{PROD}") is None
    await world.apply(rollback("calm", PROD, of=done, restores=after))
    await world.wait_for(POLICY_GATE, f"calm-{PROD}-weekend", is_ready(False))


async def test_a_rollback_takes_over_from_what_was_made_before_it(bundles: BundleController) -> None:
    before, after = await two_versions(bundles, DEV, STAGING, PROD)
    await bundles.apply(gate("closed", "bundle.name != 'app-3'", applies_to=PROD))
    await bundles.apply(bundle("app-3", tag="3.0.0"))
    await bundles.verify("app-3", DEV, STAGING)
    await bundles.apply(rollback("back", PROD, of=after, restores=before))
    await bundles.verify("back", PROD)
    assert bundles.phases() == {"app-1": "Verified", "app-2": "Verified", "app-3": "Superseded", "back": "Verified"}
    assert bundles.entry("app-3", PROD)["displacedBy"] == "back"


async def test_a_rollback_does_not_wait_in_a_queue_for_what_its_hold_keeps_back(alone: BundleController) -> None:
    await alone.apply(pipeline(REPOSITORY, environments=[DEV, PROD], promotionPolicy="queue"))
    before, after = await two_versions(alone, DEV, PROD)
    await alone.apply(bundle("app-3", tag="3.0.0"))
    await alone.verify("app-3", DEV)
    await alone.step("app-3", PROD, state="WaitingForMerge")
    await alone.apply(rollback("back", PROD, of=after, restores=before))
    await alone.prepare("back", PROD)
    assert alone.phase("app-3") == "Superseded"
    assert alone.entry("app-3", PROD)["displacedBy"] == "back"
    await alone.fail("app-3", PROD, "superseded by Bundle back")
    await alone.verify("back", PROD)
    assert alone.phase("back") == "Verified"


async def test_a_hold_keeps_the_place_of_the_rollback_that_it_lets_through(bundles: BundleController) -> None:
    before, after = await two_versions(bundles, DEV, STAGING, PROD)
    hold = hold_gate(APPLICATION, PROD, namespace=TEAM, bundle="back", message="rolled back")
    closed = gate("closed", "bundle.name != 'back' || bundle.labels.go == 'yes'", applies_to=PROD)
    await bundles.apply(closed, hold, rollback("back", PROD, of=after, restores=before))
    assert not bundles.has_step("back", PROD)
    await bundles.apply(bundle("app-3", tag="3.0.0"))
    await bundles.verify("app-3", DEV, STAGING)
    await bundles.prepare("app-3", PROD)
    assert "displacedBy" not in bundles.entry("back", PROD)
    assert "admittedAt" not in bundles.entry("app-3", PROD)
    await bundles.verify("back", PROD)
    assert bundles.phase("back") == "Verified"
    assert "admittedAt" not in bundles.entry("app-3", PROD)
    await bundles.delete(POLICY_GATE, hold["metadata"]["name"])
    assert "admittedAt" in bundles.entry("app-3", PROD)


async def test_a_rollback_is_asked_for_no_other_environment(bundles: BundleController) -> None:
    before, after = await two_versions(bundles, DEV, STAGING)
    request = {"id": "one", "action": "promote", "environment": PROD}
    await bundles.apply(rollback("back", STAGING, of=after, restores=before, intent={"requests": [request]}))
    (answer,) = bundles.get("back")["status"]["requests"]
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
    entries: dict[str, JsonObject] = {}
    for name, (minute, state) in environments.items():
        moment = (START + timedelta(minutes=minute)).isoformat()
        entries[name] = {"state": state, "promotedAt": moment, "commit": f"c{number}"}
        if state == "Verified":
            entries[name] |= {"verifiedAt": moment, "healthy": True, "healthySince": moment}
    made["status"] = {"environments": entries}
    return made


OK = "Verified"
BROKEN = "Failed"


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
def test_restored_bundle_of_an_environment(bundles: list[JsonObject], runs: str | None, previous: str | None) -> None:
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
