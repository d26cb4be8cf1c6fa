"""Set what the real server sets in an object of a built-in kind before it is validated and stored.

One function per kind that needs one, run after defaults on every create and update. What admission plugins of a usual
cluster add (tolerations and a priority for pods, protection for volumes) is part of it, since it is what people see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kardinal_local.plane.builtin import services
from kardinal_local.plane.builtin.defaults import TEMPLATE_GENERATION
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.kinds import crds

__all__ = ["NAMESPACE_FINALIZER", "prepare"]

NAMESPACE_FINALIZER: Final = "kubernetes"
_COORDINATED: Final = ("strategy", "preferredHolder")

Prepare = Callable[[JsonObject, JsonObject | None], None]

_TOLERATED_SECONDS: Final = 300
_TOLERATED: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def prepare(group: str, kind: str, document: JsonObject, *, old: JsonObject | None) -> None:
    """Complete `document`, which is fresh and shares nothing with the live object."""
    found = _PREPARATIONS.get((group, kind))
    if found is not None:
        found(document, old)


def _namespace(namespace: JsonObject, old: JsonObject | None) -> None:
    # Only a client that may finalize a namespace ends it, through a subresource of its own.
    if old is None:
        given = namespace["spec"].get("finalizers", [])
        namespace["spec"] = {"finalizers": list(dict.fromkeys([*given, NAMESPACE_FINALIZER]))}
    else:
        namespace["spec"] = old["spec"]


def _lease(lease: JsonObject, old: JsonObject | None) -> None:
    # Coordinated leader election is off by default, and fields of features that are off are dropped.
    lease["spec"] = {key: value for key, value in lease["spec"].items() if key not in _COORDINATED}


def _pod(pod: JsonObject, old: JsonObject | None) -> None:
    if old is not None:
        return
    spec = pod["spec"]
    pod["status"] = {
        "phase": "Pending",
        "qosClass": _quality([*(spec.get("containers") or ()), *spec.get("initContainers", ())]),
    }
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    tolerations = spec.setdefault("tolerations", [])
    for key in _TOLERATED:
        if not any(one.get("key", key) == key and one.get("effect", "NoExecute") == "NoExecute" for one in tolerations):
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
            )


def _quality(containers: list[JsonObject]) -> str:
    """The quality of service that a pod's requests and limits amount to."""
    pairs = [
        (resources.get("requests", {}).get(name), resources.get("limits", {}).get(name))
        for resources in (container["resources"] for container in containers)
        for name in ("cpu", "memory")
    ]
    if not any(request or limit for request, limit in pairs):
        return "BestEffort"
    return "Guaranteed" if all(limit and request == limit for request, limit in pairs) else "Burstable"


def _job(job: JsonObject, old: JsonObject | None) -> None:
    """A job selects its pods by its own uid, unless its author insists on something else."""
    spec = job["spec"]
    if old is not None or spec.get("manualSelector"):
        return
    labels = spec["template"]["metadata"].setdefault("labels", {})
    uid, name = job["metadata"]["uid"], job["metadata"]["name"]
    labels |= {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    spec.setdefault("selector", {}).setdefault("matchLabels", {})["batch.kubernetes.io/controller-uid"] = uid
    if not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def _protected(finalizer: str) -> Prepare:
    """A volume that is in use is not deleted."""

    def protect(volume: JsonObject, old: JsonObject | None) -> None:
        finalizers = volume["metadata"].setdefault("finalizers", [])
        if old is None and finalizer not in finalizers:
            finalizers.append(finalizer)

    return protect


def _persistent_volume(volume: JsonObject, old: JsonObject | None) -> None:
    if old is None:
        volume["status"]["lastPhaseTransitionTime"] = volume["metadata"]["creationTimestamp"]
    _protected("kubernetes.io/pv-protection")(volume, old)


def _daemon_set(daemons: JsonObject, old: JsonObject | None) -> None:
    """Templates were counted in an annotation before metadata.generation was."""
    count = 1
    if old is not None:
        count = int(old["metadata"]["annotations"][TEMPLATE_GENERATION])
        count += daemons["spec"]["template"] != old["spec"]["template"]
    daemons["metadata"]["annotations"][TEMPLATE_GENERATION] = str(count)


_PREPARATIONS: Final[dict[tuple[str, str], Prepare]] = {
    ("", "Namespace"): _namespace,
    ("coordination.k8s.io", "Lease"): _lease,
    ("", "PersistentVolume"): _persistent_volume,
    ("", "PersistentVolumeClaim"): _protected("kubernetes.io/pvc-protection"),
    ("", "Pod"): _pod,
    ("", "Service"): services.complete,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): crds.prepare,
    ("apps", "DaemonSet"): _daemon_set,
    ("batch", "Job"): _job,
}
