"""Negative is what a tool or a workload calls broken of what runs; the rest of what may happen to it is not."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api import PromotionStep
from kardinal_agent.health import Adapter, Verdict, failed, progressing
from kardinal_agent.health.argo_rollouts import ArgoRollouts
from kardinal_agent.health.argocd import ArgoCD
from kardinal_agent.health.delegation import together
from kardinal_agent.health.flagger import Flagger
from kardinal_agent.health.flux import Flux
from kardinal_agent.health.resource import ResourceAdapter
from tests.health.argocd_cases import application
from tests.health.flux_cases import helm_release, is_, kustomization
from tests.health.rollout_cases import FAILED, canary, rollout
from tests.health.tools import BEFORE, NEW, OLD, Change, change, deployment, judged, promotion, promotion_step

ARGOCD = promotion_step({"type": "argocd", "argocd": {"name": "app"}})
FLUX = promotion_step({"type": "flux", "flux": {"name": "app"}})
HELM = promotion_step({"type": "flux", "flux": {"kind": "HelmRelease", "name": "app", "namespace": "prod"}})
ROLLOUT = promotion_step({"type": "argoRollouts", "argoRollouts": {"name": "app"}})
CANARY = promotion_step({"type": "flagger", "flagger": {"name": "app"}})
RESOURCE = promotion_step({"type": "resource", "resource": {"name": "app", "namespace": "prod"}})

LOST: JsonObject = {"availableReplicas": 0, "conditions": [{"type": "Available", "status": "False"}]}
BROKEN = deployment(**LOST)
OTHERS_BROKEN = deployment(OLD, **LOST)
DRAINED = deployment(availableReplicas=1)
SCALED = deployment(replicas=2, updatedReplicas=2)
ROLLING = deployment(updatedReplicas=1, replicas=3)
TARGET = deployment(replicas=0)
_HEALTH = ("status", "health", "status")
_SYNC = ("status", "sync", "status")
_CONDITIONS = ("status", "conditions")
_PHASE = ("status", "phase")
RECONCILING = is_("Unknown", "Progressing")


def changed(made: JsonObject, *changes: Change) -> JsonObject:
    found = copy.deepcopy(made)
    for each in changes:
        each(found)
    return found


@pytest.mark.parametrize(
    ("adapter", "step", "found", "negative"),
    [
        (ResourceAdapter(), RESOURCE, [deployment()], False),
        (ResourceAdapter(), RESOURCE, [BROKEN], True),
        (ResourceAdapter(), RESOURCE, [DRAINED], False),
        (ResourceAdapter(), RESOURCE, [changed(SCALED, change("spec", "replicas", to=5))], False),
        (ResourceAdapter(), RESOURCE, [ROLLING], False),
        (ResourceAdapter(), RESOURCE, [OTHERS_BROKEN], False),
        (ResourceAdapter(), RESOURCE, [], False),
        (ArgoCD(), ARGOCD, [application()], False),
        (ArgoCD(), ARGOCD, [changed(application(), change(*_HEALTH, to="Degraded"))], True),
        (ArgoCD(), ARGOCD, [changed(application(), change(*_HEALTH, to="Progressing"))], False),
        (ArgoCD(), ARGOCD, [changed(application(), change(*_SYNC, to="OutOfSync"))], False),
        (
            ArgoCD(),
            ARGOCD,
            [changed(application(), change(*_HEALTH, to="Degraded"), change("status", "sync", "revision", to=BEFORE))],
            False,
        ),
        (Flux(), FLUX, [kustomization(), deployment()], False),
        (Flux(), FLUX, [kustomization(), BROKEN], True),
        (Flux(), FLUX, [changed(kustomization(), is_("False", "HealthCheckFailed")), deployment()], True),
        (Flux(), FLUX, [changed(kustomization(), is_("False", "BuildFailed")), deployment()], False),
        (Flux(), FLUX, [changed(kustomization(), RECONCILING), BROKEN], True),
        (Flux(), FLUX, [changed(kustomization(), RECONCILING), DRAINED], False),
        (
            Flux(),
            FLUX,
            [changed(kustomization(), change("status", "lastAppliedRevision", to=f"main@sha1:{BEFORE}")), BROKEN],
            False,
        ),
        (Flux(), HELM, [helm_release(), kustomization(), BROKEN], True),
        (Flux(), HELM, [changed(helm_release(), is_("False", "UpgradeFailed")), kustomization(), deployment()], False),
        (Flux(), HELM, [changed(helm_release(), is_("False", "UpgradeFailed")), kustomization(), BROKEN], True),
        (ArgoRollouts(), ROLLOUT, [rollout()], False),
        (ArgoRollouts(), ROLLOUT, [changed(rollout(), change(*_PHASE, to="Degraded"))], True),
        (ArgoRollouts(), ROLLOUT, [changed(rollout(), change(*_PHASE, to="Progressing"))], False),
        (
            ArgoRollouts(),
            ROLLOUT,
            [
                changed(
                    rollout(),
                    change(*_PHASE, to="Progressing"),
                    change(*_CONDITIONS, to=[{"type": "Available", "status": "False"}]),
                )
            ],
            True,
        ),
        (Flagger(), CANARY, [canary(), TARGET, deployment(name="app-primary")], False),
        (Flagger(), CANARY, [canary(), TARGET, deployment(name="app-primary", **LOST)], True),
        (Flagger(), CANARY, [changed(canary(), *FAILED), TARGET, deployment(name="app-primary")], True),
        (
            Flagger(),
            CANARY,
            [changed(canary(), change(*_PHASE, to="Progressing")), TARGET, deployment(name="app-primary")],
            False,
        ),
    ],
)
def test_negative_verdicts(adapter: Adapter, step: PromotionStep, found: Sequence[JsonObject], negative: bool) -> None:
    assert judged(adapter, step, promotion(NEW), *found).negative is negative


@pytest.mark.parametrize(
    "proof", [failed("SyncFailed", "a sync failed"), progressing("waits")], ids=["failed", "waits"]
)
def test_a_delegate_that_is_negative_makes_both_so(proof: Verdict) -> None:
    proof = replace(proof, negative=False)
    assert together(proof, progressing("it is under way", negative=True)).negative
    assert not together(proof, progressing("it is under way")).negative
