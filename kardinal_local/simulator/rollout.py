"""Compute the status of a Deployment during a simulated rollout (pure).

The status changes as a real one: a new generation is observed at once, and the old pods stay available until the new
ones are. An image whose tag contains `broken` never becomes available; after the progress deadline the condition
Progressing is False.

The status must be read back exactly as it was written; otherwise each reconcile would write again and cause the next
one. An API server stores times in whole seconds, and omits counts of zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kardinal.objects import JsonObject
from kardinal.objects.conditions import format_time

__all__ = ["Rollout", "advance"]

BROKEN = "broken"
"""The text in the tag of an image that never becomes available, for example `shop:1.2-broken`."""
DEFAULT_PROGRESS_DEADLINE = 600
"""The default of `spec.progressDeadlineSeconds` in seconds, as in the Deployment API."""
_COMPLETE = "NewReplicaSetAvailable"


@dataclass(frozen=True, slots=True)
class Rollout:
    """The status to write, and the time until it changes again; None if the rollout is complete or has failed."""

    status: JsonObject
    again: timedelta | None = None


def advance(deployment: Mapping[str, Any], *, now: datetime, delay: timedelta) -> Rollout:
    """Return the status of a Deployment at the time `now`; `delay` is the duration of a rollout."""
    spec = deployment["spec"]
    status = deployment.get("status") or {}
    generation = deployment["metadata"]["generation"]
    wanted = spec.get("replicas", 1)
    now = now.replace(microsecond=0)
    observed = status.get("observedGeneration") == generation
    if observed and _is_complete(status):
        return Rollout(dict(status))
    started = (_started(status) if observed else None) or now
    elapsed = now - started
    if not _is_broken(spec):
        if elapsed >= delay:
            return Rollout(_complete(status, generation, wanted, now))
        return Rollout(_progressing(status, generation, wanted, now, started), delay - elapsed)
    deadline = timedelta(seconds=spec.get("progressDeadlineSeconds", DEFAULT_PROGRESS_DEADLINE))
    if elapsed >= deadline:
        return Rollout(_stalled(status, generation, wanted, now, started))
    return Rollout(_progressing(status, generation, wanted, now, started), deadline - elapsed)


def _is_broken(spec: Mapping[str, Any]) -> bool:
    pod = spec["template"]["spec"]
    images = [container.get("image", "") for container in [*pod.get("initContainers", []), *pod.get("containers", [])]]
    return any(BROKEN in image.rpartition("/")[2].partition(":")[2] for image in images)


def _is_complete(status: Mapping[str, Any]) -> bool:
    return any(entry.get("reason") == _COMPLETE for entry in status.get("conditions", []))


def _started(status: Mapping[str, Any]) -> datetime | None:
    for condition in status.get("conditions", []):
        if condition["type"] == "Progressing":
            return datetime.fromisoformat(condition["lastUpdateTime"])
    return None


def _complete(before: Mapping[str, Any], generation: int, wanted: int, now: datetime) -> JsonObject:
    return _counts(
        observedGeneration=generation,
        replicas=wanted,
        updatedReplicas=wanted,
        readyReplicas=wanted,
        availableReplicas=wanted,
    ) | {
        "conditions": [
            _condition(before, "Available", "True", "MinimumReplicasAvailable", now),
            _condition(before, "Progressing", "True", _COMPLETE, now),
        ]
    }


def _progressing(
    before: Mapping[str, Any], generation: int, wanted: int, now: datetime, started: datetime
) -> JsonObject:
    return _unfinished(before, generation, wanted) | {
        "conditions": [
            _available(before, wanted, now),
            _condition(before, "Progressing", "True", "ReplicaSetUpdated", now, updated=started),
        ]
    }


def _stalled(before: Mapping[str, Any], generation: int, wanted: int, now: datetime, started: datetime) -> JsonObject:
    return _unfinished(before, generation, wanted) | {
        "conditions": [
            _available(before, wanted, now),
            _condition(before, "Progressing", "False", "ProgressDeadlineExceeded", now, updated=started),
        ]
    }


def _unfinished(before: Mapping[str, Any], generation: int, wanted: int) -> JsonObject:
    """Return the counts of a rollout in which one new pod is not available yet, and the old pods still run."""
    old = before.get("availableReplicas", 0)
    return _counts(
        observedGeneration=generation,
        replicas=old + 1 if old else wanted,
        updatedReplicas=1 if old else wanted,
        readyReplicas=old,
        availableReplicas=old,
        unavailableReplicas=1 if old else wanted,
    )


def _counts(**counts: int) -> JsonObject:
    return {name: count for name, count in counts.items() if count}


def _available(before: Mapping[str, Any], wanted: int, now: datetime) -> JsonObject:
    enough = before.get("availableReplicas", 0) >= wanted
    reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
    return _condition(before, "Available", "True" if enough else "False", reason, now)


def _condition(
    before: Mapping[str, Any], type_: str, status: str, reason: str, now: datetime, *, updated: datetime | None = None
) -> JsonObject:
    same = [entry for entry in before.get("conditions", []) if entry["type"] == type_ and entry["status"] == status]
    if same and same[0]["reason"] == reason and updated in (None, datetime.fromisoformat(same[0]["lastUpdateTime"])):
        return dict(same[0])
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": "simulated: no pods run on the local plane",
        "lastTransitionTime": same[0]["lastTransitionTime"] if same else format_time(now),
        "lastUpdateTime": format_time(updated or now),
    }
