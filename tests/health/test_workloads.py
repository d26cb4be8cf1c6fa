"""A workload is healthy when it runs the promoted images, all of it, and says so of its current generation."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from kardinal.objects import DEPLOYMENT, JsonObject
from kardinal.objects.image_reference import ImageReference
from kardinal_agent.health import Verdict
from kardinal_agent.health.workloads import judge_workload, missing_workload

DIGEST = "sha256:" + "ab" * 32
NEW = "ghcr.io/o/app:2.0.0"


def workload(kind: str, status: JsonObject, **spec: Any) -> JsonObject:
    return {
        "kind": kind,
        "metadata": {"name": "app", "namespace": "prod", "generation": 4},
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": NEW}]}}} | spec,
        "status": status,
    }


def deployment(**spec: Any) -> JsonObject:
    conditions = [
        {"type": "Available", "status": "True"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
    ]
    counts = {"observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    return workload("Deployment", {**counts, "conditions": conditions}, **({"replicas": 3} | spec))


def stateful_set(**spec: Any) -> JsonObject:
    counts = {"observedGeneration": 4, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
    return workload("StatefulSet", counts, **({"replicas": 3} | spec))


def daemon_set(**spec: Any) -> JsonObject:
    counts = {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}
    return workload("DaemonSet", {"observedGeneration": 4, **counts}, **spec)


def job(condition: str | None = "Complete", **spec: Any) -> JsonObject:
    conditions = [{"type": condition, "status": "True", "message": "says so"}] if condition else []
    return workload("Job", {"conditions": conditions}, **spec)


def cron_job(image: str = NEW) -> JsonObject:
    pod = {"spec": {"containers": [{"name": "main", "image": image}]}}
    return {
        "kind": "CronJob",
        "metadata": {"name": "app", "namespace": "prod"},
        "spec": {"jobTemplate": {"spec": {"template": pod}}},
    }


def verdict(found: JsonObject, *images: str) -> Verdict:
    return judge_workload(found, [ImageReference.parse(image) for image in images or (NEW,)])


def change(*path: str | int, to: Any) -> Callable[[JsonObject], None]:
    def apply(found: JsonObject) -> None:
        part: Any = found
        for name in path[:-1]:
            part = part[name]
        part[path[-1]] = to

    return apply


IMAGE = ("spec", "template", "spec", "containers", 0, "image")


@pytest.mark.parametrize("found", [deployment(), stateful_set(), daemon_set(), job(), cron_job()])
def test_a_complete_rollout_of_the_promoted_image_is_healthy(found: JsonObject) -> None:
    answer = verdict(found)
    assert (answer.state, answer.message) == ("healthy", f"{found['kind']} prod/app runs {NEW}")


@pytest.mark.parametrize("found", [deployment(), stateful_set(), daemon_set(), job(), job("Failed"), cron_job()])
def test_the_version_before_is_never_healthy_nor_failed(found: JsonObject) -> None:
    assert verdict(found, "ghcr.io/o/app:3.0.0").state == "progressing"


@pytest.mark.parametrize("found", [deployment(), stateful_set(), daemon_set()])
def test_a_generation_that_is_not_observed_says_nothing(found: JsonObject) -> None:
    found["metadata"]["generation"] = 5
    answer = verdict(found)
    assert answer.state == "progressing"
    assert "generation 5 is not observed yet (observed is 4)" in answer.details


def test_a_deployment_scaled_to_nothing_that_names_the_image_is_complete() -> None:
    found = deployment(replicas=0)
    found["status"] = {"observedGeneration": 4, "conditions": [{"type": "Available", "status": "True"}]}
    assert verdict(found).state == "healthy"


@pytest.mark.parametrize(
    ("found", "unhealthy", "words", "details"),
    [
        (
            deployment(),
            change(*IMAGE, to="ghcr.io/o/app:1.0.0"),
            "it does not run",
            f"must run {NEW} and has ghcr.io/o/app:1.0.0",
        ),
        (deployment(), change(*IMAGE, to="other:2.0.0"), "", f"must run {NEW} and has other:2.0.0"),
        (deployment(), change(*IMAGE, to="NOT AN IMAGE"), "", f"must run {NEW} and has NOT AN IMAGE"),
        (deployment(), change("spec", "template", "spec", "containers", to=None), "", "and has no image"),
        (deployment(), change("status", to={}), "its latest generation", "(observed is 0)"),
        (
            deployment(),
            change("status", "updatedReplicas", to=1),
            "not all of its replicas are updated",
            "1 of 3 replicas are updated",
        ),
        (
            deployment(),
            change("status", "replicas", to=4),
            "replicas of the version before still run",
            "1 of its replicas still run the version before",
        ),
        (
            deployment(),
            change("status", "availableReplicas", to=2),
            "not all of its replicas are available",
            "2 of 3 replicas are available",
        ),
        (
            deployment(),
            change("status", "conditions", 0, to={"type": "Available", "status": "False", "message": "secret"}),
            "it is not Available",
            "it is not Available: secret",
        ),
        (deployment(), change("status", "conditions", to=[]), "it is not Available", "it does not say so"),
        (deployment(paused=True), change("status", "updatedReplicas", to=0), "", "are updated, and it is paused"),
        (
            stateful_set(updateStrategy={"type": "OnDelete"}),
            change("status", "updatedReplicas", to=1),
            "not all of its replicas are updated",
            "when their pods are deleted (updateStrategy OnDelete)",
        ),
        (
            stateful_set(updateStrategy={"rollingUpdate": {"partition": 2}}),
            change("status", "updatedReplicas", to=1),
            "not all of its replicas are updated",
            "its partition keeps those below 2 at the version before",
        ),
        (
            daemon_set(),
            change("status", "updatedNumberScheduled", to=2),
            "not all of its pods are updated",
            "2 of 3 pods are updated",
        ),
        (
            daemon_set(),
            change("status", "numberAvailable", to=2),
            "not all of its pods are available",
            "2 of 3 pods are available",
        ),
        (job(None), change("status", to={}), "it is not complete", ""),
        (job(None, suspend=True), change("status", to={}), "it is suspended", ""),
    ],
)
def test_shortfall_has_fixed_words_and_those_of_the_object(
    found: JsonObject, unhealthy: Callable[[JsonObject], None], words: str, details: str
) -> None:
    unhealthy(found)
    answer = verdict(found)
    assert answer.state == "progressing"
    assert answer.message.startswith(f"waits for {found['kind']} prod/app: {words}")
    assert details in answer.details
    assert "secret" not in answer.message


def test_an_exceeded_progress_deadline_is_a_failure_since_it_was_noticed() -> None:
    found = deployment()
    found["status"]["conditions"][1] = {
        "type": "Progressing",
        "status": "False",
        "reason": "ProgressDeadlineExceeded",
        "message": "secret",
        "lastUpdateTime": "2026-03-03T10:00:00Z",
    }
    answer = verdict(found)
    assert (answer.state, answer.reason) == ("failed", "ProgressDeadlineExceeded")
    assert answer.message == "Deployment prod/app: its rollout exceeded its progress deadline"
    assert answer.details == f"{answer.message}: secret"
    assert answer.since == datetime(2026, 3, 3, 10, tzinfo=UTC)


def test_an_exceeded_progress_deadline_of_the_version_before_is_none() -> None:
    found = deployment()
    found["status"]["conditions"][1] |= {"status": "False", "reason": "ProgressDeadlineExceeded"}
    found["metadata"]["generation"] = 5
    assert verdict(found).state == "progressing"


def test_a_failed_job_is_a_failure() -> None:
    answer = verdict(job("Failed"))
    assert (answer.state, answer.reason) == ("failed", "JobFailed")
    assert answer.details == "Job prod/app: it has failed: says so"


@pytest.mark.parametrize(
    ("found", "negative"),
    [
        (change("status", "conditions", 0, "status", to="False"), True),
        (change("status", "availableReplicas", to=2), False),
        (change("status", "updatedReplicas", to=1), False),
    ],
)
def test_only_what_is_unavailable_is_negative(found: Callable[[JsonObject], None], negative: bool) -> None:
    made = deployment()
    found(made)
    assert verdict(made).negative is negative


def test_a_missing_workload_is_waited_for() -> None:
    assert missing_workload(DEPLOYMENT, "prod", "app").message == "waits for Deployment prod/app to exist"


def test_a_promoted_digest_is_not_proven_by_a_tag() -> None:
    pinned = f"{NEW}@{DIGEST}"
    assert verdict(deployment(), pinned).state == "progressing"
    found = deployment()
    change(*IMAGE, to=f"ghcr.io/o/app@{DIGEST}")(found)
    assert verdict(found, pinned).state == "healthy"


def test_init_containers_count_and_none_may_run_the_version_before() -> None:
    found = deployment()
    pod = found["spec"]["template"]["spec"]
    pod["initContainers"] = [{"name": "migrate", "image": "ghcr.io/o/app:1.0.0"}]
    assert verdict(found).state == "progressing"
    pod["containers"][0]["image"] = "sidecar:1"
    pod["initContainers"][0]["image"] = NEW
    assert verdict(found).state == "healthy"


def test_every_image_that_is_asked_for_must_run() -> None:
    assert verdict(deployment(), NEW, "ghcr.io/o/worker:2.0.0").state == "progressing"
