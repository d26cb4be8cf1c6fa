"""Which workloads prove a promotion, and that each promoted image runs in one of them at least."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.objects import CRON_JOB, DEPLOYMENT, JOB, POD, STATEFUL_SET, JsonObject, ResourceType
from kardinal.objects.image_reference import ImageReference
from kardinal.promotion.api import PromotionStep
from kardinal_agent.health import PromotionFacts, Verdict, WatchedObjects
from kardinal_agent.health.resource import ResourceAdapter
from kardinal_agent.health.workloads import missing_workload
from tests.agent.promotion_steps import promotion_step

WEB = "ghcr.io/o/web:2.0.0"
WORKER = "ghcr.io/o/worker:2.0.0"
OLD_WEB = "ghcr.io/o/web:1.0.0"


def rolled_out(name: str, *images: str, kind: ResourceType = DEPLOYMENT, **changed: Any) -> JsonObject:
    containers = [{"name": f"c{index}", "image": image} for index, image in enumerate(images)]
    template = {"spec": {"containers": containers}}
    spec: JsonObject = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    counts = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
    return {
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": "dev", "generation": 1},
        "spec": {"jobTemplate": {"spec": spec}} if kind is CRON_JOB else spec,
        "status": {**counts, "conditions": [{"type": "Available", "status": "True"}], **changed},
    }


def job(name: str, image: str, *, ended: str | None = "Complete", owner: str | None = None) -> JsonObject:
    made = rolled_out(name, image, kind=JOB)
    made["status"] = {"conditions": [{"type": ended, "status": "True"}] if ended else []}
    if owner:
        reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": owner, "uid": "1", "controller": True}
        made["metadata"]["ownerReferences"] = [reference]
    return made


def pod(app: str, image: str, reason: str) -> JsonObject:
    waiting = {"reason": reason, "message": "secret"}
    return {
        "metadata": {"name": f"{app}-x", "namespace": "dev", "labels": {"app": app, "hash": "1"}},
        "spec": {"containers": [{"image": image}]},
        "status": {"containerStatuses": [{"image": image, "state": {"waiting": waiting}}]},
    }


def judged(
    *objects: JsonObject, images: tuple[str, ...] = (WEB,), pods: tuple[JsonObject, ...] = (), **resource: Any
) -> Verdict:
    step = PromotionStep.model_validate(
        promotion_step("file:///repo", health={"resource": {"namespace": "dev", **resource}})
    )
    promotion = PromotionFacts(
        images=[ImageReference.parse(image) for image in images],
        charts=(),
        commit="c" * 40,
        repository="file:///repo",
        branch="main",
        path="environments/dev",
        contains=lambda _: None,
    )
    kinds = (DEPLOYMENT, STATEFUL_SET, CRON_JOB, JOB)
    known = {kind: [obj for obj in objects if obj["kind"] == kind.kind] for kind in kinds}
    adapter = ResourceAdapter()
    found = WatchedObjects({**known, POD: pods})
    adapter.related(step, promotion, found)
    return adapter.judge(step, promotion, found)


def watched(**resource: Any) -> list[tuple[str, str | None]]:
    step = PromotionStep.model_validate(promotion_step("file:///repo", health={"resource": resource}))
    return [(each.kind.kind, each.name) for each in ResourceAdapter().watches(step)]


ALL = ["Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job"]


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ({"name": "web"}, [("Deployment", "web")]),
        ({"names": ["a", "b"], "kind": "StatefulSet"}, [("StatefulSet", "a"), ("StatefulSet", "b")]),
        ({"kind": "DaemonSet"}, [("DaemonSet", None)]),
        ({"selector": {"app": "web"}}, [(kind, None) for kind in ALL]),
        ({}, [(kind, None) for kind in ALL]),
    ],
)
def test_no_more_is_watched_than_is_meant(resource: dict[str, Any], expected: list[tuple[str, str | None]]) -> None:
    assert watched(**resource) == expected


def test_two_services_of_one_bundle_are_proven_by_a_workload_each() -> None:
    answer = judged(rolled_out("web", WEB), rolled_out("worker", WORKER, kind=STATEFUL_SET), images=(WEB, WORKER))
    assert answer.state == "healthy"
    assert answer.details == f"Deployment dev/web runs {WEB}; StatefulSet dev/worker runs {WORKER}"
    assert "dev/web" not in answer.message


def test_one_service_that_stays_behind_is_no_success() -> None:
    answer = judged(rolled_out("web", OLD_WEB), rolled_out("worker", WORKER), images=(WEB, WORKER))
    assert answer.state == "progressing"
    assert "Deployment dev/web: " in answer.details
    assert OLD_WEB in answer.details
    assert "dev/web" not in answer.message
    assert answer.message.startswith("waits for a Deployment of namespace dev: ")
    assert OLD_WEB not in answer.message


def test_an_image_that_nothing_runs_is_no_success() -> None:
    answer = judged(rolled_out("web", WEB), images=(WEB, WORKER))
    assert answer.state == "progressing"
    assert "runs a version of ghcr.io/o/worker" in answer.message
    assert "(Deployment dev/web)" in answer.details


def test_workloads_of_other_images_take_no_part() -> None:
    broken = rolled_out("db", "postgres:16", availableReplicas=0)
    assert judged(rolled_out("web", WEB), broken).state == "healthy"


def test_nothing_found_lists_what_there_is_and_the_field_to_set() -> None:
    answer = judged(rolled_out("db", "postgres:16"))
    assert answer.state == "progressing"
    assert "health.resource.namespace" in answer.message
    assert "dev/db" not in answer.message
    assert "there are Deployment dev/db" in answer.details


def test_named_workloads_all_count() -> None:
    both: dict[str, Any] = {"images": (WEB, WORKER), "names": ["web", "worker"]}
    web = rolled_out("web", WEB)
    worker = rolled_out("worker", WORKER)
    assert judged(web, worker, **both).state == "healthy"
    assert judged(web, **both).message == missing_workload(DEPLOYMENT, "dev", "worker").message
    assert judged(web, rolled_out("worker", "other:1"), **both).state == "progressing"
    late = rolled_out("worker", WORKER, availableReplicas=1)
    assert "1 of 2 replicas are available" in judged(web, late, **both).details


def test_one_name_has_to_run_every_image() -> None:
    answer = judged(rolled_out("web", WEB), images=(WEB, WORKER), name="web")
    assert answer.state == "progressing"
    assert f"must run {WORKER}" in answer.details
    assert judged(rolled_out("web", WEB, WORKER), images=(WEB, WORKER), name="web").state == "healthy"


def test_jobs_of_the_version_before_and_of_cron_jobs_are_not_asked() -> None:
    jobs = (job("migrate-1", OLD_WEB, ended="Failed"), job("nightly-1", WEB, ended="Failed", owner="nightly"))
    nightly = rolled_out("nightly", WEB, kind=CRON_JOB)
    assert judged(rolled_out("web", WEB), nightly, *jobs).state == "healthy"
    assert judged(rolled_out("web", WEB), job("migrate-2", WEB, ended=None)).state == "progressing"
    assert judged(rolled_out("web", WEB), job("migrate-2", WEB, ended="Failed")).reason == "JobFailed"


def test_a_bundle_without_images_asks_for_what_is_deployed_there() -> None:
    assert judged(rolled_out("web", OLD_WEB), images=()).state == "healthy"
    assert judged(rolled_out("web", OLD_WEB, availableReplicas=1), images=()).state == "progressing"
    assert "no workload in namespace dev" in judged(images=()).message


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"])
def test_an_image_of_the_promoted_version_that_cannot_be_pulled_is_a_failure(reason: str) -> None:
    late = rolled_out("web", WEB, updatedReplicas=1)
    answer = judged(late, pods=(pod("web", WEB, reason),), name="web")
    assert (answer.state, answer.reason) == ("failed", "ImagePullBackOff")
    assert f"pod web-x cannot pull {WEB}: {reason}: secret" in answer.details
    assert "secret" not in answer.message


@pytest.mark.parametrize(
    "other",
    [
        pod("web", OLD_WEB, "ImagePullBackOff"),
        pod("db", WEB, "ImagePullBackOff"),
        pod("web", WEB, "ContainerCreating"),
        pod("web", WEB, "CrashLoopBackOff"),
    ],
    ids=["version before", "another workload", "starting", "crashing"],
)
def test_other_pods_fail_nothing(other: JsonObject) -> None:
    late = rolled_out("web", WEB, updatedReplicas=1)
    assert judged(late, pods=(other,), name="web").state == "progressing"


def test_pods_are_looked_at_only_while_their_workload_is_not_rolled_out() -> None:
    step = PromotionStep.model_validate(promotion_step("file:///repo", health={"resource": {"namespace": "dev"}}))
    promotion = PromotionFacts(
        images=[ImageReference.parse(WEB)], charts=(), commit=None, repository="", branch="", path="", contains=bool
    )
    adapter = ResourceAdapter()
    done = rolled_out("web", WEB)
    late = rolled_out("web", WEB, updatedReplicas=1)
    assert adapter.related(step, promotion, WatchedObjects({DEPLOYMENT: [done]})) == []
    [pods] = adapter.related(step, promotion, WatchedObjects({DEPLOYMENT: [late]}))
    assert (pods.kind, pods.selector, pods.optional) == (POD, {"app": "web"}, True)
