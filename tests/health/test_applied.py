"""Adapters report the revisions that their tools have applied, as gates that read `targetDrift` need it."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api import PromotionStep
from kardinal_agent.health import Adapter, Applied
from kardinal_agent.health.argocd import ArgoCD
from kardinal_agent.health.flagger import Flagger
from kardinal_agent.health.flux import Flux
from kardinal_agent.health.resource import ResourceAdapter
from tests.health.argocd_cases import application
from tests.health.flux_cases import helm_release, kustomization
from tests.health.tools import COMMIT, LATER, Change, change, looked_at, promotion, promotion_step, remove

ARGOCD = promotion_step({"type": "argocd", "argocd": {"name": "app"}})
FLUX = promotion_step({"type": "flux", "flux": {"name": "app"}})
RELEASE = promotion_step({"type": "flux", "flux": {"kind": "HelmRelease", "name": "app", "namespace": "prod"}})


def applied(adapter: Adapter, step: PromotionStep, *found: JsonObject) -> Applied | str:
    promoted = promotion()
    return adapter.applied(step, promoted, looked_at(adapter, step, promoted, found))


def changed(made: JsonObject, *changes: Change) -> JsonObject:
    for each in changes:
        each(made)
    return made


def ready(status: str, reason: str = "ReconciliationFailed") -> Change:
    def apply(found: JsonObject) -> None:
        conditions = [each for each in found["status"]["conditions"] if each["type"] != "Ready"]
        generation = found["metadata"]["generation"]
        entry = {"type": "Ready", "status": status, "reason": reason, "observedGeneration": generation}
        found["status"]["conditions"] = [*conditions, entry]

    return apply


SYNC = ("status", "sync", "status")


def test_application_tells_the_compared_revision_and_whether_it_is_in_sync() -> None:
    found = Applied(title="Application argocd/app", revisions=[COMMIT])
    assert applied(ArgoCD(), ARGOCD, application()) == found
    out_of_sync = Applied(title="Application argocd/app", revisions=[COMMIT], out_of_sync="is OutOfSync")
    assert applied(ArgoCD(), ARGOCD, changed(application(), change(*SYNC, to="OutOfSync"))) == out_of_sync


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([change(*SYNC, to="Unknown")], "the sync status of Application argocd/app is Unknown"),
        ([remove("status")], "not compared its source"),
        ([change("status", "sync", "comparedTo", "source", "path", to="apps/old")], "not compared its source"),
        ([change("metadata", "annotations", to={"argocd.argoproj.io/skip-reconcile": "true"})], "freezes it"),
        ([change("spec", "source", "repoURL", to="https://git.example.com/acme/other")], "none of its sources"),
        ([change("spec", "sourceHydrator", to={"drySource": {}})], "it has a sourceHydrator"),
    ],
)
def test_application_that_is_not_compared_tells_nothing(changes: list[Change], says: str) -> None:
    answer = applied(ArgoCD(), ARGOCD, changed(application(), *changes))
    assert isinstance(answer, str)
    assert says in answer


def test_missing_object_tells_nothing() -> None:
    assert applied(ArgoCD(), ARGOCD) == "waits for Application argocd/app to exist"
    assert applied(Flux(), FLUX) == "waits for Kustomization flux-system/app to exist"


def test_kustomization_tells_the_applied_revision_and_whether_it_has_failed() -> None:
    title = "Kustomization flux-system/app"
    assert applied(Flux(), FLUX, kustomization()) == Applied(title=title, revisions=[COMMIT])
    reconciling = changed(kustomization(), ready("Unknown", "Progressing"))
    assert applied(Flux(), FLUX, reconciling) == Applied(title=title, revisions=[COMMIT])
    failed = Applied(title=title, revisions=[COMMIT], out_of_sync="is not Ready")
    assert applied(Flux(), FLUX, changed(kustomization(), ready("False"))) == failed


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ([change("spec", "suspend", to=True)], "it is suspended"),
        ([change("status", "lastAppliedRevision", to="v1@sha256:" + "d" * 64)], "has applied names no commit"),
    ],
)
def test_kustomization_that_is_idle_or_of_no_commit_tells_nothing(changes: list[Change], says: str) -> None:
    answer = applied(Flux(), FLUX, changed(kustomization(), *changes))
    assert isinstance(answer, str)
    assert says in answer


def test_helm_release_tells_what_its_kustomization_has_applied() -> None:
    later = changed(kustomization(), change("status", "lastAppliedRevision", to=f"main@sha1:{LATER}"))
    above = Applied(title="Kustomization flux-system/app", revisions=[LATER])
    assert applied(Flux(), RELEASE, helm_release(), later) == above
    failed = Applied(title="HelmRelease prod/app", revisions=[LATER], out_of_sync="is not Ready")
    assert applied(Flux(), RELEASE, changed(helm_release(), ready("False", "UpgradeFailed")), later) == failed
    alone = changed(helm_release(), remove("metadata", "labels"))
    assert (
        applied(Flux(), RELEASE, alone)
        == "no Kustomization that can be seen tells of which commit HelmRelease prod/app is"
    )


@pytest.mark.parametrize("adapter", [ResourceAdapter(), Flagger()], ids=lambda adapter: adapter.name)
def test_workloads_tell_nothing(adapter: Any) -> None:
    step = promotion_step({"type": adapter.name})
    assert applied(adapter, step) == f"health.type {adapter.name} does not tell which commit is applied"
