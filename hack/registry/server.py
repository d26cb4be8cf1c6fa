"""Run a real image registry on loopback during a `with` block, optionally with TLS and a login."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.kube.assets import obtain
from hack.registry.assets import REGISTRY

__all__ = ["RegistryFailed", "RunningRegistry", "running_registry"]

READY_SECONDS = 60.0
STOP_SECONDS = 10.0


class RegistryFailed(Exception):
    """The registry did not start; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class RunningRegistry:
    """A running registry on a port of 127.0.0.1."""

    port: int
    directory: Path

    @property
    def log(self) -> str:
        """Return the log of the registry, which has a line for each request in the Combined Log Format."""
        return (self.directory / "registry.log").read_text(errors="replace")


@contextmanager
def running_registry(*, certificate: Path | None = None, htpasswd: str | None = None) -> Iterator[RunningRegistry]:
    """Run a registry in a temporary directory; it listens when this yields. Raises `RegistryFailed`.

    `certificate` is a file with the certificate and its key; defaults to plain HTTP. `htpasswd` has lines of users with
    bcrypt hashes, `user:$2y$…`, and makes the registry require a login; defaults to no login.
    """
    program = obtain(REGISTRY) / "registry"
    with tempfile.TemporaryDirectory(prefix="kardinal-registry-") as name:
        directory = Path(name)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        configuration = _configuration(directory, port, certificate, htpasswd)
        (directory / "config.yml").write_text(json.dumps(configuration))
        with (directory / "registry.log").open("wb") as log:
            process = subprocess.Popen(
                [program, "serve", directory / "config.yml"],
                env={"PATH": os.environ["PATH"], "HOME": str(directory), "OTEL_TRACES_EXPORTER": "none"},
                stdout=log,
                stderr=log,
            )
            try:
                _await(port, process, directory)
                yield RunningRegistry(port, directory)
            finally:
                process.terminate()
                try:
                    process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def _configuration(directory: Path, port: int, certificate: Path | None, htpasswd: str | None) -> dict[str, Any]:
    http: dict[str, Any] = {"addr": f"127.0.0.1:{port}", "secret": "of-one-process", "draintimeout": "1s"}
    if certificate is not None:
        http["tls"] = {"certificate": str(certificate), "key": str(certificate)}
    configuration: dict[str, Any] = {
        "version": 0.1,
        "log": {"level": "warn", "accesslog": {"disabled": False}},
        "storage": {"filesystem": {"rootdirectory": str(directory / "storage")}},
        "http": http,
    }
    if htpasswd is not None:
        (directory / "htpasswd").write_text(htpasswd)
        configuration["auth"] = {"htpasswd": {"realm": "registry", "path": str(directory / "htpasswd")}}
    return configuration


def _await(port: int, process: subprocess.Popen[bytes], directory: Path) -> None:
    ends = time.monotonic() + READY_SECONDS
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > ends:
                tail = (directory / "registry.log").read_text(errors="replace")[-2000:]
                raise RegistryFailed(f"no registry listens at port {port}; the end of its log:\n{tail}") from None
            time.sleep(0.02)
