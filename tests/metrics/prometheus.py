"""A real Prometheus on loopback, with the exporter of these tests as its only target."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PASSWORD", "PROMETHEUS", "USER", "RunningPrometheus", "running_prometheus"]

PROMETHEUS = shutil.which("prometheus")
"""The program, as Debian's package `prometheus` installs it; None if it is not on PATH."""

READY_SECONDS = 40.0
USER = "kardinal"
PASSWORD = "open sesame"
_HASH = "$2b$04$VrzP5aggH8D1JaQH0MEX..ZVz6JXyTigV90hloNRrirFew5qTBkua"
"""The bcrypt hash of `PASSWORD`."""


@dataclass(frozen=True)
class RunningPrometheus:
    """A Prometheus that has scraped the exporter some times."""

    address: str
    process: subprocess.Popen[bytes]

    @property
    def host(self) -> str:
        return self.address.partition("//")[2]

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let the server take connections and not answer them, until the end of the block."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def running_prometheus(directory: Path, *, certificate: Path | None = None) -> Iterator[RunningPrometheus]:
    """Run a Prometheus; with a `certificate`, over TLS and for `USER` alone."""
    assert PROMETHEUS is not None
    exporter = _free_port()
    port = _free_port()
    config = {
        "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"},
        "scrape_configs": [{"job_name": "shop", "static_configs": [{"targets": [f"127.0.0.1:{exporter}"]}]}],
    }
    (directory / "prometheus.yml").write_text(json.dumps(config))
    web: dict[str, object] = {}
    if certificate is not None:
        tls = {"cert_file": str(certificate), "key_file": str(certificate)}
        web = {"tls_server_config": tls, "basic_auth_users": {USER: _HASH}}
    (directory / "web.yml").write_text(json.dumps(web))
    arguments = [
        f"--config.file={directory / 'prometheus.yml'}",
        f"--web.config.file={directory / 'web.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    address = f"{'http' if certificate is None else 'https'}://127.0.0.1:{port}"
    with (directory / "log").open("wb") as log:
        scraped = subprocess.Popen([sys.executable, "-m", "tests.metrics.exporter", str(exporter)], stderr=log)
        server = subprocess.Popen([PROMETHEUS, *arguments], stdout=log, stderr=log)
        try:
            if certificate is None:
                _await_samples(address, directory / "log")
            else:
                _await_port(port, directory / "log")
            yield RunningPrometheus(address, server)
        finally:
            for process in (server, scraped):
                process.kill()
                process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _await_samples(address: str, log: Path) -> None:
    """Return once the exporter was scraped five times."""
    ends = time.monotonic() + READY_SECONDS
    query = urllib.parse.urlencode({"query": "count_over_time(shop_idle[1m]) >= 5"})
    while True:
        connection = http.client.HTTPConnection(address.partition("//")[2], timeout=5)
        try:
            connection.request("GET", f"/api/v1/query?{query}")
            answer = connection.getresponse()
            if answer.status == 200 and json.loads(answer.read())["data"]["result"]:
                return
        except OSError:
            pass
        finally:
            connection.close()
        _pause(ends, log)


def _await_port(port: int, log: Path) -> None:
    ends = time.monotonic() + READY_SECONDS
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                return
        except OSError:
            _pause(ends, log)


def _pause(ends: float, log: Path) -> None:
    assert time.monotonic() < ends, log.read_text(errors="replace")[-2000:]
    threading.Event().wait(0.05)
