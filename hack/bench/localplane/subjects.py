"""Run the two API servers that are compared, and read their memory."""

from __future__ import annotations

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import yaml

from hack.bench.localplane.load import GROUP
from hack.kube.assets import HACK, locate
from hack.kube.launcher import control_plane

__all__ = ["Subject", "memory_of", "plane", "prepared", "real", "running_plane"]

BIN = Path(sys.executable).parent
_FIELDS = {
    "spec": {
        "type": "object",
        "required": ["size"],
        "properties": {
            "payload": {"type": "string", "maxLength": 4000},
            "size": {"type": "integer", "minimum": 1, "default": 3},
            "parts": {
                "type": "array",
                "maxItems": 10,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}},
                },
            },
        },
    },
    "status": {"type": "object", "properties": {"phase": {"type": "string"}, "seen": {"type": "integer"}}},
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"loads.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "loads", "kind": "Load"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": _FIELDS}},
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                ],
            }
        ],
    },
}
_RULES = [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}]
_ACCOUNT = {"kind": "ServiceAccount", "name": "bench", "namespace": "bench"}
RIGHTS = [
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}},
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "bench", "namespace": "bench"}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "bench"},
        "rules": [*_RULES, {"nonResourceURLs": ["/livez"], "verbs": ["get"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "bench"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bench"},
        "subjects": [_ACCOUNT],
    },
]


@dataclass(frozen=True, slots=True)
class Subject:
    """A running API server, with an administrator and a ServiceAccount that RBAC allows to write one kind."""

    name: str
    admin: Path
    account: Path

    def load(self, scenario: str, namespace: str) -> dict[str, float]:
        """Run one scenario of the load generator against the server, and return its figures."""
        command = [sys.executable, "-m", "hack.bench.localplane.load", scenario]
        command += [f"--kubeconfig={self.account}", f"--namespace={namespace}"]
        done = subprocess.run(command, cwd=HACK.parent, check=True, stdout=subprocess.PIPE, text=True)
        figures: dict[str, float] = json.loads(done.stdout)
        return figures

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return _kubectl(self.admin, *arguments, stdin=stdin)

    def namespace(self, name: str) -> str:
        self.kubectl("create", "namespace", name)
        return name


def memory_of(process: int) -> int:
    """Return the memory of a process in bytes."""
    text = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) * 1024


@contextmanager
def running_plane(directory: Path) -> Iterator[tuple[int, float]]:
    """Run `kardinal local up --only plane`, and yield its process id and the seconds until `/readyz` succeeded."""
    began = time.perf_counter()
    command = [str(BIN / "kardinal"), "local", "up", "--only", "plane", "--port", "0", "--dir", str(directory)]
    # An installed kardinal has compiled modules; compiling them each time would double the time of the start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            _require_ready(process.stdout or ())
            yield process.pid, time.perf_counter() - began
        finally:
            process.send_signal(signal.SIGTERM)


def _require_ready(lines: Iterable[str]) -> None:
    """Read the output of the plane until it is ready, then send a request to `/readyz`."""
    port = 0
    for line in lines:
        if line.startswith("API server"):
            port = int(line.rpartition(":")[2])
        if line.startswith("ready"):
            break
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = HTTPSConnection("127.0.0.1", port, context=context)
    connection.request("GET", "/readyz")
    if connection.getresponse().status != 200:
        raise RuntimeError("the local plane is not ready")
    connection.close()


@contextmanager
def plane() -> Iterator[Subject]:
    """Run the local plane, prepared for load."""
    with tempfile.TemporaryDirectory() as parent:
        directory = Path(parent) / "plane"
        with running_plane(directory):
            yield prepared("local plane", directory / "kubeconfig", Path(parent))


@contextmanager
def real() -> Iterator[Subject]:
    """Run kube-apiserver with etcd and the controller manager, prepared for load."""
    with tempfile.TemporaryDirectory() as directory, control_plane() as kubeconfig:
        yield prepared("kube-apiserver", kubeconfig, Path(directory))


def prepared(name: str, admin: Path, directory: Path) -> Subject:
    """Create the CRD and a ServiceAccount that may write its objects; the kubeconfig is written to `directory`."""
    objects = "---\n".join(yaml.safe_dump(one) for one in (DEFINITION, *RIGHTS))
    _kubectl(admin, "create", "-f", "-", stdin=objects)
    _kubectl(admin, "wait", "--for=condition=Established", f"crd/loads.{GROUP}")
    token = _kubectl(admin, "create", "token", "bench", "--namespace=bench").strip()
    config: dict[str, Any] = yaml.safe_load(_kubectl(admin, "config", "view", "--raw", "--flatten"))
    cluster = config["clusters"][0]["cluster"]
    authority = directory / f"{name.replace(' ', '-')}.crt"
    authority.write_bytes(base64.b64decode(cluster.pop("certificate-authority-data")))
    cluster["certificate-authority"] = str(authority)
    config["users"][0]["user"] = {"token": token}
    account = authority.with_suffix(".kubeconfig")
    account.write_text(yaml.safe_dump(config))
    return Subject(name, admin, account)


def _kubectl(kubeconfig: Path, *arguments: str, stdin: str | None = None) -> str:
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [locate()["kubectl"], *arguments],
            env=os.environ | {"KUBECONFIG": str(kubeconfig), "HOME": home},
            input=stdin,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    return done.stdout
