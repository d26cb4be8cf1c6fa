"""Flux's kustomize-controller on a real API server, with a stand-in for its source.

source-controller fetches a repository and serves an archive of it; a GitRepository says where. The stand-in serves
real archives and writes the same status, so a commit here is a name and a set of files.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from hack.gitops.assets import DEFINITION, FLUX
from hack.kube.assets import obtain
from kardinal.objects import JsonObject, ResourceType
from kardinal_agent.health.flux_common import KUSTOMIZATION
from tests.gitops.cluster import Cluster, running_cluster, running_controller

__all__ = ["NAMESPACE", "RunningFlux", "running_flux"]

NAMESPACE = "flux-system"

_SOURCES = {"GitRepository": "gitrepositories", "OCIRepository": "ocirepositories", "Bucket": "buckets"}
_GIT_REPOSITORY = ResourceType("source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories")


class RunningFlux:
    """The controller, the API server that it works on, and what it is told to apply."""

    def __init__(self, cluster: Cluster, archives: _Archives) -> None:
        self.cluster = cluster
        self._archives = archives

    def push(self, commit: str, files: Mapping[str, str]) -> None:
        """Make `files` the contents of branch `main`, as commit `commit`."""
        data = _archive(files)
        digest = hashlib.sha256(data).hexdigest()
        self._archives.contents[f"/{digest}.tar.gz"] = data
        artifact = {
            "digest": f"sha256:{digest}",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
            "path": f"{digest}.tar.gz",
            "revision": f"main@sha1:{commit}",
            "url": f"{self._archives.url}/{digest}.tar.gz",
        }
        status = {"artifact": artifact, "observedGeneration": 1}
        self.cluster.apply(_GIT_REPOSITORY, _repository() | {"status": status})

    def kustomization(self, **spec: object) -> None:
        """Have the directory `app` applied; the default is to retry soon and to give up on health soon."""
        settings = {
            "interval": "10m",
            "path": "./app",
            "prune": True,
            "retryInterval": "3s",
            "sourceRef": {"kind": "GitRepository", "name": "config"},
            "timeout": "30s",
            "wait": True,
        }
        metadata = {"name": "app", "namespace": NAMESPACE}
        self.cluster.apply(KUSTOMIZATION, {"metadata": metadata, "spec": settings | spec})


@contextmanager
def running_flux(directory: Path) -> Iterator[RunningFlux]:
    """Yield a controller on a control plane of its own; its output is in `directory`."""
    built = obtain(FLUX)
    definitions = directory / "definitions"
    definitions.mkdir()
    (definitions / DEFINITION).write_bytes((built / DEFINITION).read_bytes())
    for kind, plural in _SOURCES.items():
        (definitions / f"{plural}.yaml").write_text(yaml.safe_dump(_definition(kind, plural)))
    command = [str(built / "kustomize-controller"), "--metrics-addr=0", "--health-addr=127.0.0.1:0"]
    command += ["--watch-all-namespaces", "--requeue-dependency=3s", "--http-retry=2"]
    with running_cluster(definitions, namespaces=(NAMESPACE, "prod")) as cluster, _archives() as archives:
        cluster.apply(_GIT_REPOSITORY, _repository())
        with running_controller(cluster, command, directory / "controller.log", RUNTIME_NAMESPACE=NAMESPACE):
            yield RunningFlux(cluster, archives)


class _Archives:
    """The archives that are served, by the path of their URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.contents: dict[str, bytes] = {}


@contextmanager
def _archives() -> Iterator[_Archives]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = archives.contents.get(self.path)
            self.send_response(200 if found is not None else 404)
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()
            self.wfile.write(found or b"")

        def log_message(self, *_: object) -> None:
            """Write no line for a request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    archives = _Archives(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield archives
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _archive(files: Mapping[str, str]) -> bytes:
    """Return a gzipped tar of files, the same bytes for the same files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, contents in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(contents.encode())
            tar.addfile(entry, io.BytesIO(contents.encode()))
    return gzip.compress(packed.getvalue(), mtime=0)


def _repository() -> JsonObject:
    return {
        "metadata": {"name": "config", "namespace": NAMESPACE},
        "spec": {"url": "https://git.example.com/acme/config", "interval": "1m"},
    }


def _definition(kind: str, plural: str) -> JsonObject:
    """Return a definition without a status subresource, so that the stand-in writes all of an object at once."""
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
            "versions": [version],
        },
    }
