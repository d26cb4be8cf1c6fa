"""People ask for a Bundle that others have passed, and for another attempt, and get an answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.kube import Invalid
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from tests.bundles.in_memory import BundleController
from tests.bundles.reading import REPOSITORY, patch, phase, states
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, EU, PROD, STAGING, US
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.world import World


async def ask(world: World, name: str, *requests: JsonObject) -> list[JsonObject]:
    """Append requests to a Bundle; returns the answers to all that it has."""
    stored = await world.get(BUNDLE, name)
    known = stored["spec"].get("intent", {}).get("requests", [])
    await patch(world, name, {"spec": {"intent": {"requests": [*known, *requests]}}})
    await world.settle()
    answers: list[JsonObject] = (await world.get(BUNDLE, name))["status"]["requests"]
    return answers


def promotion(environment: str | None = None, identifier: str = "one", **fields: Any) -> JsonObject:
    where = {"environment": environment} if environment else {}
    return {"id": identifier, "action": "promote", **where, **fields}


def retry(environment: str, identifier: str = "one") -> JsonObject:
    return {"id": identifier, "action": "retry", "environment": environment}


async def test_a_superseded_bundle_that_is_asked_for_goes_again_where_it_was_not_verified(
    world: World, running: ControlPlane, agent: ScriptedAgent
) -> None:
    soak = gate("soak", "bundle.upstreamSoakMinutes >= 0", applies_to=PROD)
    await world.apply(gate("closed", "bundle.name != 'app-1'", applies_to=PROD), bundle("app-1"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await world.apply(bundle("app-2"))
    await agent.verify(f"app-2-{DEV}", f"app-2-{STAGING}")
    await world.wait_for(BUNDLE, "app-1", phase("Superseded"))
    await world.apply(gate("closed", "true", applies_to=PROD), soak)
    (answer,) = await ask(world, "app-1", promotion(PROD))
    assert answer["state"] == "Accepted"
    again = await world.wait_for(PROMOTION_STEP, f"app-1-{PROD}", lambda _: True)
    assert again["spec"]["upstreamVerified"] == "Verified"
    assert await world.find(PROMOTION_STEP, f"app-1-{DEV}") is None
    await agent.step(f"app-1-{PROD}", attempt=again["spec"]["attempt"], state="Verified", verifiedAt=answer["seenAt"])
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert states(done) == {DEV: "Verified", STAGING: "Verified", PROD: "Verified"}
    (before,) = done["status"]["environments"][PROD]["attempts"]
    assert (before["state"], before["displacedBy"]) == ("Superseded", "app-2")


async def test_an_older_bundle_that_is_asked_for_wins_over_the_newer_one(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1", intent={"target": STAGING}))
    await bundles.verify("app-1", DEV, STAGING)
    assert bundles.phase("app-1") == "Verified"
    await bundles.apply(bundle("app-2"))
    await bundles.verify("app-2", DEV, STAGING)
    await bundles.step("app-2", PROD, state="WaitingForMerge")
    (answer,) = await bundles.ask("app-1", promotion(PROD))
    assert (answer["state"], answer["sequence"]) == ("Accepted", 3)
    await bundles.prepare("app-1", PROD)
    assert bundles.phase("app-2") == "Superseded"
    assert bundles.entry("app-2", PROD)["displacedBy"] == "app-1"
    assert "admittedAt" not in bundles.entry("app-1", PROD)
    await bundles.fail("app-2", PROD, "superseded by Bundle app-1")
    assert "admittedAt" in bundles.entry("app-1", PROD)
    await bundles.verify("app-1", PROD)
    assert bundles.phase("app-1") == "Verified"


async def test_siblings_are_promoted_one_by_one(alone: BundleController) -> None:
    fan_out: list[Any] = [DEV, environment(EU, dependsOn=[DEV]), environment(US, dependsOn=[DEV])]
    await alone.apply(pipeline(REPOSITORY, environments=fan_out), bundle("app-1", intent={"target": EU}))
    await alone.verify("app-1", DEV, EU)
    assert alone.phase("app-1") == "Verified"
    (answer,) = await alone.ask("app-1", promotion(US))
    assert answer["state"] == "Accepted"
    await alone.verify("app-1", US)
    assert alone.phase("app-1") == "Verified"
    assert states(alone.get("app-1")) == {DEV: "Verified", EU: "Verified", US: "Verified"}


async def test_a_failed_environment_is_tried_again_and_keeps_what_came_of_the_first_attempt(
    bundles: BundleController,
) -> None:
    await bundles.apply(bundle("app-1"))
    began = "2026-03-03T10:00:00Z"
    message = "HealthTimeout " + "x" * 1000
    gates = [{"name": f"gate-{number}", "result": "pass", "reason": "y" * 500} for number in range(4)]
    evidence = {"approvedBy": ["alice"], "durations": {"promoting": "2s"}, "policyGates": gates}
    await bundles.step("app-1", DEV, state="Failed", message=message, commit="abc", startedAt=began, evidence=evidence)
    assert bundles.phase("app-1") == "Failed"
    (answer,) = await bundles.ask("app-1", retry(DEV))
    assert answer["state"] == "Accepted"
    step = bundles.stored(PROMOTION_STEP, f"app-1-{DEV}") or {}
    assert step["spec"]["attempt"] == 2
    assert bundles.phase("app-1") == "Promoting"
    assert bundles.entry("app-1", DEV)["state"] == "Pending", "of the earlier attempt"
    assert step["status"]["state"] == "Failed"
    await bundles.verify("app-1", DEV, STAGING, PROD)
    assert bundles.phase("app-1") == "Verified"
    (before,) = bundles.entry("app-1", DEV)["attempts"]
    kept = before.pop("evidence")
    assert (kept["approvedBy"], kept["durations"]) == (["alice"], {"promoting": "2s"})
    assert [gate["reason"] for gate in kept["policyGates"]] == ["y" * 127 + "…"] * 4
    cut = message[:255] + "…"
    assert before == {"attempt": 1, "state": "Failed", "message": cut, "commit": "abc", "startedAt": began}


async def test_requests_are_refused_with_a_reason_and_change_nothing(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1", intent={"target": DEV}))
    await bundles.verify("app-1", DEV)
    before = bundles.get("app-1")["status"]["environments"]
    answers = await bundles.ask(
        "app-1",
        promotion("nowhere", "a"),
        promotion(DEV, "b"),
        retry(DEV, "c"),
        retry(PROD, "d"),
        {"id": "e", "action": "promote"},
    )
    assert [(answer["id"], answer["state"], answer["message"]) for answer in answers] == [
        (
            "a",
            "Refused",
            f"Pipeline my-app has no environment nowhere that this Bundle may go to; it has {DEV}, {STAGING}, {PROD}",
        ),
        ("b", "Refused", f"the Bundle is Verified in {DEV}, and no other has landed there since"),
        ("c", "Refused", f"{DEV} is Verified, and only what is Failed is tried again"),
        ("d", "Refused", f"the Bundle does not go to {PROD}: kardinal promote my-app --bundle app-1 --env {PROD}"),
        ("e", "Refused", "the Bundle is Verified in every environment it goes to, and no other has landed there since"),
    ]
    after = bundles.get("app-1")["status"]
    assert (after["phase"], after["environments"]) == ("Verified", before)


async def test_an_older_bundle_is_not_tried_again_over_a_newer_one(bundles: BundleController) -> None:
    await bundles.apply(bundle("app-1"))
    await bundles.fail("app-1", DEV)
    await bundles.apply(bundle("app-2"))
    await bundles.verify("app-2", DEV)
    (answer,) = await bundles.ask("app-1", retry(DEV))
    assert answer["state"] == "Refused"
    assert answer["message"] == (
        f"Bundle app-2, which is newer, has landed in {DEV} since: kardinal promote my-app --bundle app-1 --env {DEV}"
    )


@pytest.mark.virtual_time("a health timeout of a minute")
async def test_a_promotion_that_failed_is_repaired_and_tried_again_to_the_end(
    world: World, repository: GitRepository
) -> None:
    """All programs as they run in a cluster: nothing deploys at first, so dev is not healthy in time."""
    await start_controller(world)
    dev = environment(DEV, health={"timeout": "1m"})
    await world.apply(pipeline(repository, environments=[dev, PROD]), bundle("app-1"))
    await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    await start_simulator(world, delay=timedelta(0))
    (answer,) = await ask(world, "app-1", retry(DEV))
    assert answer["state"] == "Accepted"
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert states(done) == {DEV: "Verified", PROD: "Verified"}
    assert done["status"]["environments"][DEV]["attempts"][0]["state"] == "Failed"
    assert [len(repository.promotions(name)) for name in (DEV, PROD)] == [1, 1]


async def test_a_person_cannot_answer_a_request_or_make_another_ones_count(world: World, running: ControlPlane) -> None:
    """A status in a Bundle that is created or patched is dropped; `by` and the number are the author's claims."""
    forged = {"id": "one", "action": "promote", "state": "Accepted", "after": "2999-01-01T00:00:00Z", "sequence": 999}
    made = bundle("app-1", intent={"requests": [promotion(by="the-release-manager")]})
    await world.apply({**made, "status": {"requests": [{**forged, "seenAt": "2026-01-01T00:00:00Z"}]}})
    await world.settle()
    await patch(world, "app-1", {"status": {"requests": [{**forged, "seenAt": "2026-01-01T00:00:00Z"}]}})
    await world.settle()
    (answer,) = (await world.get(BUNDLE, "app-1"))["status"]["requests"]
    assert (answer["state"], answer["sequence"]) == ("Accepted", 2)
    assert "by" not in answer
    assert answer["after"] == (await world.get(BUNDLE, "app-1"))["metadata"]["creationTimestamp"]


FORGED = {
    "removed": [],
    "changed": [promotion(PROD)],
    "made anew under its id": [promotion(DEV, by="mallory")],
    "one id twice": [promotion(DEV), promotion(DEV)],
    "a retry of nothing": [promotion(DEV), {"id": "two", "action": "retry"}],
    "too many": [promotion(DEV), *(promotion(DEV, f"r{number}") for number in range(64))],
    "ten thousand": [promotion(DEV), *(promotion(DEV, f"r{number}") for number in range(10_000))],
    "another action": [promotion(DEV), {"id": "two", "action": "verify", "environment": PROD}],
}


async def test_requests_only_grow(world: World) -> None:
    await world.apply(bundle("app-1", intent={"requests": [promotion(DEV)]}))
    for requests in FORGED.values():
        with pytest.raises(Invalid):
            await patch(world, "app-1", {"spec": {"intent": {"requests": requests}}})
