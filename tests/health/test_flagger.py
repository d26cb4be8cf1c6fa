"""A Canary proves a promotion when it has succeeded, and target and primary run the promoted images."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.objects import DEPLOYMENT, POD, JsonObject, Key
from kardinal_agent.health import Verdict, Watched
from kardinal_agent.health.flagger import CANARY, Flagger
from kardinal_agent.health.verdict import MissingObject
from tests.health.rollout_cases import CANARY_CASES, FAILED, canary
from tests.health.tools import (
    NEW,
    OLD,
    Case,
    change,
    deployment,
    judged,
    objects_of,
    promotion,
    promotion_step,
    stuck_pod,
)

STEP = promotion_step({"type": "flagger", "flagger": {"name": "app", "namespace": "prod"}})
TARGET = deployment(replicas=0)
PRIMARY = deployment(name="app-primary")


def verdict(*found: JsonObject, images: tuple[str, ...] = (NEW,), **fields: Any) -> Verdict:
    return judged(Flagger(), STEP, promotion(*images, **fields), *found)


@pytest.mark.parametrize("case", CANARY_CASES, ids=lambda case: case.name)
def test_a_state_of_a_canary(case: Case) -> None:
    answer = verdict(case.of(canary()), TARGET, PRIMARY)
    assert (answer.state, answer.reason) == (case.state, case.reason)
    assert case.words in answer.message
    assert case.says in answer.details
    assert not case.says or case.says not in answer.message


def test_canary_its_target_and_its_primary_are_watched() -> None:
    assert Flagger().watches(STEP) == (Watched(kind=CANARY, namespace="prod", name="app"),)
    assert list(Flagger().related(STEP, promotion(NEW), objects_of(canary()))) == [
        Watched(kind=DEPLOYMENT, namespace="prod", name="app"),
        Watched(kind=DEPLOYMENT, namespace="prod", name="app-primary"),
    ]
    assert verdict().absent == MissingObject(CANARY, Key("prod", "app"), "health.flagger.name")


@pytest.mark.parametrize(
    ("changed", "primary", "words"),
    [
        (None, PRIMARY, "its target does not exist"),
        (deployment(OLD), PRIMARY, "its target does not run"),
        (TARGET, None, "its primary does not exist"),
        (TARGET, deployment(OLD, name="app-primary"), "Flagger has not taken up the new version yet"),
        (TARGET, deployment(name="app-primary", availableReplicas=1), "its primary is not there yet"),
    ],
)
def test_a_success_is_that_of_the_version_which_target_and_primary_run(
    changed: JsonObject | None, primary: JsonObject | None, words: str
) -> None:
    answer = verdict(canary(), *(each for each in (changed, primary) if each is not None))
    assert answer.state == "progressing"
    assert words in answer.message


def test_the_rollout_of_the_primary_can_fail() -> None:
    stuck = [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]
    answer = verdict(canary(), TARGET, deployment(name="app-primary", conditions=stuck))
    assert (answer.state, answer.reason) == ("failed", "ProgressDeadlineExceeded")


def failed() -> JsonObject:
    found = canary()
    for each in FAILED:
        each(found)
    return found


def test_the_correction_of_a_failed_version_is_not_failed_by_it() -> None:
    """Every moment from the failure of the version before to the success of this one."""
    found = failed()
    old_primary = deployment(OLD, name="app-primary")
    change("status", "conditions", 0, "lastTransitionTime", to="2026-11-21T10:58:00Z")(found)
    change("status", "lastTransitionTime", to="2026-11-21T10:59:00Z")(found)
    assert verdict(found, deployment(OLD), old_primary).state == "progressing"
    assert verdict(found, TARGET, old_primary).state == "progressing"
    change("status", "lastTransitionTime", to="2026-11-21T11:00:45Z")(found)
    assert verdict(found, TARGET, old_primary).state == "progressing"
    change("status", "phase", to="Progressing")(found)
    assert verdict(found, TARGET, old_primary).state == "progressing"
    assert verdict(found, TARGET, PRIMARY).state == "progressing"
    change("status", "phase", to="Succeeded")(found)
    assert verdict(found, TARGET, PRIMARY).state == "healthy"


def test_a_failure_between_the_landing_and_the_rollout_is_of_the_version_before() -> None:
    found = failed()
    change("status", "conditions", 0, "lastTransitionTime", to="2026-11-21T11:00:30Z")(found)
    change("status", "lastTransitionTime", to="2026-11-21T11:00:30Z")(found)
    assert verdict(found, TARGET, PRIMARY).state == "progressing"
    change("status", "lastTransitionTime", to="2026-11-21T11:01:30Z")(found)
    assert verdict(found, TARGET, PRIMARY).state == "failed"


def test_without_a_landing_no_failure_is_known_to_be_of_this_version() -> None:
    step = promotion_step({"type": "flagger", "flagger": {"name": "app", "namespace": "prod"}}, promotedAt=None)
    assert judged(Flagger(), step, promotion(NEW), failed(), TARGET, PRIMARY).state == "progressing"


def test_a_commit_without_images_is_not_proved_by_it_alone() -> None:
    assert verdict(canary(), TARGET, PRIMARY, images=()).message.endswith("use argocd or flux")
    delegated = promotion_step({"type": "argocd", "flagger": {"name": "app", "namespace": "prod"}})
    assert judged(Flagger(), delegated, promotion(), canary(), TARGET, PRIMARY).state == "healthy"


def test_an_image_that_cannot_be_pulled_fails_before_the_progress_deadline() -> None:
    found = canary()
    target = deployment(availableReplicas=0)
    change("status", "phase", to="Progressing")(found)
    change("spec", "selector", "matchLabels", to={"app": "app"})(target)
    pods = Watched(kind=POD, namespace="prod", selector={"app": "app"}, optional=True)
    assert pods in Flagger().related(STEP, promotion(NEW), objects_of(found, target))
    answer = verdict(found, target, deployment(OLD, name="app-primary"), stuck_pod())
    assert (answer.state, answer.reason) == ("failed", "ImagePullBackOff")
    assert verdict(found, target, stuck_pod(OLD)).state == "progressing"
    assert pods not in Flagger().related(STEP, promotion(NEW), objects_of(canary(), target, PRIMARY))
