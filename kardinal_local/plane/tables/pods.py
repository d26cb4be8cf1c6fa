"""Compute the cells of a pod, whose status column sums up the states of its containers.

Containers that prepare the pod come first: while one of them has not done its work, the column tells of it. After that
the first container that waits or has ended speaks for all, in the words of the real server.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.tables.columns import age

__all__ = ["pod_gates", "pod_ready", "pod_restarts", "pod_status"]

_FINAL = ("Succeeded", "Failed")


def pod_ready(pod: JsonObject, _: datetime) -> str:
    spec, status = pod["spec"], pod.get("status") or {}
    sidecars = {one["name"] for one in spec.get("initContainers") or () if _is_sidecar(one)}
    ready = sum(_is_running(one) for one in status.get("containerStatuses") or ())
    ready += sum(
        one["name"] in sidecars and one.get("ready", False) for one in status.get("initContainerStatuses") or ()
    )
    return f"{ready}/{len(spec.get('containers') or ()) + len(sidecars)}"


def pod_status(pod: JsonObject, _: datetime) -> str:
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase", "")
    if any(one.get("reason") == "SchedulingGated" for one in _conditions(status, "PodScheduled")):
        reason = "SchedulingGated"
    preparing = _preparing(pod)
    if preparing is None or any(one["status"] == "True" for one in _conditions(status, "Initialized")):
        reason = _of_containers(status, reason if preparing is None else preparing)
    else:
        reason = preparing
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            return "Unknown"
        if status.get("phase") not in _FINAL:
            return "Terminating"
    return str(reason)


def pod_restarts(pod: JsonObject, now: datetime) -> str:
    status = pod.get("status") or {}
    known = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    ends = [
        ended["finishedAt"]
        for one in known
        if (ended := (one.get("lastState") or {}).get("terminated")) and ended.get("finishedAt")
    ]
    count = sum(one.get("restartCount", 0) for one in known)
    return f"{count} ({age(max(ends), now)} ago)" if count and ends else str(count)


def pod_gates(pod: JsonObject, _: datetime) -> str:
    """How many of the conditions that readiness waits for hold."""
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    if not gates:
        return "<none>"
    status = pod.get("status") or {}
    held = sum(any(one["status"] == "True" for one in _conditions(status, gate)) for gate in gates)
    return f"{held}/{len(gates)}"


def _preparing(pod: JsonObject) -> str | None:
    """What the first container that still prepares the pod does; None when all are done."""
    containers = pod["spec"].get("initContainers") or ()
    sidecars = {one["name"] for one in containers if _is_sidecar(one)}
    for index, one in enumerate((pod.get("status") or {}).get("initContainerStatuses") or ()):
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason")
        if (ended and not ended.get("exitCode")) or (one["name"] in sidecars and one.get("started")):
            continue
        if ended:
            return f"Init:{_end(ended)}"
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{len(containers)}"
    return None


def _of_containers(status: JsonObject, reason: Any) -> Any:
    failure, running = None, False
    for one in reversed(status.get("containerStatuses") or ()):
        state = one.get("state") or {}
        waiting, ended = (state.get("waiting") or {}).get("reason"), state.get("terminated")
        if waiting:
            reason = waiting
        elif ended:
            reason = _end(ended)
            failure = reason if ended.get("exitCode") else failure
        else:
            running = running or _is_running(one)
    if reason != "Completed":
        return reason
    if running and any(one["status"] == "True" for one in _conditions(status, "Ready")):
        return "Running"
    return failure or ("NotReady" if running else reason)


def _end(ended: Mapping[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _is_sidecar(container: JsonObject) -> bool:
    return container.get("restartPolicy") == "Always"


def _is_running(status: JsonObject) -> bool:
    return bool(status.get("ready")) and (status.get("state") or {}).get("running") is not None


def _conditions(status: JsonObject, kind: str) -> list[JsonObject]:
    return [one for one in status.get("conditions") or () if one["type"] == kind]
