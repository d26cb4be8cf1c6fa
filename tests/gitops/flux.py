"""Flux's kustomize-controller on a real API server, with a stand-in for its source.

source-controller fetches a repository and serves an archive of it; a GitRepository says where. The stand-in serves
real archives and writes the same status, so a commit here is a name and a set of files.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from hack.gitops.assets import DEFINITION, FLUX
from hack.kube.assets import obtain
from hack.kube.launcher import control_plane
from kardinal.objects import JsonObject, ResourceType
from kardinal_agent.health.flux_common import KUSTOMIZATION
from tests.support.administrator import Administrator

__all__ = ["NAMESPACE", "RunningFlux", "running_flux"]

NAMESPACE = "flux-system"

_SOURCES = {"GitRepository": "gitrepositories", "OCIRepository": "ocirepositories", "Bucket": "buckets"}
_GIT_REPOSITORY = ResourceType("source.toolkit.fluxcd.io", "v1", "GitRepository", "gitrepositories")
_STOP_SECONDS = 20.0


class RunningFlux:
    """The controller, the API server that it works on, and what it is told to apply."""

    def __init__(self, administrator: Administrator, archives: _Archives) -> None:
        self.administrator = administrator
        self._archives = archives

    def push(self, commit: str, files: Mapping[str, str]) -> None:
        """Make `files` the contents of branch `main`, as commit `commit`."""
        data = _archive(files)
        digest = hashlib.sha256(data).hexdigest()
        self._archives.contents[f"/{digest}.tar.gz"] = data
        path = _GIT_REPOSITORY.path(namespace=NAMESPACE, name="config")
        artifact = {
            "digest": f"sha256:{digest}",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
            "path": f"{digest}.tar.gz",
            "revision": f"main@sha1:{commit}",
            "url": f"{self._archives.url}/{digest}.tar.gz",
        }
        status = {"artifact": artifact, "observedGeneration": 1}
        self.administrator.apply(_GIT_REPOSITORY, _repository() | {"status": status})
        assert self.administrator.get(path)["status"]["artifact"]["revision"].endswith(commit)

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
        self.administrator.apply(
            KUSTOMIZATION,
            {
                "apiVersion": KUSTOMIZATION.api_version,
                "kind": KUSTOMIZATION.kind,
                "metadata": {"name": "app", "namespace": NAMESPACE},
                "spec": settings | spec,
            },
        )

    def get(self, resource: ResourceType, namespace: str, name: str) -> JsonObject | None:
        """Return an object as it is now."""
        found = self.administrator.get(resource.path(namespace=namespace))["items"]
        chosen = next((each for each in found if each["metadata"]["name"] == name), None)
        return {"apiVersion": resource.api_version, "kind": resource.kind, **chosen} if chosen is not None else None


@contextmanager
def running_flux(directory: Path) -> Iterator[RunningFlux]:
    """Yield a controller on a control plane of its own; its output is in `directory`."""
    built = obtain(FLUX)
    definitions = directory / "definitions"
    definitions.mkdir()
    (definitions / DEFINITION).write_bytes((built / DEFINITION).read_bytes())
    for kind, plural in _SOURCES.items():
        (definitions / f"{plural}.yaml").write_text(yaml.safe_dump(_definition(kind, plural)))
    with control_plane(nodes=True, definitions=definitions) as kubeconfig, _archives() as archives:
        administrator = Administrator(kubeconfig)
        try:
            for name in (NAMESPACE, "prod"):
                administrator.post(
                    "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                )
            administrator.apply(_GIT_REPOSITORY, _repository())
            with _controller(built / "kustomize-controller", kubeconfig, directory / "controller.log"):
                yield RunningFlux(administrator, archives)
        finally:
            administrator.close()


@contextmanager
def _controller(program: Path, kubeconfig: Path, log: Path) -> Iterator[None]:
    command = [str(program), "--metrics-addr=0", "--health-addr=127.0.0.1:0", "--watch-all-namespaces"]
    command += ["--requeue-dependency=3s", "--http-retry=2"]
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "RUNTIME_NAMESPACE": NAMESPACE}
    with log.open("w") as output, subprocess.Popen(command, env=environment, stdout=output, stderr=output) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)


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
        "apiVersion": _GIT_REPOSITORY.api_version,
        "kind": _GIT_REPOSITORY.kind,
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
