"""`kubectl describe bundle` tells what happened: each thing once, also over a restart of the controller."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api.bundle import BundleStatus
from kardinal.promotion.api.names import LABEL_PIPELINE, LABEL_TYPE, TYPE_FREEZE, freeze_name
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal_controller.bundles.events import EmitEvent, story
from kardinal_controller.program import ControlPlane
from tests.bundles.reading import condition, phase
from tests.support.names import DEV, POLICIES, PROD
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.reviewer import merge_pull_request
from tests.support.world import World


def freeze() -> JsonObject:
    """Return the freeze that `kardinal pause` makes."""
    labels = {LABEL_TYPE: TYPE_FREEZE, LABEL_PIPELINE: "my-app"}
    return gate(freeze_name("my-app"), "false", applies_to=None, labels=labels, message="audit week")


def in_state(name: str) -> Any:
    return lambda obj: obj.get("status", {}).get("state") == name


async def told(world: World, name: str = "my-app-1") -> list[tuple[str, str]]:
    """Return reason and note of the Events about a Bundle."""
    await world.settle()
    events = [event for event in await world.events() if event["regarding"]["name"] == name]
    assert all("series" not in event for event in events), events
    return [(event["reason"], event["note"]) for event in events if event["regarding"]["kind"] == "Bundle"]


async def test_a_promotion_is_told_on_its_bundle_and_nothing_twice(world: World, repository: GitRepository) -> None:
    controller = await start_controller(world)
    await start_simulator(world)
    await world.apply(
        pipeline(repository, environments=[DEV, environment(PROD, approval="pr-review")]),
        gate("release", 'bundle.labels.go == "yes"', namespace=POLICIES),
        bundle("my-app-1", labels={"go": "no"}),
    )
    instance = f"my-app-1-{PROD}-release"
    await world.wait_for(POLICY_GATE, instance, lambda obj: obj.get("status", {}).get("ready") is False)
    controller = await _restarted(world, controller)
    await world.apply(bundle("my-app-1", labels={"go": "yes"}))
    await world.wait_for(PROMOTION_STEP, f"my-app-1-{PROD}", in_state("WaitingForMerge"))
    await world.apply(freeze())
    await world.wait_for(BUNDLE, "my-app-1", lambda obj: condition(obj, "Paused") is not None)
    await merge_pull_request(world, repository, 1)
    held = await world.wait_for(BUNDLE, "my-app-1", lambda obj: condition(obj, "Held") is not None)
    assert "audit week" in held["status"]["environments"][PROD]["held"]
    await _restarted(world, controller)
    await world.delete(POLICY_GATE, freeze_name("my-app"))
    ended = await world.wait_for(BUNDLE, "my-app-1", phase("Verified"))
    assert {entry["type"] for entry in ended["status"]["conditions"]} == {"Ready", "MergedOutOfBand"}

    events = await told(world)
    expected = "Promoting GateClosed GateOpened PullRequestOpened Paused PullRequestMerged MergedOutOfBand Held Resumed"
    expected += " Released EnvironmentVerified EnvironmentVerified Verified"
    assert Counter(reason for reason, _ in events) == Counter(expected.split())
    notes = dict(events)
    assert notes["GateClosed"] == f"gate release before {PROD} is closed: bundle.labels.go = no"
    assert notes["GateOpened"] == f"gate release before {PROD} is open: bundle.labels.go = yes"
    assert notes["Paused"] == "Pipeline my-app is paused: audit week; to go on: kardinal resume my-app"
    assert notes["PullRequestMerged"].startswith(f"{PROD}: ")
    verified = {note for reason, note in events if reason == "EnvironmentVerified"}
    assert verified == {f"{DEV} runs 1.1.0", f"{PROD} runs 1.1.0, approved by reviewer"}


async def _restarted(world: World, controller: ControlPlane) -> ControlPlane:
    await world.settle()
    await world.stop(controller)
    return await start_controller(world)


def status(environments: dict[str, JsonObject] | None = None, **fields: Any) -> BundleStatus:
    entries = {name: {"state": "Pending", **entry} for name, entry in (environments or {}).items()}
    return BundleStatus.model_validate({"phase": "Promoting", "version": "1.2.0", "environments": entries, **fields})


def ready(reason: str) -> list[JsonObject]:
    return [{"type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": "2026-03-03T10:00:00Z"}]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            status({"dev": {}}),
            status({"dev": {"state": "Failed", "message": "no"}}),
            [EmitEvent("Warning", "StepFailed", "dev: no; to try again: kardinal retry app-1 --env dev")],
        ),
        (status({"dev": {}}), status({"dev": {"state": "Failed"}}, conditions=ready("StepFailed")), []),
        (
            status({"dev": {}, "prod": {}}),
            status({"dev": {"displacedBy": "app-2"}, "prod": {"displacedBy": "app-2"}}),
            [EmitEvent("Normal", "TakenOver", "superseded by app-2 in dev, prod")],
        ),
        (status({"dev": {}}), status({"dev": {"displacedBy": "app-2"}}, conditions=ready("Superseded")), []),
        (
            status({"dev": {"state": "Failed", "displacedBy": "app-2"}}),
            status({"dev": {"state": "Failed", "displacedBy": "app-2", "message": "superseded by Bundle app-2"}}),
            [],
        ),
        (
            status({"dev": {"state": "Verified"}}),
            status({"dev": {"state": "Verified", "attempt": 2}}),
            [EmitEvent("Normal", "EnvironmentVerified", "dev runs 1.2.0")],
        ),
        (
            status({"dev": {"held": "held by gate a: 1"}}),
            status({"dev": {"held": "held by gate a: 2"}}),
            [],
        ),
        (status({"dev": {"held": "held"}}), status({"dev": {"state": "Failed"}}, conditions=ready("StepFailed")), []),
    ],
    ids=[
        "a failure beside another one",
        "what Ready tells of a failure is not told again",
        "newer Bundles take environments over",
        "what Ready tells of a supersession is not told again",
        "a step that is given up has not failed",
        "another attempt",
        "other values of what holds",
        "a failure ends a hold",
    ],
)
def test_each_difference_of_two_statuses_is_told_once(
    before: BundleStatus, after: BundleStatus, expected: list[EmitEvent]
) -> None:
    assert list(story("app-1", before, after)) == expected
    assert list(story("app-1", after, after)) == []
