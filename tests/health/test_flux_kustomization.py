"""A Kustomization proves a promotion when it has applied the commit, is Ready, and its workloads run the images."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.objects import DEPLOYMENT, JsonObject, Key
from kardinal_agent.health import Verdict, Watched
from kardinal_agent.health.flux import Flux
from kardinal_agent.health.flux_common import KUSTOMIZATION, commit_of
from kardinal_agent.health.verdict import MissingObject
from tests.health.flux_cases import KUSTOMIZATION_CASES, STALLED, is_, kustomization
from tests.health.tools import (
    BEFORE,
    COMMIT,
    LATER,
    NEW,
    OLD,
    Case,
    change,
    deployment,
    judged,
    objects_of,
    promotion,
    promotion_step,
)

STEP = promotion_step({"type": "flux", "flux": {"name": "app"}})


def verdict(*found: JsonObject, images: tuple[str, ...] = (NEW,), **fields: Any) -> Verdict:
    return judged(Flux(), STEP, promotion(*images, **fields), *found)


@pytest.mark.parametrize("case", KUSTOMIZATION_CASES, ids=lambda case: case.name)
def test_a_state_of_a_kustomization(case: Case) -> None:
    answer = verdict(case.of(kustomization()), deployment())
    assert (answer.state, answer.reason) == (case.state, case.reason)
    assert case.words in answer.message
    assert case.says in answer.details
    assert not case.says or case.says not in answer.message


def test_kustomization_and_the_workloads_of_its_inventory_are_watched() -> None:
    named = Watched(kind=KUSTOMIZATION, namespace="flux-system", name="app")
    assert Flux().watches(STEP) == (named,)
    below = Flux().related(STEP, promotion(NEW), objects_of(kustomization()))
    assert list(below) == [Watched(kind=DEPLOYMENT, namespace="prod", name="app")]
    assert Flux().related(STEP, promotion(NEW), objects_of()) == ()


def test_a_healthy_verdict_has_to_last() -> None:
    """Ready turns True before the applied revision moves, in another write of the status."""
    assert Flux().confirm_seconds == 1.0


def test_a_kustomization_that_does_not_exist_is_waited_for() -> None:
    assert verdict().absent == MissingObject(KUSTOMIZATION, Key("flux-system", "app"), "health.flux.name")


@pytest.mark.parametrize(
    ("revision", "commit"),
    [
        (f"main@sha1:{COMMIT}", COMMIT),
        (f"refs/heads/team@b@sha1:{COMMIT}", COMMIT),
        (f"sha1:{COMMIT}", COMMIT),
        (f"main/{COMMIT}", COMMIT),
        (f"latest@sha256:{'d' * 64}", None),
        ("6.6.1+0cc9a8446c95", None),
        ("", None),
    ],
)
def test_the_commit_of_a_revision(revision: str, commit: str | None) -> None:
    assert commit_of(revision) == commit


def test_a_later_commit_on_top_is_a_proof_while_the_workloads_run_the_image() -> None:
    found = kustomization()
    change("status", "lastAppliedRevision", to=f"main@sha1:{LATER}")(found)
    assert verdict(found, deployment()).state == "healthy"
    answer = verdict(found, deployment(OLD))
    assert answer.message == "waits for Kustomization flux-system/app: a workload that it applied is not there yet"
    assert f"has {OLD}" in answer.details


def test_images_that_only_a_delegate_runs_are_proved_by_the_delegate() -> None:
    """Flux applies a Rollout, which is none of the workloads that it is judged by."""
    delegating = promotion_step({"type": "flux", "flux": {"name": "app"}}, delegate="argoRollouts")
    found = kustomization()
    change("status", "inventory", "entries", to=[{"id": "prod_app_argoproj.io_Rollout", "v": "v1alpha1"}])(found)
    assert verdict(found).message.endswith("applied runs ghcr.io/o/app")
    assert judged(Flux(), delegating, promotion(NEW), found).state == "healthy"
    assert judged(Flux(), delegating, promotion(NEW), kustomization(), deployment(OLD)).state == "progressing"


def test_the_commit_that_an_artifact_was_made_from_counts() -> None:
    found = kustomization()
    change("status", "lastAppliedRevision", to=f"latest@sha256:{'d' * 64}")(found)
    change("status", "lastAppliedOriginRevision", to=f"main@sha1:{BEFORE}")(found)
    assert verdict(found, deployment()).state == "progressing"
    change("status", "lastAppliedOriginRevision", to=f"main@sha1:{COMMIT}")(found)
    assert verdict(found, deployment()).state == "healthy"


def test_the_failure_of_an_artifact_is_known_by_the_history() -> None:
    found = kustomization()
    attempted = f"latest@sha256:{'d' * 64}"
    change("status", "lastAppliedOriginRevision", to=f"main@sha1:{BEFORE}")(found)
    change("status", "lastAttemptedRevision", to=attempted)(found)
    is_("False", "HealthCheckFailed")(found)
    assert verdict(found, deployment()).state == "progressing"
    entry = {"metadata": {"revision": attempted, "originRevision": f"main@sha1:{COMMIT}"}}
    change("status", "history", to=[entry])(found)
    assert verdict(found, deployment()).state == "failed"


def test_a_workload_that_failed_with_the_image_fails_while_flux_still_waits() -> None:
    """Retries flip Ready between False and Unknown; the workload stays as it is."""
    found = kustomization()
    change("status", "lastAppliedRevision", to=f"main@sha1:{BEFORE}")(found)
    is_("Unknown", "Progressing")(found)
    stuck = deployment(conditions=[{"type": "Progressing", "reason": "ProgressDeadlineExceeded", "message": "slow"}])
    answer = verdict(found, stuck)
    assert (answer.state, answer.reason, answer.negative) == ("failed", "ProgressDeadlineExceeded", True)
    assert "slow" in answer.details
    assert "slow" not in answer.message
    change("status", "lastAttemptedRevision", to=f"main@sha1:{BEFORE}")(found)
    assert verdict(found, stuck).state == "progressing"


def test_the_correction_of_a_failed_version_is_not_failed_by_it() -> None:
    """Each moment from the failure of the version before to the success of this one."""
    found = kustomization()
    old = f"main@sha1:{BEFORE}"
    change("status", "lastAppliedRevision", to=f"main@sha1:{'0' * 40}")(found)
    change("status", "lastAttemptedRevision", to=old)(found)
    is_("False", "HealthCheckFailed")(found)
    broken = deployment(OLD, conditions=[{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}])
    assert verdict(found, broken).state == "progressing"
    is_("Unknown", "Progressing")(found)
    assert verdict(found, broken).state == "progressing"
    change("status", "lastAttemptedRevision", to=f"main@sha1:{COMMIT}")(found)
    assert verdict(found, broken).state == "progressing"
    assert verdict(found, deployment()).state == "progressing"
    is_("True", "ReconciliationSucceeded")(found)
    assert verdict(found, deployment()).state == "progressing"
    change("status", "lastAppliedRevision", to=f"main@sha1:{COMMIT}")(found)
    assert verdict(found, deployment()).state == "healthy"


def test_stalled_counts_from_the_merge_of_a_pull_request() -> None:
    found = kustomization()
    STALLED(found)
    step = promotion_step({"type": "flux", "flux": {"name": "app"}}, mergedAt="2026-11-21T11:02:00Z")
    assert judged(Flux(), step, promotion(NEW), found, deployment()).state == "progressing"


def test_a_workload_of_the_inventory_that_does_not_exist_is_waited_for() -> None:
    answer = verdict(kustomization())
    assert answer.message == "waits for Kustomization flux-system/app: a workload that it applied does not exist"


def with_inventory(*ids: str) -> JsonObject:
    found = kustomization()
    change("status", "inventory", "entries", to=[{"id": each} for each in ids])(found)
    return found


def test_every_workload_of_the_image_counts_and_others_do_not() -> None:
    found = with_inventory("prod_app_apps_Deployment", "prod_worker_apps_Deployment", "prod_cache_apps_Deployment")
    cache = deployment("redis:7", name="cache", availableReplicas=0)
    assert verdict(found, deployment(), deployment(name="worker"), cache).state == "healthy"
    assert verdict(found, deployment(), deployment(OLD, name="worker"), cache).state == "progressing"


def test_each_image_needs_a_workload() -> None:
    second = "ghcr.io/o/worker:2.0.0"
    found = with_inventory("prod_app_apps_Deployment", "prod_worker_apps_Deployment")
    both = (NEW, second)
    assert verdict(found, deployment(), deployment(second, name="worker"), images=both).state == "healthy"
    missing = verdict(found, deployment(), deployment(name="worker"), images=both)
    assert missing.message.endswith("applied runs ghcr.io/o/worker")


def test_without_an_image_every_workload_that_goes_on_must_be_complete() -> None:
    found = with_inventory("prod_app_apps_Deployment", "prod_once_batch_Job")
    once = {"kind": "Job", "metadata": {"name": "once", "namespace": "prod"}, "spec": {}, "status": {}}
    assert verdict(found, deployment(), once, images=()).state == "healthy"
    assert verdict(found, deployment(availableReplicas=1), once, images=()).state == "progressing"
    before = kustomization()
    change("status", "lastAppliedRevision", to=f"main@sha1:{BEFORE}")(before)
    assert verdict(before, deployment(), images=()).state == "progressing"


def test_only_a_failed_health_check_says_that_what_ran_is_no_longer_healthy() -> None:
    found = kustomization()
    is_("False", "ReconciliationFailed")(found)
    assert (verdict(found, deployment()).state, verdict(found, deployment()).negative) == ("failed", False)
    is_("False", "HealthCheckFailed")(found)
    assert verdict(found, deployment()).negative


def test_since_is_the_last_change_of_a_condition() -> None:
    found = kustomization()
    is_("Unknown", "Progressing")(found)
    since = verdict(found, deployment()).since
    assert since is not None
    assert since.isoformat() == "2026-11-21T11:01:00+00:00"
