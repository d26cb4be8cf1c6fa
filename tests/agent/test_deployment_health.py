"""A Deployment is healthy when it runs the promoted images, all of it, and says so of its current generation."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kardinal.api.image import ImageReference
from kardinal_agent.health.deployment import evaluate

DIGEST = "sha256:" + "ab" * 32
NEW = "ghcr.io/o/app:2.0.0"

JsonObject = dict[str, Any]


def deployment(**spec: Any) -> JsonObject:
    return {
        "metadata": {"name": "app", "namespace": "prod", "generation": 4},
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "main", "image": NEW}]}}} | spec,
        "status": {
            "observedGeneration": 4,
            "replicas": 3,
            "updatedReplicas": 3,
            "availableReplicas": 3,
            "conditions": [
                {"type": "Available", "status": "True"},
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
            ],
        },
    }


def verdict(found: JsonObject | None, *images: str, quote: bool = True) -> tuple[bool, str]:
    references = [ImageReference.parse(image) for image in images or (NEW,)]
    answer = evaluate(found, references, name="prod/app", quote=quote)
    return answer.healthy, answer.message


def test_a_complete_rollout_of_the_promoted_image_is_healthy() -> None:
    assert verdict(deployment()) == (True, f"Deployment prod/app runs {NEW}")


def test_a_deployment_scaled_to_nothing_that_names_the_image_is_complete() -> None:
    found = deployment(replicas=0)
    found["status"] = {
        "observedGeneration": 4,
        "conditions": [{"type": "Available", "status": "True"}],
    }
    assert verdict(found)[0]


def change(*path: str | int, to: Any) -> Callable[[JsonObject], None]:
    def apply(found: JsonObject) -> None:
        part: Any = found
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = to

    return apply


IMAGE = ("spec", "template", "spec", "containers", 0, "image")


@pytest.mark.parametrize(
    ("unhealthy", "words"),
    [
        (change(*IMAGE, to="ghcr.io/o/app:1.0.0"), f"must run {NEW} and has ghcr.io/o/app:1.0.0"),
        (change(*IMAGE, to="other:2.0.0"), f"must run {NEW} and has other:2.0.0"),
        (change(*IMAGE, to="NOT AN IMAGE"), f"must run {NEW} and has NOT AN IMAGE"),
        (change("spec", "template", "spec", "containers", to=None), "and has no image"),
        (change("metadata", "generation", to=5), "generation 5 is not observed yet (observed is 4)"),
        (change("status", to={}), "generation 4 is not observed yet (observed is 0)"),
        (change("status", "updatedReplicas", to=1), "1 of 3 replicas are updated"),
        (change("status", "replicas", to=4), "1 of its replicas still run the version before"),
        (change("status", "availableReplicas", to=2), "2 of 3 replicas are available"),
        (change("status", "conditions", 0, "status", to="False"), "it is not Available"),
        (change("status", "conditions", to=[]), "it is not Available"),
        (
            change("status", "conditions", 1, to={"type": "Progressing", "reason": "ProgressDeadlineExceeded"}),
            "exceeded its progress deadline",
        ),
    ],
)
def test_whatever_is_missing_is_named(unhealthy: Callable[[JsonObject], None], words: str) -> None:
    found = copy.deepcopy(deployment())
    unhealthy(found)
    healthy, message = verdict(found)
    assert not healthy
    assert words in message


@pytest.mark.parametrize(
    ("unhealthy", "words"),
    [
        (change(*IMAGE, to="ghcr.io/o/app:1.0.0"), "it does not run the promoted image yet"),
        (change("spec", "template", "spec", "containers", to=None), "it does not run the promoted image yet"),
        (change("metadata", "generation", to=5), "its latest generation is not observed yet"),
        (change("status", "updatedReplicas", to=1), "not all of its replicas are updated"),
        (change("status", "replicas", to=4), "replicas of the version before still run"),
        (change("status", "availableReplicas", to=2), "not all of its replicas are available"),
        (
            change("status", "conditions", 0, to={"type": "Available", "status": "False", "message": "secret"}),
            "it is not Available",
        ),
        (
            change("status", "conditions", 1, to={"type": "Progressing", "reason": "ProgressDeadlineExceeded"}),
            "its rollout exceeded its progress deadline",
        ),
    ],
)
def test_without_quotes_the_words_are_fixed(unhealthy: Callable[[JsonObject], None], words: str) -> None:
    found = copy.deepcopy(deployment())
    unhealthy(found)
    assert verdict(found, quote=False) == (False, f"waits for Deployment prod/app: {words}")


def test_health_needs_no_quotes() -> None:
    assert verdict(deployment(), quote=False) == verdict(deployment())


def test_a_missing_deployment_is_waited_for() -> None:
    assert verdict(None) == (False, "waits for Deployment prod/app to exist")


def test_a_paused_rollout_says_so() -> None:
    found = deployment(paused=True)
    found["status"]["updatedReplicas"] = 0
    assert "0 of 3 replicas are updated, and it is paused" in verdict(found)[1]


def test_a_promoted_digest_is_not_proven_by_a_tag() -> None:
    pinned = f"{NEW}@{DIGEST}"
    assert not verdict(deployment(), pinned)[0]
    found = deployment()
    change(*IMAGE, to=f"ghcr.io/o/app@{DIGEST}")(found)
    assert verdict(found, pinned)[0]


def test_init_containers_count_and_none_may_run_the_version_before() -> None:
    found = deployment()
    pod = found["spec"]["template"]["spec"]
    pod["initContainers"] = [{"name": "migrate", "image": "ghcr.io/o/app:1.0.0"}]
    assert not verdict(found)[0]
    pod["containers"][0]["image"], pod["initContainers"][0]["image"] = "sidecar:1", NEW
    assert verdict(found)[0]


def test_every_image_of_the_bundle_must_run() -> None:
    assert not verdict(deployment(), NEW, "ghcr.io/o/worker:2.0.0")[0]
