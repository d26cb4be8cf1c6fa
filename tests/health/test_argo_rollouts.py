"""A Rollout proves a promotion when its template runs the images and it is fully promoted, at its generation."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.objects import DEPLOYMENT, POD, REPLICA_SET, JsonObject, Key
from kardinal_agent.health import Verdict, Watched
from kardinal_agent.health.argo_rollouts import ROLLOUT, ArgoRollouts
from kardinal_agent.health.verdict import MissingObject
from tests.health.rollout_cases import ROLLOUT_CASES, replica_set, rollout
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
    remove,
    stuck_pod,
)

STEP = promotion_step({"type": "argoRollouts", "argoRollouts": {"name": "app", "namespace": "prod"}})

STABLE = Watched(kind=REPLICA_SET, namespace="prod", selector={"rollouts-pod-template-hash": "789746c88d"})


def verdict(
    *found: JsonObject, images: tuple[str, ...] = (NEW,), stable: JsonObject | None = None, **fields: Any
) -> Verdict:
    return judged(ArgoRollouts(), STEP, promotion(*images, **fields), *found, stable or replica_set())


@pytest.mark.parametrize("case", ROLLOUT_CASES, ids=lambda case: case.name)
def test_a_state_of_a_rollout(case: Case) -> None:
    answer = verdict(case.of(rollout()))
    assert (answer.state, answer.reason) == (case.state, case.reason)
    assert case.words in answer.message
    assert case.says in answer.details
    assert not case.says or case.says not in answer.message


def test_named_rollout_is_watched() -> None:
    assert ArgoRollouts().watches(STEP) == (Watched(kind=ROLLOUT, namespace="prod", name="app"),)
    assert verdict().absent == MissingObject(ROLLOUT, Key("prod", "app"), "health.argoRollouts.name")
    assert list(ArgoRollouts().related(STEP, promotion(NEW), objects_of(rollout()))) == [STABLE]


def test_init_containers_count_and_none_may_run_the_version_before() -> None:
    found = rollout()
    change("spec", "template", "spec", "initContainers", to=[{"name": "migrate", "image": OLD}])(found)
    assert verdict(found).message.endswith("the promoted image yet")


def referring() -> JsonObject:
    found = rollout()
    remove("spec", "template")(found)
    change("spec", "workloadRef", to={"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"})(found)
    change("status", "workloadObservedGeneration", to="4")(found)
    return found


def test_the_template_is_that_of_the_workload_it_refers_to() -> None:
    below = ArgoRollouts().related(STEP, promotion(NEW), objects_of(referring()))
    assert list(below) == [Watched(kind=DEPLOYMENT, namespace="prod", name="app"), STABLE]
    assert verdict(referring(), deployment(replicas=0)).state == "healthy"
    assert verdict(referring(), deployment(OLD)).message.endswith("the promoted image yet")
    assert verdict(referring()).message.endswith("the Deployment of its workloadRef does not exist")
    unseen = verdict(referring(), deployment(generation=5))
    assert unseen.message.endswith("the latest generation of its workloadRef is not observed yet")


def test_the_correction_of_a_degraded_rollout_is_not_failed_by_it() -> None:
    """The template of the correction is there, and the status is still that of the version before."""
    found = rollout()
    change("status", "phase", to="Degraded")(found)
    change("status", "abort", to=True)(found)
    change("metadata", "generation", to=5)(found)
    assert verdict(found).state == "progressing"
    change("status", "observedGeneration", to="5")(found)
    assert verdict(found).state == "failed"


@pytest.mark.parametrize(
    ("stable", "words"),
    [
        (replica_set(OLD), "not the stable one yet"),
        (replica_set(hash_="6cf78c66c5"), "the ReplicaSet of its stable version is not seen yet"),
        (replica_set(owner="other"), "the ReplicaSet of its stable version is not seen yet"),
    ],
    ids=["the version before", "another version", "of another Rollout"],
)
def test_the_stable_version_must_run_the_images(stable: JsonObject, words: str) -> None:
    """A Rollout whose pause ends in the commit of the promotion is Healthy for a moment of the version before."""
    answer = verdict(rollout(), stable=stable)
    assert answer.state == "progressing"
    assert answer.message.endswith(words)


@pytest.mark.parametrize("hash_", ["", "a,b=c", "A", "x" * 64, ["789746c88d"], None])
def test_a_hash_of_another_shape_is_no_selector(hash_: object) -> None:
    """It is chosen by those who may write the status of such an object."""
    found = rollout()
    change("status", "stableRS", to=hash_)(found)
    change("status", "currentPodHash", to=hash_)(found)
    assert list(ArgoRollouts().related(STEP, promotion(NEW), objects_of(found))) == []
    assert verdict(found).state == "progressing"


def test_a_return_to_the_stable_version_is_a_proof() -> None:
    found = rollout()
    change("status", "abortedAt", to="2026-11-21T10:30:00Z")(found)
    assert verdict(found).state == "healthy"


def test_a_commit_without_images_is_not_proved_by_it_alone() -> None:
    assert verdict(rollout(), images=()).message.endswith("use argocd or flux")
    delegated = promotion_step({"type": "argocd", "argoRollouts": {"name": "app", "namespace": "prod"}})
    assert judged(ArgoRollouts(), delegated, promotion(), rollout()).state == "healthy"


def test_since_is_the_last_change_of_a_condition_or_a_pause() -> None:
    found = rollout()
    change("status", "phase", to="Paused")(found)
    change("status", "pauseConditions", to=[{"reason": "CanaryPauseStep", "startTime": "2026-11-21T11:03:00Z"}])(found)
    since = verdict(found).since
    assert since is not None
    assert since.isoformat() == "2026-11-21T11:03:00+00:00"


PODS = Watched(kind=POD, namespace="prod", selector={"app": "app"}, optional=True)


def selecting(made: JsonObject, **labels: object) -> JsonObject:
    """Return a workload whose pods have labels, by default that of the application."""
    change("spec", "selector", "matchLabels", to=labels or {"app": "app"})(made)
    return made


def under_way() -> JsonObject:
    found = selecting(rollout())
    change("status", "phase", to="Progressing")(found)
    return found


def test_an_image_that_cannot_be_pulled_fails_before_the_progress_deadline() -> None:
    answer = verdict(under_way(), stuck_pod())
    assert (answer.state, answer.reason) == ("failed", "ImagePullBackOff")
    assert "Rollout prod/app: pod app-x cannot pull" in answer.details
    assert "no such tag" not in answer.message
    for other in (stuck_pod(OLD), stuck_pod(app="other")):
        assert verdict(under_way(), other).state == "progressing"
    assert verdict(selecting(rollout()), stuck_pod()).state == "healthy"


def test_the_pods_of_a_rollout_that_refers_to_a_deployment_are_those_of_the_deployment() -> None:
    found = referring()
    referred = selecting(deployment(replicas=0))
    change("status", "phase", to="Progressing")(found)
    assert verdict(found, referred, stuck_pod()).reason == "ImagePullBackOff"


def test_pods_are_looked_at_only_until_it_is_promoted() -> None:
    assert list(ArgoRollouts().related(STEP, promotion(NEW), objects_of(under_way()))) == [STABLE, PODS]
    assert list(ArgoRollouts().related(STEP, promotion(NEW), objects_of(selecting(rollout()), replica_set()))) == [
        STABLE
    ]


@pytest.mark.parametrize("labels", [{"app": {"a": "b"}}, {"app": None}, {"app": ["app"]}])
def test_a_selector_of_another_shape_chooses_no_pods(labels: dict[str, object]) -> None:
    """Any definition of a Rollout may be installed."""
    found = under_way()
    change("spec", "selector", "matchLabels", to=labels)(found)
    assert verdict(found, stuck_pod()).state == "progressing"
    change("spec", "selector", to=["app"])(found)
    assert verdict(found, stuck_pod()).state == "progressing"
