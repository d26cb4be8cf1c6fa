"""Flux's kustomize-controller on a real API server, and what it is told by a source.

source-controller fetches a repository and serves an archive of it; the status of a GitRepository says where. Its kinds
are served with any fields. The source of `running_flux` is a name of a commit and a set of files; `sources.py` has one
that follows real repositories.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hack.flux.assets import DEFINITION, FLUX
from hack.kube.assets import obtain
from kardinal.objects import JsonObject
from kardinal_agent.health.detection import GIT_REPOSITORY
from kardinal_agent.health.flux_common import KUSTOMIZATION
from tests.gitops.archives import Archives, archives
from tests.gitops.cluster import Cluster, definitions_of, running_cluster, running_controller

__all__ = ["NAMESPACE", "RunningFlux", "kustomization_spec", "running_flux", "source_definitions", "started_flux"]

NAMESPACE = "flux-system"

_SOURCES = {"GitRepository": "gitrepositories", "OCIRepository": "ocirepositories", "Bucket": "buckets"}


class RunningFlux:
    """The controller, the API server that it works on, and what it is told to apply."""

    def __init__(self, cluster: Cluster, served: Archives) -> None:
        self.cluster = cluster
        self._archives = served

    def push(self, commit: str, files: Mapping[str, str]) -> None:
        """Make `files` the contents of branch `main`, as commit `commit`."""
        artifact = self._archives.artifact(_tar(files), commit)
        status = {"artifact": artifact, "observedGeneration": 1}
        self.cluster.set_status(GIT_REPOSITORY, NAMESPACE, "config", status)

    def kustomization(self, **spec: object) -> None:
        """Have the directory `app` applied; the default is to retry soon and to give up on health soon."""
        metadata = {"name": "app", "namespace": NAMESPACE}
        settings = kustomization_spec(path="./app", source="config", wait=True)
        self.cluster.apply(KUSTOMIZATION, {"metadata": metadata, "spec": settings | spec})


def kustomization_spec(*, path: str, source: str, wait: bool) -> JsonObject:
    """Return how Flux is told to apply a directory of a GitRepository, and to retry and to give up on health soon."""
    return {
        "interval": "10m",
        "path": path,
        "prune": True,
        "retryInterval": "3s",
        "sourceRef": {"kind": "GitRepository", "name": source},
        "timeout": "30s",
        "wait": wait,
    }


@contextmanager
def running_flux(directory: Path) -> Iterator[RunningFlux]:
    """Yield a controller on a control plane of its own; its output is in `directory`."""
    definitions = definitions_of(directory / "definitions", [obtain(FLUX) / DEFINITION], *source_definitions())
    with running_cluster(definitions, namespaces=(NAMESPACE, "prod")) as cluster, archives() as served:
        source = {"url": "https://git.example.com/acme/config", "interval": "1m"}
        cluster.apply(GIT_REPOSITORY, {"metadata": {"name": "config", "namespace": NAMESPACE}, "spec": source})
        with started_flux(cluster, directory):
            yield RunningFlux(cluster, served)


@contextmanager
def started_flux(cluster: Cluster, directory: Path) -> Iterator[None]:
    """Run the controller on a control plane that has a namespace for it."""
    command = [str(obtain(FLUX) / "kustomize-controller"), "--metrics-addr=0", "--health-addr=127.0.0.1:0"]
    command += ["--watch-all-namespaces", "--requeue-dependency=3s", "--http-retry=2"]
    with running_controller(cluster, command, directory / "flux.log", RUNTIME_NAMESPACE=NAMESPACE):
        yield


def source_definitions() -> Sequence[JsonObject]:
    """Return the definitions of the sources that the controller watches."""
    return [_definition(kind, plural) for kind, plural in _SOURCES.items()]


def _tar(files: Mapping[str, str]) -> bytes:
    """Return a tar of files, the same bytes for the same files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, contents in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(contents.encode())
            tar.addfile(entry, io.BytesIO(contents.encode()))
    return packed.getvalue()


def _definition(kind: str, plural: str) -> JsonObject:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.source.toolkit.fluxcd.io"},
        "spec": {
            "group": "source.toolkit.fluxcd.io",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [version | {"subresources": {"status": {}}}],
        },
    }
