"""The states of an Application, and the verdict on each."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.objects import JsonObject
from tests.health.tools import BEFORE, COMMIT, REPOSITORY, Case, change, remove

__all__ = ["CASES", "application"]

_SYNC = ("status", "sync", "status")
_HEALTH = ("status", "health", "status")
_OPERATION = ("status", "operationState")


_SOURCE = {"repoURL": REPOSITORY, "path": "apps/prod", "targetRevision": "main"}
_OTHER = {"repoURL": "https://git.example.com/acme/other", "path": "config", "targetRevision": "main"}


def application() -> JsonObject:
    """Return an Application as it is when all is done."""
    source = dict(_SOURCE)
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "app", "namespace": "argocd", "generation": 83},
        "spec": {"source": source, "syncPolicy": {"automated": {"prune": True}}},
        "status": {
            "health": {"status": "Healthy", "lastTransitionTime": "2026-11-21T11:01:05Z"},
            "operationState": {
                "phase": "Succeeded",
                "startedAt": "2026-11-21T11:01:00Z",
                "finishedAt": "2026-11-21T11:01:01Z",
                "syncResult": {"revision": COMMIT},
            },
            "reconciledAt": "2026-11-21T11:01:01Z",
            "sync": {"status": "Synced", "revision": COMMIT, "comparedTo": {"source": dict(source)}},
        },
    }


CASES: Sequence[Case] = (
    Case("synced and healthy", "is Synced to commit bbbbbbb and Healthy", state="healthy", seen=True),
    Case(
        "synced and healthy of the version before",
        "it is compared with a revision without commit bbbbbbb",
        [change("status", "sync", "revision", to=BEFORE)],
        says=BEFORE,
        seen=True,
    ),
    Case(
        "a sync is requested, and its state is not there yet",
        "a sync is under way",
        [change("operation", to={"sync": {"revision": COMMIT}}), remove(*_OPERATION)],
        seen=True,
    ),
    Case(
        "a sync is running",
        "a sync is under way",
        [change(*_OPERATION, "phase", to="Running"), change(*_SYNC, to="OutOfSync")],
        seen=True,
    ),
    Case(
        "a sync is tried again",
        "a sync is under way and is tried again after a failure",
        [
            change("operation", to={"sync": {"revision": COMMIT}}),
            change(*_OPERATION, "retryCount", to=1),
            change(*_OPERATION, "message", to="one or more objects failed to apply"),
            change(*_SYNC, to="OutOfSync"),
        ],
        says="one or more objects failed to apply",
        seen=True,
    ),
    Case(
        "the sync has succeeded, and health is the one before",
        "it is OutOfSync",
        [change(*_SYNC, to="OutOfSync")],
        seen=True,
    ),
    Case("synced, and the rollout goes on", "it is Progressing", [change(*_HEALTH, to="Progressing")], seen=True),
    Case(
        "the sync failed",
        "the sync of commit bbbbbbb failed",
        [
            change(*_OPERATION, "phase", to="Failed"),
            change(*_OPERATION, "message", to="is invalid (retried 2 times)"),
            change(*_SYNC, to="OutOfSync"),
        ],
        state="failed",
        reason="SyncFailed",
        says="is invalid (retried 2 times)",
        seen=True,
    ),
    Case(
        "a hook after the sync failed",
        "the sync of commit bbbbbbb failed",
        [change(*_OPERATION, "phase", to="Error")],
        state="failed",
        reason="SyncFailed",
    ),
    Case(
        "the sync of another revision failed, and what is live is in order",
        "is Synced to commit bbbbbbb and Healthy",
        [change(*_OPERATION, "phase", to="Failed"), change(*_OPERATION, "syncResult", "revision", to=BEFORE)],
        state="healthy",
        seen=True,
    ),
    Case(
        "a trial sync failed",
        "is Synced to commit bbbbbbb and Healthy",
        [
            change(*_OPERATION, "phase", to="Failed"),
            change(*_OPERATION, "operation", to={"sync": {"dryRun": True}}),
        ],
        state="healthy",
    ),
    Case("degraded", "it is Degraded", [change(*_HEALTH, to="Degraded")], state="failed", reason="Degraded", seen=True),
    Case(
        "suspended",
        "it is Suspended: a person must resume what is paused",
        [change(*_HEALTH, to="Suspended")],
    ),
    Case("objects are missing", "objects of it are Missing", [change(*_HEALTH, to="Missing")]),
    Case("health is unknown", "its health is Unknown", [change(*_HEALTH, to="Unknown")]),
    Case("health was not assessed", "its health has not been assessed", [remove("status", "health")]),
    Case(
        "the manifests cannot be built",
        "Argo CD cannot compare it (ComparisonError): correct its source",
        [
            change("status", "sync", to={"status": "Unknown"}),
            change("status", "conditions", to=[{"type": "ComparisonError", "message": "error converting YAML"}]),
        ],
        says="error converting YAML",
        seen=True,
    ),
    Case(
        "automated sync is off",
        "it is OutOfSync and has no automated sync: a person must sync it",
        [remove("spec", "syncPolicy", "automated"), change(*_SYNC, to="OutOfSync")],
        seen=True,
    ),
    Case(
        "automated sync is switched off",
        "it is OutOfSync and has no automated sync: a person must sync it",
        [change("spec", "syncPolicy", "automated", "enabled", to=False), change(*_SYNC, to="OutOfSync")],
    ),
    Case(
        "several sources without selfHeal are out of sync",
        "it is OutOfSync, and Argo CD may leave several sources so: a person must sync it, or set selfHeal",
        [
            change("spec", "sources", to=[_SOURCE, _OTHER]),
            change("status", "sync", "revisions", to=[COMMIT, BEFORE]),
            change("status", "sync", "comparedTo", to={"sources": [_SOURCE, _OTHER]}),
            change(*_SYNC, to="OutOfSync"),
        ],
        seen=True,
    ),
    Case(
        "only what is to be pruned differs",
        "it is OutOfSync by objects that Git no longer has: a person must sync it with prune, or set prune",
        [
            change(*_SYNC, to="OutOfSync"),
            change("status", "resources", to=[{"status": "OutOfSync", "requiresPruning": True}]),
        ],
    ),
    Case("sync is unknown", "its sync status is Unknown", [change(*_SYNC, to="Unknown")]),
    Case(
        "skip-reconcile",
        "its annotation argocd.argoproj.io/skip-reconcile freezes it: a person must remove it",
        [change("metadata", "annotations", to={"argocd.argoproj.io/skip-reconcile": "true"})],
        seen=True,
    ),
    Case("deleted", "it is being deleted", [change("metadata", "deletionTimestamp", to="2026-11-21T11:02:00Z")]),
    Case(
        "another repository",
        "none of its sources is the repository of this Pipeline: set health.argocd.name",
        [change("spec", "source", "repoURL", to="https://git.example.com/other/config")],
    ),
    Case(
        "the source was changed since the comparison",
        "Argo CD has not compared its source yet",
        [change("spec", "source", "path", to="apps")],
    ),
    Case("nothing was compared", "Argo CD has not compared its source yet", [remove("status")], seen=True),
    Case(
        "a source hydrator",
        "it has a sourceHydrator, whose commits are not followed: use another health.type",
        [change("spec", "sourceHydrator", to={"drySource": {"repoURL": REPOSITORY}})],
    ),
)
