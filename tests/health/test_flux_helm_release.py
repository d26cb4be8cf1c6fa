"""A HelmRelease proves a promotion by the Kustomization that applied it, its newest release and its workloads."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.objects import DEPLOYMENT, JsonObject
from kardinal.promotion.api.bundle import Chart
from kardinal_agent.health import Verdict, Watched
from kardinal_agent.health.flux import Flux
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION
from tests.health.flux_cases import HELM_RELEASE_CASES, STALLED, helm_release, is_, kustomization
from tests.health.tools import (
    BEFORE,
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
)

STEP = promotion_step({"type": "flux", "flux": {"kind": "HelmRelease", "name": "app", "namespace": "prod"}})


def verdict(*found: JsonObject, images: tuple[str, ...] = (NEW,), **fields: Any) -> Verdict:
    return judged(Flux(), STEP, promotion(*images, **fields), *found)


@pytest.mark.parametrize("case", HELM_RELEASE_CASES, ids=lambda case: case.name)
def test_a_state_of_a_helm_release(case: Case) -> None:
    answer = verdict(case.of(helm_release()), kustomization(), deployment())
    assert (answer.state, answer.reason) == (case.state, case.reason)
    assert case.words in answer.message


def test_kustomization_above_and_workloads_below_are_watched() -> None:
    assert Flux().watches(STEP) == (Watched(kind=HELM_RELEASE, namespace="prod", name="app"),)
    assert list(Flux().related(STEP, promotion(NEW), objects_of(helm_release()))) == [
        Watched(kind=KUSTOMIZATION, namespace="flux-system", name="app"),
        Watched(kind=DEPLOYMENT, namespace="prod", name="app"),
    ]


def without_inventory() -> JsonObject:
    found = helm_release()
    remove("status", "inventory")(found)
    change("spec", "targetNamespace", to="prod")(found)
    return found


def test_without_an_inventory_the_workloads_are_known_by_their_labels() -> None:
    labelled = deployment()
    change(
        "metadata",
        "labels",
        to={"helm.toolkit.fluxcd.io/name": "app", "helm.toolkit.fluxcd.io/namespace": "prod"},
    )(labelled)
    assert verdict(without_inventory(), kustomization(), labelled).state == "healthy"
    other = deployment(OLD, name="other")
    assert verdict(without_inventory(), kustomization(), labelled, other).state == "healthy"
    assert "no workload" in verdict(without_inventory(), kustomization(), deployment()).message
    everything = objects_of(without_inventory(), kustomization(), labelled, other)
    assert Flux().judge(STEP, promotion(NEW), everything).state == "healthy"


def test_images_that_only_a_delegate_runs_are_proved_by_the_delegate() -> None:
    released = helm_release()
    change("status", "inventory", "entries", to=[{"id": "prod_app_argoproj.io_Rollout", "v": "v1alpha1"}])(released)
    assert "no workload" in verdict(released, kustomization()).message
    health = {"type": "flux", "flux": {"kind": "HelmRelease", "name": "app", "namespace": "prod"}}
    delegating = promotion_step(health, delegate="argoRollouts")
    assert judged(Flux(), delegating, promotion(NEW), released, kustomization()).state == "healthy"


def test_the_kustomization_above_must_have_applied_the_commit() -> None:
    above = kustomization()
    change("status", "lastAppliedRevision", to=f"main@sha1:{BEFORE}")(above)
    answer = verdict(helm_release(), above, deployment())
    assert answer.message.endswith("the Kustomization of it has not applied the commit")
    assert BEFORE in answer.details
    assert verdict(helm_release(), deployment()).message.endswith("the Kustomization that applied it cannot be seen")


def test_without_a_kustomization_images_and_charts_are_the_proof() -> None:
    alone = helm_release()
    remove("metadata", "labels")(alone)
    assert verdict(alone, deployment()).state == "healthy"
    assert verdict(alone, deployment(OLD)).state == "progressing"
    nothing = verdict(alone, deployment(), images=())
    assert nothing.message.endswith("nothing tells whether it is of commit bbbbbbb: name a Kustomization instead")


CHART = {"repository": "https://charts.example.com", "name": "app", "version": "1.2.3"}
DIGEST = "sha256:" + "e" * 64


@pytest.mark.parametrize(
    ("chart", "release", "proved"),
    [
        ({}, {}, True),
        ({}, {"chartVersion": "1.2.3+0cc9a8446c95"}, True),
        ({}, {"chartVersion": "1.2.2"}, False),
        ({}, {"chartVersion": "1.2.30"}, False),
        ({}, {"chartName": "other"}, False),
        ({"version": "1.2.3+one"}, {"chartVersion": "1.2.3+two"}, False),
        ({"digest": DIGEST}, {"ociDigest": DIGEST}, True),
        ({"digest": DIGEST}, {"ociDigest": "sha256:" + "f" * 64}, False),
        ({"digest": DIGEST}, {}, False),
    ],
)
def test_the_newest_release_must_be_the_promoted_chart(chart: JsonObject, release: JsonObject, proved: bool) -> None:
    found = helm_release()
    found["status"]["history"][0] |= release
    promoted = Chart.model_validate(CHART | chart)
    answer = verdict(found, kustomization(), deployment(), images=(), charts=[promoted])
    assert (answer.state == "healthy") == proved
    assert proved or "its newest release is not chart app" in answer.message


def test_a_workload_that_failed_with_the_image_fails_before_helm_gives_up() -> None:
    found = helm_release()
    is_("Unknown", "Progressing")(found)
    stuck = deployment(conditions=[{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}])
    assert verdict(found, kustomization(), stuck).reason == "ProgressDeadlineExceeded"
    before = deployment(OLD, conditions=[{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}])
    assert verdict(found, kustomization(), before).state == "progressing"


def test_the_correction_of_a_stalled_release_is_not_failed_by_it() -> None:
    """The correction moves the generation; values from elsewhere do not, and then the time tells."""
    found = helm_release()
    STALLED(found)
    change("metadata", "generation", to=4)(found)
    assert verdict(found, kustomization(), deployment()).state == "progressing"
    later = promotion_step(
        {"type": "flux", "flux": {"kind": "HelmRelease", "name": "app", "namespace": "prod"}},
        promotedAt="2026-11-21T11:05:00Z",
    )
    same = helm_release()
    STALLED(same)
    assert judged(Flux(), later, promotion(NEW), same, kustomization(), deployment()).state == "progressing"
