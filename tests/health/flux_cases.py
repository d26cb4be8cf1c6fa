"""The states of a Kustomization and of a HelmRelease, and the verdict on each."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.objects import JsonObject
from tests.health.tools import BEFORE, COMMIT, Case, Change, change, remove

__all__ = [
    "HELM_RELEASE_CASES",
    "KUSTOMIZATION_CASES",
    "STALLED",
    "helm_release",
    "is_",
    "kustomization",
]


def kustomization() -> JsonObject:
    """Return a Kustomization as it is when all is done."""
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": "app", "namespace": "flux-system", "generation": 3},
        "spec": {"path": "./apps/prod", "wait": True},
        "status": {
            "conditions": [_condition("Ready", "True", "ReconciliationSucceeded", 3)],
            "lastAppliedRevision": f"main@sha1:{COMMIT}",
            "lastAttemptedRevision": f"main@sha1:{COMMIT}",
            "observedGeneration": 3,
            "inventory": {"entries": [{"id": "prod_app_apps_Deployment", "v": "v1"}, {"id": "prod_app__Service"}]},
        },
    }


def helm_release() -> JsonObject:
    """Return a HelmRelease, applied by the Kustomization `app`, as it is when all is done."""
    labels = {"kustomize.toolkit.fluxcd.io/name": "app", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
    newest = {"chartName": "app", "chartVersion": "1.2.3", "status": "deployed", "version": 2}
    return {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": "app", "namespace": "prod", "generation": 3, "labels": labels},
        "spec": {},
        "status": {
            "conditions": [
                _condition("Ready", "True", "UpgradeSucceeded", 3),
                _condition("Released", "True", "UpgradeSucceeded", 3),
            ],
            "observedGeneration": 3,
            "history": [newest, {**newest, "chartVersion": "1.2.2", "status": "superseded", "version": 1}],
            "inventory": {"entries": [{"id": "prod_app_apps_Deployment", "v": "v1"}]},
        },
    }


def _condition(type_: str, status: str, reason: str, generation: int, message: str = "says so") -> JsonObject:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": "2026-11-21T11:01:00Z",
    }


def is_(status: str, reason: str, *, generation: int = 3) -> Change:
    """Return a change of the condition Ready."""
    return change("status", "conditions", 0, to=_condition("Ready", status, reason, generation, "says why"))


STALLED = change(
    "status",
    "conditions",
    to=[_condition("Stalled", "True", "AccessDenied", 3, "says why"), _condition("Ready", "False", "AccessDenied", 3)],
)
_APPLIED = ("status", "lastAppliedRevision")
_ATTEMPTED = ("status", "lastAttemptedRevision")
_OLD = change(*_APPLIED, to=f"main@sha1:{BEFORE}")

KUSTOMIZATION_CASES: Sequence[Case] = (
    Case("applied and ready", "has applied commit bbbbbbb and runs what was promoted", state="healthy", seen=True),
    Case(
        "ready of the version before",
        "what it has applied is without commit bbbbbbb",
        [_OLD, change(*_ATTEMPTED, to=f"main@sha1:{BEFORE}")],
        says=BEFORE,
        seen=True,
    ),
    Case("ready before the revision moves", "what it has applied is without commit bbbbbbb", [_OLD], seen=True),
    Case(
        "reconciling the commit",
        "what it has applied is without commit bbbbbbb: it is reconciling",
        [_OLD, is_("Unknown", "Progressing")],
        says="says why",
        seen=True,
    ),
    Case("reconciling again", "it is not Ready: it is reconciling", [is_("Unknown", "Progressing")]),
    Case(
        "the health check failed",
        "Flux could not bring commit bbbbbbb up (HealthCheckFailed)",
        [_OLD, is_("False", "HealthCheckFailed")],
        state="failed",
        reason="HealthCheckFailed",
        says="says why",
        seen=True,
    ),
    Case(
        "objects cannot be applied",
        "Flux could not bring commit bbbbbbb up (ReconciliationFailed)",
        [_OLD, is_("False", "ReconciliationFailed")],
        state="failed",
        reason="ReconciliationFailed",
        seen=True,
    ),
    Case(
        "the manifests cannot be built",
        "Flux could not bring commit bbbbbbb up (BuildFailed)",
        [_OLD, is_("False", "BuildFailed")],
        state="failed",
        reason="BuildFailed",
        seen=True,
    ),
    Case(
        "the version before failed",
        "what it has applied is without commit bbbbbbb",
        [_OLD, change(*_ATTEMPTED, to=f"main@sha1:{BEFORE}"), is_("False", "HealthCheckFailed")],
    ),
    Case(
        "the source is missing, or has no such path",
        "what it has applied is without commit bbbbbbb: its source is missing, or has no such path",
        [_OLD, is_("False", "ArtifactFailed")],
        seen=True,
    ),
    Case(
        "dependencies are not ready",
        "what it has applied is without commit bbbbbbb: it waits for other Kustomizations",
        [_OLD, is_("False", "DependencyNotReady")],
    ),
    Case("suspended", "it is suspended: a person must resume it", [change("spec", "suspend", to=True)], seen=True),
    Case(
        "stalled",
        "it is Stalled: a person must correct it",
        [_OLD, STALLED],
        state="failed",
        reason="Stalled",
        seen=True,
    ),
    Case(
        "stalled before the promotion landed",
        "it has been Stalled since before: a person must correct it",
        [_OLD, STALLED, change("status", "conditions", 0, "lastTransitionTime", to="2026-11-21T10:59:00Z")],
    ),
    Case(
        "stalled at an earlier generation",
        "what it has applied is without commit bbbbbbb",
        [_OLD, STALLED, change("metadata", "generation", to=4)],
        seen=True,
    ),
    Case("ready of an earlier generation", "it is not Ready", [is_("True", "ReconciliationSucceeded", generation=2)]),
    Case("nothing was applied yet", "it has applied nothing yet", [remove("status")], seen=True),
    Case(
        "an artifact without its origin",
        "what it has applied names no commit",
        [change(*_APPLIED, to="latest@sha256:" + "d" * 64)],
    ),
    Case("deleted", "it is being deleted", [change("metadata", "deletionTimestamp", to="2026-11-21T11:02:00Z")]),
    Case(
        "workloads in another cluster, not waited for",
        "its workloads are in another cluster, and it does not wait for them: set spec.wait in it",
        [change("spec", to={"kubeConfig": {"secretRef": {"name": "prod"}}})],
    ),
    Case(
        "workloads in another cluster, waited for",
        "has applied commit bbbbbbb and runs what was promoted",
        [change("spec", "kubeConfig", to={"secretRef": {"name": "prod"}})],
        state="healthy",
    ),
    Case(
        "no workload of the image",
        "no workload that it applied runs ghcr.io/o/app",
        [change("status", "inventory", to={"entries": []})],
    ),
)

HELM_RELEASE_CASES: Sequence[Case] = (
    Case("released", "is released and runs what was promoted", state="healthy"),
    Case("upgrading", "it is not Ready: it is reconciling", [is_("Unknown", "Progressing")]),
    Case(
        "the upgrade failed, and is tried again",
        "it is not Ready: its upgrade failed and is tried again",
        [is_("False", "UpgradeFailed")],
    ),
    Case(
        "rolled back, and tried again",
        "it is not Ready: it was rolled back to the release before",
        [is_("False", "RollbackSucceeded")],
    ),
    Case("the tests failed", "it is not Ready: its tests failed and it is tried again", [is_("False", "TestFailed")]),
    Case(
        "retries are exhausted", "it is Stalled: a person must correct it", [STALLED], state="failed", reason="Stalled"
    ),
    Case(
        "retries of an earlier version are exhausted",
        "it has been Stalled since before: a person must correct it",
        [STALLED, change("status", "conditions", 0, "lastTransitionTime", to="2026-11-21T10:59:00Z")],
    ),
    Case("stalled at an earlier generation", "it is not Ready", [STALLED, change("metadata", "generation", to=4)]),
    Case("dependencies are not ready", "it waits for other HelmReleases", [is_("False", "DependencyNotReady")]),
    Case("the chart is missing", "its chart cannot be fetched", [is_("False", "ArtifactFailed")]),
    Case("suspended", "it is suspended: a person must resume it", [change("spec", "suspend", to=True)]),
    Case(
        "a new generation is not observed",
        "it is not Ready",
        [change("metadata", "generation", to=4)],
    ),
    Case(
        "the generation of the status lags",
        "it is not Ready",
        [change("status", "observedGeneration", to=2)],
    ),
    Case(
        "the newest release is not deployed",
        "its newest release is not deployed",
        [change("status", "history", 0, "status", to="failed")],
    ),
    Case(
        "workloads in another cluster",
        "its workloads are in another cluster, so nothing tells which images they run",
        [change("spec", "kubeConfig", to={"secretRef": {"name": "prod"}})],
    ),
)
