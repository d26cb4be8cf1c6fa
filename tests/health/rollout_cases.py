"""The states of a Rollout of Argo Rollouts and of a Canary of Flagger, and the verdict on each."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.objects import JsonObject
from tests.health.tools import NEW, OLD, Case, change, remove

__all__ = ["CANARY_CASES", "FAILED", "ROLLOUT_CASES", "canary", "replica_set", "rollout"]

_PHASE = ("status", "phase")
_PAUSES = ("status", "pauseConditions")
_IMAGE = ("spec", "template", "spec", "containers", 0, "image")


def rollout() -> JsonObject:
    """Return a Rollout as it is when all is done."""
    steps = [{"setWeight": 20}, {"pause": {}}, {"pause": {"duration": "10m"}}]
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "app", "namespace": "prod", "generation": 4},
        "spec": {
            "template": {"spec": {"containers": [{"name": "main", "image": NEW}]}},
            "strategy": {"canary": {"steps": steps}},
        },
        "status": {
            "phase": "Healthy",
            "observedGeneration": "4",
            "currentPodHash": "789746c88d",
            "stableRS": "789746c88d",
            "conditions": [{"type": "Progressing", "status": "True", "lastUpdateTime": "2026-11-21T11:02:00Z"}],
        },
    }


def replica_set(image: str = NEW, *, hash_: str = "789746c88d", owner: str = "app") -> JsonObject:
    """Return the ReplicaSet of a version of a Rollout, by default of the stable one."""
    reference = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": owner, "uid": "1", "controller": True}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{owner}-{hash_}",
            "namespace": "prod",
            "labels": {"rollouts-pod-template-hash": hash_},
            "ownerReferences": [reference],
        },
        "spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}},
    }


ROLLOUT_CASES: Sequence[Case] = (
    Case("fully promoted", f"runs {NEW}", state="healthy", seen=True),
    Case(
        "the version before", "it does not run the promoted image yet", [change(*_IMAGE, to=OLD)], says=OLD, seen=True
    ),
    Case(
        "a new generation is not observed",
        "its latest generation is not observed yet",
        [change("metadata", "generation", to=5)],
    ),
    Case(
        "a controller that observes a checksum",
        "its latest generation is not observed yet",
        [change("status", "observedGeneration", to="5d4f8c7b9")],
    ),
    Case("in progress", "its rollout is under way", [change(*_PHASE, to="Progressing")]),
    Case(
        "healthy, and not stable yet",
        "the new version is not the stable one yet",
        [change("status", "stableRS", to="6cf78c66c5")],
    ),
    Case(
        "paused at a step of a canary",
        "it is paused at a step of its canary, and a person must promote it",
        [
            change(*_PHASE, to="Paused"),
            change(*_PAUSES, to=[{"reason": "CanaryPauseStep"}]),
            change("status", "currentStepIndex", to=1),
        ],
        seen=True,
    ),
    Case(
        "paused for a time",
        "it is paused for a time, and goes on by itself",
        [
            change(*_PHASE, to="Paused"),
            change(*_PAUSES, to=[{"reason": "CanaryPauseStep"}]),
            change("status", "currentStepIndex", to=2),
        ],
    ),
    Case(
        "paused before the switch of blue and green",
        "the new version is ready, and a person must promote it",
        [change(*_PHASE, to="Paused"), change(*_PAUSES, to=[{"reason": "BlueGreenPause"}])],
        seen=True,
    ),
    Case(
        "an inconclusive analysis",
        "its analysis is inconclusive, and a person must promote or abort it",
        [change(*_PHASE, to="Paused"), change(*_PAUSES, to=[{"reason": "InconclusiveAnalysisRun"}])],
        seen=True,
    ),
    Case(
        "an inconclusive experiment",
        "its experiment is inconclusive, and a person must promote or abort it",
        [change(*_PHASE, to="Paused"), change(*_PAUSES, to=[{"reason": "InconclusiveExperiment"}])],
    ),
    Case(
        "paused by hand",
        "it is paused by hand, and a person must resume it",
        [change(*_PHASE, to="Paused"), change("spec", "paused", to=True)],
    ),
    Case("resumed just now", "it is about to go on after a pause", [change("status", "controllerPause", to=True)]),
    Case(
        "aborted",
        "it was aborted and runs the version before",
        [
            change(*_PHASE, to="Degraded"),
            change("status", "abort", to=True),
            change("status", "message", to="RolloutAborted: metric failed"),
        ],
        state="failed",
        reason="Aborted",
        says="RolloutAborted: metric failed",
        seen=True,
    ),
    Case(
        "the progress deadline is exceeded",
        "it is Degraded (ProgressDeadlineExceeded)",
        [
            change(*_PHASE, to="Degraded"),
            change("status", "conditions", 0, "reason", to="ProgressDeadlineExceeded"),
        ],
        state="failed",
        reason="ProgressDeadlineExceeded",
        seen=True,
    ),
    Case(
        "the spec is invalid",
        "it is Degraded (InvalidSpec)",
        [change(*_PHASE, to="Degraded"), change("status", "conditions", to=[{"type": "InvalidSpec"}])],
        state="failed",
        reason="InvalidSpec",
    ),
    Case("degraded", "it is Degraded", [change(*_PHASE, to="Degraded")], state="failed", reason="Degraded"),
    Case("no status yet", "its latest generation is not observed yet", [remove("status")]),
    Case("deleted", "it is being deleted", [change("metadata", "deletionTimestamp", to="2026-11-21T11:02:00Z")]),
    Case(
        "a workloadRef of another kind",
        "its workloadRef is no Deployment: use another health.type",
        [change("spec", "workloadRef", to={"kind": "ReplicaSet", "name": "app"})],
    ),
)


def canary() -> JsonObject:
    """Return a Canary as it is when all is done."""
    return {
        "apiVersion": "flagger.app/v1beta1",
        "kind": "Canary",
        "metadata": {"name": "app", "namespace": "prod", "generation": 1},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}},
        "status": {
            "phase": "Succeeded",
            "lastAppliedSpec": "7c5d8b6f9",
            "lastPromotedSpec": "7c5d8b6f9",
            "lastTransitionTime": "2026-11-21T11:05:00Z",
            "conditions": [{"type": "Promoted", "status": "True", "message": "promotion finished"}],
        },
    }


FAILED = (
    change(*_PHASE, to="Failed"),
    change("status", "lastAppliedSpec", to="54c8f9d7b"),
    change(
        "status",
        "conditions",
        to=[
            {
                "type": "Promoted",
                "status": "False",
                "message": "Canary analysis failed",
                "lastTransitionTime": "2026-11-21T11:04:00Z",
            }
        ],
    ),
)

CANARY_CASES: Sequence[Case] = (
    Case("succeeded", f"runs {NEW}", state="healthy", seen=True),
    Case("initialized", f"runs {NEW}", [change(*_PHASE, to="Initialized")], state="healthy"),
    Case(
        "failed before, and back to what the primary runs",
        f"runs {NEW}",
        [change(*_PHASE, to="Failed")],
        state="healthy",
        seen=True,
    ),
    Case(
        "failed",
        "its analysis failed, and the primary runs the version before",
        FAILED,
        state="failed",
        reason="CanaryFailed",
        says="Canary analysis failed",
        seen=True,
    ),
    Case(
        "failed before, and Flagger has not looked again",
        "a version before has failed, and Flagger has not looked at this one yet",
        [*FAILED, change("status", "lastTransitionTime", to="2026-11-21T11:00:30Z")],
    ),
    Case(
        "failed before the promotion landed",
        "a version before has failed, and Flagger has not looked at this one yet",
        [*FAILED, change("status", "conditions", 0, "lastTransitionTime", to="2026-11-21T10:59:00Z")],
    ),
    Case("no status yet", "Flagger has not looked at it yet", [remove("status")]),
    Case("initializing", "Flagger makes its primary", [change(*_PHASE, to="Initializing")]),
    Case("progressing", "Flagger analyses the new version", [change(*_PHASE, to="Progressing")], seen=True),
    Case("promoting", "Flagger rolls the new version out to the primary", [change(*_PHASE, to="Promoting")]),
    Case("finalising", "Flagger routes the traffic to the primary", [change(*_PHASE, to="Finalising")]),
    Case(
        "waiting",
        "Flagger waits for the approval to start: a person must open its confirm-rollout gate",
        [change(*_PHASE, to="Waiting")],
    ),
    Case(
        "waiting for the promotion",
        "Flagger waits for the approval to promote: a person must open its confirm-promotion gate",
        [change(*_PHASE, to="WaitingPromotion")],
    ),
    Case("terminating", "Flagger lets go of it", [change(*_PHASE, to="Terminating")]),
    Case("terminated", "Flagger has let go of it", [change(*_PHASE, to="Terminated")]),
    Case("a phase of a later version", "its phase is not known", [change(*_PHASE, to="Resting")]),
    Case("suspended", "it is suspended: a person must resume it", [change("spec", "suspend", to=True)]),
    Case(
        "a target without images",
        "its target is neither a Deployment nor a DaemonSet: use another health.type",
        [change("spec", "targetRef", "kind", to="Service")],
    ),
    Case("deleted", "it is being deleted", [change("metadata", "deletionTimestamp", to="2026-11-21T11:02:00Z")]),
)
