"""The evidence that a promotion leaves when it ends: its gates, people, and how long each phase took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.evidence import PhaseDurations
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.steps.builtin import BUILTIN_STEPS
from kardinal.promotion.steps.sequence import planned
from kardinal.scm import PullRequests
from kardinal_agent.execution.evidence import evidence_of, phase_durations
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, open_gate, promotion_step, put_gate, reached, start_agent, wake
from tests.agent.sites import GiteaSite
from tests.agent.without_server import Promotions
from tests.support.fake_gitea import FakeGitea, Request
from tests.support.names import DEV, POLICIES
from tests.support.objects import bundle
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

NOON = datetime(2026, 3, 3, 12, 0, tzinfo=UTC)
REVIEWED = planned(
    [StepSpec(uses=name) for name in ("git-push", "open-pr", "wait-for-merge", "health-check")], BUILTIN_STEPS
)
DIGEST = f"sha256:{'1' * 64}"
GATE = f"my-app-1-{DEV}-soak"


def _minutes(number: float) -> str:
    return (NOON + timedelta(minutes=number)).isoformat()


def _status(*finished: float, merged: float | None = None, running: bool = False) -> PromotionStepStatus:
    names = [step.name for step in REVIEWED]
    steps = [
        {"uses": name, "state": "Succeeded", "finishedAt": _minutes(moment)}
        for name, moment in zip(names, finished, strict=False)
    ]
    steps += [{"uses": names[len(finished)], "state": "Running"}] if running else []
    fields: dict[str, Any] = {"mergedAt": _minutes(merged)} if merged is not None else {}
    return PromotionStepStatus.model_validate({"startedAt": _minutes(0), "steps": steps, **fields})


@pytest.mark.parametrize(
    ("status", "durations"),
    [
        (_status(1, 2, 32, merged=30, running=True), (2, 28, 10)),
        # A merge that a clock puts before the proposal, or after the moment in which it was seen.
        (_status(1, 2, 32, merged=-5, running=True), (2, 0, 38)),
        (_status(1, 2, 32, merged=99, running=True), (2, 30, 8)),
        (_status(1, 2, running=True), (2, 38, None)),
        (_status(running=True), (40, None, None)),
    ],
    ids=["merged", "merged too early", "merged too late", "not merged", "promoting"],
)
def test_the_time_since_the_first_step_is_told_by_phases(
    status: PromotionStepStatus, durations: tuple[int | None, ...]
) -> None:
    spans = [timedelta(minutes=each) if each is not None else None for each in durations]
    names = ("promoting", "waiting_for_merge", "health_checking")
    wanted = PhaseDurations(**dict(zip(names, spans, strict=True)))
    assert phase_durations(status, REVIEWED, now=NOON + timedelta(minutes=40)) == wanted


def test_a_promotion_that_has_not_begun_took_no_time() -> None:
    assert phase_durations(PromotionStepStatus(), REVIEWED, now=NOON) is None


@pytest.mark.parametrize(
    ("selected", "images"),
    [(["api"], [f"ghcr.io/acme/api:1@{DIGEST}"]), ([], [f"ghcr.io/acme/api:1@{DIGEST}", "nginx:2"]), (["other"], [])],
    ids=["some", "all", "one that is not there"],
)
def test_the_images_are_those_that_go_there_with_the_digest_of_the_bundle(
    selected: list[str], images: list[str]
) -> None:
    step = PromotionStep.model_validate(promotion_step("https://x/y", update={"images": selected}))
    promoted = [{"name": "api", "reference": "ghcr.io/acme/api:1", "digest": DIGEST}, {"reference": "nginx:2"}]
    found = evidence_of(
        step,
        Bundle.model_validate(bundle("my-app-1", artifacts={"images": promoted})),
        _status(running=True),
        REVIEWED,
        gates=(),
        metrics={},
        gate_duration=None,
        now=NOON,
    )
    assert list(found.images or ()) == images


def test_the_images_have_the_digests_that_their_tags_had() -> None:
    promoted = bundle("my-app-1", tag="1", image="ghcr.io/acme/api")
    promoted["status"] = {
        "artifacts": [{"reference": "ghcr.io/acme/api:1", "digest": DIGEST, "resolvedAt": NOON.isoformat()}]
    }
    found = evidence_of(
        PromotionStep.model_validate(promotion_step("https://x/y")),
        Bundle.model_validate(promoted),
        _status(running=True),
        REVIEWED,
        gates=(),
        metrics={},
        gate_duration=None,
        now=NOON,
    )
    assert found.images == (f"ghcr.io/acme/api:1@{DIGEST}",)


async def test_approvers_and_merger_are_those_of_the_host(world: World, gitea: FakeGitea) -> None:
    await start_agent(world)
    await deploy(world)
    await put_gate(world, GATE)
    await open_gate(world, GATE)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea, requiredGates=[GATE]))
    await reached(world, "WaitingForMerge")
    for person in ("bob", "x" * 500):
        gitea.approve(1, by=person)
    gitea.merge(1, by="alice")
    await wake(world)
    status = await reached(world, "Verified")
    evidence = status["evidence"]
    assert sorted(evidence["approvedBy"]) == ["bob", "x" * 63 + "…"]
    assert evidence["mergedBy"] == "alice"
    assert evidence["images"] == [f"{IMAGE}:1.1.0"]
    assert {"promoting", "waitingForMerge", "healthChecking"} == evidence["durations"].keys()
    template = (await world.get(POLICY_GATE, "soak", POLICIES))["metadata"]
    (gate,) = evidence["policyGates"]
    assert (gate["name"], gate["namespace"], gate["result"]) == ("soak", POLICIES, "pass")
    assert (gate["templateGeneration"], gate["reason"]) == (template["generation"], "soaked 45m of 30m")


@pytest.mark.parametrize("answer", [(403, {"message": "no"}), (200, [{"state": 7}])], ids=["refused", "malformed"])
async def test_a_host_that_does_not_say_who_approved_holds_nothing_up(
    promotions: Promotions, site: GiteaSite, answer: tuple[int, Any]
) -> None:
    def silent(request: Request) -> tuple[int, Any] | None:
        return answer if request.path.endswith("/reviews") else None

    site.fake.outage = silent
    promotion = await promotions.proposed()
    site.fake.merge(1, by="alice")
    await promotion.go_on()
    assert promotion.landed
    assert site.fake.asked("GET /pulls/1/reviews")
    found = evidence_of(
        promotion.step,
        promotion.bundle,
        promotion.status,
        promotion.sequence,
        gates=(),
        metrics={},
        gate_duration=None,
        now=promotions.clock.now(),
    )
    assert (found.approved_by, found.merged_by) == (("alice",), "alice")


async def test_a_promotion_that_failed_leaves_its_evidence(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    await reviewer.close(1, by="bob", comment="not today")
    status = await reached(world, "Failed")
    assert {"promoting", "waitingForMerge"} == status["evidence"]["durations"].keys()
    assert status["evidence"]["approvedBy"] == []
