"""Judge whether the Deployments of a real cluster have got as far as they get.

No object says when a rollout is over: the deployment controller, the scheduler and the node each write what they know,
and a pod whose image can not be pulled waits for ever. So it is judged from the objects, once for each state of them.

They are taken from the API server's cache, because an answer that is certainly the newest makes it ask its store about
every kind first, a tenth of a second on a bad day. What the cache says counts only when it is what the store holds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from kardinal.objects import DEPLOYMENT, ResourceType
from tests.support.administrator import Administrator
from tests.support.settle import difference

__all__ = ["WORKLOADS", "Rollouts", "end_all", "hear_of_everything"]

JsonObject = dict[str, Any]

WORKLOADS = ("deployments/", "pods/")
"""The places in the store of what a rollout is judged from."""

_JOB = ResourceType("batch", "v1", "Job", "jobs")
_POD = ResourceType("", "v1", "Pod", "pods")
_REPLICA_SET = ResourceType("apps", "v1", "ReplicaSet", "replicasets")
_LOOK_AGAIN = 0.01
"""Seconds."""
_PATIENCE = 15.0
"""Seconds; what a finalizer holds stays."""
_STUCK = {"ErrImagePull", "ImagePullBackOff"}


class Rollouts:
    """The rollouts of one API server."""

    def __init__(self, administrator: Administrator) -> None:
        self._administrator = administrator
        self._judged: Mapping[str, int] = {}
        self._under_way: list[str] = []

    def under_way(self, stored: Mapping[str, int]) -> list[str]:
        """Return a line for each one that will get further by itself; `stored` has the revision of every workload."""
        if stored != self._judged:
            deployments = self._administrator.cached(DEPLOYMENT)
            pods = self._administrator.cached(_POD)
            served = _revisions(DEPLOYMENT, deployments) | _revisions(_POD, pods)
            if behind := [f"the API server's cache: {line}" for line in difference(served, stored)]:
                return behind
            self._judged = stored
            self._under_way = [_described(each) for each in deployments if not _rolled_out(each, pods)]
        return self._under_way


def end_all(administrator: Administrator) -> None:
    """Delete every Deployment and every Job as anybody would, and return when what was made for it is gone, too."""
    made: set[str] = set()
    for resource in (DEPLOYMENT, _JOB):
        found = [obj["metadata"] for obj in _all(administrator, resource)]
        made |= {metadata["uid"] for metadata in found}
        # As collections: of those, one that goes by itself meanwhile is not missed. A Job leaves its pods unless told.
        for namespace in {metadata["namespace"] for metadata in found}:
            administrator.delete(f"{resource.path(namespace=namespace)}?propagationPolicy=Background")
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        owned = {obj["metadata"]["uid"] for obj in _all(administrator, _REPLICA_SET) if _owners(obj, "Deployment")}
        made |= owned
        if not owned and not any(made & _owners(pod, "ReplicaSet", "Job") for pod in _all(administrator, _POD)):
            return
        time.sleep(_LOOK_AGAIN)


def _all(administrator: Administrator, resource: ResourceType) -> list[JsonObject]:
    found: list[JsonObject] = administrator.get(resource.path())["items"]
    return found


def _owners(obj: JsonObject, *kinds: str) -> set[str]:
    """Return the uids of the owners of some kinds."""
    return {owner["uid"] for owner in obj["metadata"].get("ownerReferences", ()) if owner["kind"] in kinds}


def hear_of_everything(administrator: Administrator) -> None:
    """Return when the controllers of workloads know what was stored until now, in particular what is gone.

    Those that do not would make the pods of a Deployment that was removed behind their back. Each hears of its kind in
    the order of changes, so when it has seen a new one, it has seen everything before. The one of Deployments makes a
    ReplicaSet of it for the other; both are left.
    """
    metadata = {"name": "heard", "namespace": "default"}
    labels = {"matchLabels": {"app": "heard"}}
    template = {
        "metadata": {"labels": labels["matchLabels"]},
        "spec": {"containers": [{"name": "none", "image": "none"}]},
    }
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    administrator.apply(DEPLOYMENT, document | {"spec": {"replicas": 0, "selector": labels, "template": template}})
    while not all(_heard(administrator, resource) for resource in (DEPLOYMENT, _REPLICA_SET)):
        time.sleep(_LOOK_AGAIN)


def _heard(administrator: Administrator, resource: ResourceType) -> bool:
    """Return whether the controller of a kind has observed our object; the cache might still hold an earlier one."""
    stored = administrator.get(resource.path(namespace="default"))["items"]
    return any(
        "observedGeneration" in obj.get("status", {}) for obj in stored if obj["metadata"]["name"].startswith("heard")
    )


def _revisions(resource: ResourceType, objects: Iterable[JsonObject]) -> dict[str, int]:
    return {
        f"{resource.plural}/{metadata['namespace']}/{metadata['name']}": int(metadata["resourceVersion"])
        for metadata in (obj["metadata"] for obj in objects)
    }


def _described(deployment: JsonObject) -> str:
    metadata = deployment["metadata"]
    return f"Deployment {metadata['namespace']}/{metadata['name']} is rolling out"


def _rolled_out(deployment: JsonObject, pods: Iterable[JsonObject]) -> bool:
    """Return whether nothing more will happen to it by itself: all is there, or what is missing is stuck."""
    status = deployment.get("status", {})
    wanted = deployment["spec"]["replicas"]
    if status.get("observedGeneration") != deployment["metadata"]["generation"]:
        return False
    if all(status.get(field, 0) == wanted for field in ("replicas", "updatedReplicas", "availableReplicas")):
        return True
    labels = deployment["spec"]["selector"]["matchLabels"].items()
    own = [
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == deployment["metadata"]["namespace"]
        and labels <= pod["metadata"].get("labels", {}).items()
    ]
    waiting = [pod for pod in own if not _ready(pod)]
    return (
        len(own) == status.get("replicas", 0) >= wanted
        and status.get("availableReplicas", 0) == len(own) - len(waiting)
        and bool(waiting)
        and all(_stuck(pod) for pod in waiting)
    )


def _ready(pod: JsonObject) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def _stuck(pod: JsonObject) -> bool:
    """Return whether it waits for what never comes: a node, or its image."""
    unscheduled = any(
        one["type"] == "PodScheduled" and one["status"] == "False" for one in pod["status"].get("conditions", ())
    )
    reasons = {
        container.get("state", {}).get("waiting", {}).get("reason")
        for container in pod["status"].get("containerStatuses", ())
    }
    return unscheduled or bool(reasons & _STUCK)
