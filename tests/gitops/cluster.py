"""A real control plane with the controllers of GitOps tools."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import yaml

from hack.kube.launcher import control_plane
from kardinal.objects import JsonObject, ResourceType
from tests.support.administrator import Administrator
from tests.support.objects import namespace

__all__ = ["Cluster", "definitions_of", "running_cluster", "running_controller"]

_STOP_SECONDS = 20.0


class Cluster:
    """An API server on which controllers run pods, as an administrator."""

    def __init__(self, kubeconfig: Path, administrator: Administrator) -> None:
        self.kubeconfig = kubeconfig
        self.administrator = administrator

    def apply(self, resource: ResourceType, document: JsonObject) -> None:
        identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        self.administrator.apply(resource, identity | document)

    def namespace(self, name: str, **annotations: str) -> None:
        """Make a namespace."""
        document = namespace(name)
        document["metadata"]["annotations"] = annotations
        self.administrator.post("/api/v1/namespaces", document)

    def set_status(self, resource: ResourceType, where: str, name: str, status: JsonObject) -> None:
        """Change fields of a status."""
        self.administrator.merge(resource.path(namespace=where, name=name, subresource="status"), {"status": status})

    def get(self, resource: ResourceType, namespace: str, name: str) -> JsonObject | None:
        """Return an object as it is now."""
        return next((each for each in self.list(resource, namespace) if each["metadata"]["name"] == name), None)

    def list(self, resource: ResourceType, namespace: str | None = None) -> list[JsonObject]:
        """Return the objects of a kind as they are now."""
        identity = {"apiVersion": resource.api_version, "kind": resource.kind}
        return [identity | found for found in self.administrator.get(resource.path(namespace=namespace))["items"]]


def definitions_of(directory: Path, paths: Iterable[Path], *made: JsonObject) -> Path:
    """Write the CustomResourceDefinitions of files, and some that a test makes, into a directory, a file for each."""
    directory.mkdir()
    found = [each for path in paths for each in yaml.load_all(path.read_bytes(), yaml.CSafeLoader)]
    for document in (*found, *made):
        if document and document["kind"] == "CustomResourceDefinition":
            path = directory / f"{document['metadata']['name']}.yaml"
            path.write_text(yaml.dump(document, Dumper=yaml.CSafeDumper))
    return directory


@contextmanager
def running_cluster(definitions: Path, *, namespaces: Sequence[str] = ()) -> Iterator[Cluster]:
    """Yield a control plane with a node, the kinds of `definitions`, and namespaces."""
    with control_plane(nodes=True, definitions=definitions) as kubeconfig:
        administrator = Administrator(kubeconfig)
        cluster = Cluster(kubeconfig, administrator)
        try:
            for name in namespaces:
                cluster.namespace(name)
            yield cluster
        finally:
            administrator.close()


@contextmanager
def running_controller(cluster: Cluster, command: Sequence[str], log: Path, **environment: str) -> Iterator[None]:
    """Run a controller for the length of a block; its output goes to `log`."""
    variables = os.environ | {"KUBECONFIG": str(cluster.kubeconfig)} | environment
    with log.open("w") as output, subprocess.Popen(command, env=variables, stdout=output, stderr=output) as process:
        try:
            yield
            assert process.poll() is None, f"{command[0]} ended with {process.returncode}: {log.read_text()[-2000:]}"
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)
