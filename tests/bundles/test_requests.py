"""People ask for a Bundle that others have passed, and for another attempt, and get an answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.api import BUNDLE, PROMOTION_STEP
from kardinal.kube import Invalid
from kardinal.objects import JsonObject
from kardinal_controller.program import Controller
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


async def entry(world: World, name: str, environment: str) -> JsonObject:
    await world.settle()
    found: JsonObject = (await world.get(BUNDLE, name))["status"]["environments"][environment]
    return found


async def test_an_older_bundle_that_is_asked_for_wins_over_the_newer_one(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1", intent={"target": STAGING}))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    await world.apply(bundle("app-2"))
    await agent.verify(f"app-2-{DEV}", f"app-2-{STAGING}")
    await agent.step(f"app-2-{PROD}", state="WaitingForMerge")
    (answer,) = await ask(world, "app-1", promotion(PROD))
    assert (answer["state"], answer["sequence"]) == ("Accepted", 3)
    await agent.prepare(f"app-1-{PROD}")
    await world.wait_for(BUNDLE, "app-2", phase("Superseded"))
    assert (await entry(world, "app-2", PROD))["displacedBy"] == "app-1"
    await agent.step(f"app-2-{PROD}", state="Failed", message="superseded by Bundle app-1")
    assert "admittedAt" in await entry(world, "app-1", PROD)
    await agent.verify(f"app-1-{PROD}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))


async def test_a_superseded_bundle_that_is_asked_for_goes_again_where_it_was_not_verified(
    world: World, running: Controller, agent: ScriptedAgent
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


async def test_siblings_are_promoted_one_by_one(world: World, controller: Controller, agent: ScriptedAgent) -> None:
    fan_out: list[Any] = [DEV, environment(EU, dependsOn=[DEV]), environment(US, dependsOn=[DEV])]
    await world.apply(pipeline(REPOSITORY, environments=fan_out), bundle("app-1", intent={"target": EU}))
    await agent.verify(f"app-1-{DEV}", f"app-1-{EU}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    (answer,) = await ask(world, "app-1", promotion(US))
    assert answer["state"] == "Accepted"
    await agent.verify(f"app-1-{US}")
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    assert states(done) == {DEV: "Verified", EU: "Verified", US: "Verified"}


async def test_a_failed_environment_is_tried_again_and_keeps_what_came_of_the_first_attempt(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    began, message = "2026-03-03T10:00:00Z", "HealthTimeout " + "x" * 1000
    gates = [{"name": f"gate-{number}", "result": "pass", "reason": "y" * 500} for number in range(4)]
    evidence = {"approvedBy": ["alice"], "durations": {"promoting": "2s"}, "policyGates": gates}
    await agent.step(f"app-1-{DEV}", state="Failed", message=message, commit="abc", startedAt=began, evidence=evidence)
    await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    (answer,) = await ask(world, "app-1", retry(DEV))
    assert answer["state"] == "Accepted"
    step = await world.wait_for(PROMOTION_STEP, f"app-1-{DEV}", lambda step: step["spec"].get("attempt") == 2)
    assert (await world.get(BUNDLE, "app-1"))["status"]["phase"] == "Promoting"
    assert (await entry(world, "app-1", DEV))["state"] == "Pending", "of the earlier attempt"
    assert step["status"]["state"] == "Failed"
    await agent.step(f"app-1-{DEV}", attempt=2, state="Verified", verifiedAt=answer["seenAt"])
    await agent.verify(f"app-1-{STAGING}", f"app-1-{PROD}")
    done = await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    (before,) = done["status"]["environments"][DEV]["attempts"]
    kept = before.pop("evidence")
    assert (kept["approvedBy"], kept["durations"]) == (["alice"], {"promoting": "2s"})
    assert [gate["reason"] for gate in kept["policyGates"]] == ["y" * 127 + "…"] * 4
    cut = message[:255] + "…"
    assert before == {"attempt": 1, "state": "Failed", "message": cut, "commit": "abc", "startedAt": began}


async def test_requests_are_refused_with_a_reason_and_change_nothing(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1", intent={"target": DEV}))
    await agent.verify(f"app-1-{DEV}")
    await world.wait_for(BUNDLE, "app-1", phase("Verified"))
    before = (await world.get(BUNDLE, "app-1"))["status"]["environments"]
    answers = await ask(
        world,
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
    after = (await world.get(BUNDLE, "app-1"))["status"]
    assert (after["phase"], after["environments"]) == ("Verified", before)


async def test_an_older_bundle_is_not_tried_again_over_a_newer_one(
    world: World, running: Controller, agent: ScriptedAgent
) -> None:
    await world.apply(bundle("app-1"))
    await agent.step(f"app-1-{DEV}", state="Failed", message="broken")
    await world.wait_for(BUNDLE, "app-1", phase("Failed"))
    await world.apply(bundle("app-2"))
    await agent.verify(f"app-2-{DEV}")
    await world.settle()
    (answer,) = await ask(world, "app-1", retry(DEV))
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


async def test_a_person_cannot_answer_a_request_or_make_another_ones_count(world: World, running: Controller) -> None:
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


@pytest.mark.parametrize("requests", FORGED.values(), ids=FORGED)
async def test_requests_only_grow(world: World, requests: list[JsonObject]) -> None:
    await world.apply(bundle("app-1", intent={"requests": [promotion(DEV)]}))
    with pytest.raises(Invalid):
        await patch(world, "app-1", {"spec": {"intent": {"requests": requests}}})
