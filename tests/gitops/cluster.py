"""A real control plane with the controller of a GitOps tool."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hack.kube.launcher import control_plane
from kardinal.objects import JsonObject, ResourceType
from tests.support.administrator import Administrator

__all__ = ["Cluster", "running_cluster", "running_controller"]

_STOP_SECONDS = 20.0


class Cluster:
    """An API server on which controllers run pods, as an administrator."""

    def __init__(self, kubeconfig: Path, administrator: Administrator) -> None:
        self.kubeconfig = kubeconfig
        self.administrator = administrator

    def apply(self, resource: ResourceType, document: JsonObject) -> None:
        identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        self.administrator.apply(resource, identity | document)

    def get(self, resource: ResourceType, namespace: str, name: str) -> JsonObject | None:
        """Return an object as it is now."""
        found = self.administrator.get(resource.path(namespace=namespace))["items"]
        chosen = next((each for each in found if each["metadata"]["name"] == name), None)
        return {"apiVersion": resource.api_version, "kind": resource.kind, **chosen} if chosen is not None else None


@contextmanager
def running_cluster(definitions: Path, *, namespaces: Sequence[str]) -> Iterator[Cluster]:
    """Yield a control plane with a node, the kinds of `definitions`, and namespaces."""
    with control_plane(nodes=True, definitions=definitions) as kubeconfig:
        administrator = Administrator(kubeconfig)
        try:
            for name in namespaces:
                namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                administrator.post("/api/v1/namespaces", namespace)
            yield Cluster(kubeconfig, administrator)
        finally:
            administrator.close()


@contextmanager
def running_controller(cluster: Cluster, command: Sequence[str], log: Path, **environment: str) -> Iterator[None]:
    """Run a controller for the length of a block; its output goes to `log`."""
    variables = os.environ | {"KUBECONFIG": str(cluster.kubeconfig)} | environment
    with log.open("w") as output, subprocess.Popen(command, env=variables, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)
