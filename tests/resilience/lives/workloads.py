"""A Deployment as a cluster reports it that has rolled out an image, or has given up."""

from __future__ import annotations

from kardinal.kube import Client, PatchType
from kardinal.objects import DEPLOYMENT, JsonObject

__all__ = ["roll_out"]


async def roll_out(client: Client, name: str, *, namespace: str, image: str, healthy: bool = True) -> None:
    """Make a Deployment run an image, as far as it comes up."""
    labels = {"app": name}
    workload = {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}},
        },
    }
    stored = await client.apply(DEPLOYMENT, workload, field_manager="test", force=True)
    status = {"status": {**_rolled_out(healthy), "observedGeneration": stored["metadata"]["generation"]}}
    await client.patch(DEPLOYMENT, name, namespace, status, kind=PatchType.MERGE, subresource="status")


def _rolled_out(healthy: bool) -> JsonObject:
    """Return the status of a Deployment that is rolled out, or has given up."""
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    if healthy:
        conditions = [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}]
        return {**dict.fromkeys(counts, 1), "unavailableReplicas": None, "conditions": conditions}
    conditions = [
        {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"},
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
    ]
    return {
        "replicas": 1,
        "updatedReplicas": 1,
        "readyReplicas": None,
        "availableReplicas": None,
        "unavailableReplicas": 1,
        "conditions": conditions,
    }
