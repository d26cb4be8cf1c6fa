"""Stand in for Flux's source-controller: fetch the repository of each GitRepository, and serve its commit.

It fetches when a GitRepository is new, when it is asked to by annotation, and when its interval is over, which `poll`
can say at once; so a test sees who had it look. Its status has the fields that are documented for the real one.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from kardinal.objects import JsonObject, Key, key_of
from kardinal_agent.health.detection import GIT_REPOSITORY
from kardinal_agent.health.refresh import FLUX_REQUEST
from tests.gitops.archives import Archives, archives
from tests.gitops.cluster import Cluster
from tests.support.administrator import Administrator

__all__ = ["Sources", "started_sources"]

_LOOK_AGAIN = 0.1
"""Seconds."""


class Sources:
    """The GitRepositories of a cluster."""

    def __init__(self, cluster: Cluster, served: Archives) -> None:
        self._cluster = cluster
        self._archives = served
        self._fetched: dict[Key, tuple[object, float]] = {}
        self._polled = threading.Event()

    def poll(self) -> None:
        """Fetch all repositories, as when their intervals are over."""
        self._polled.set()

    def reconcile(self) -> None:
        """Fetch what has to be."""
        if self._polled.is_set():
            self._polled.clear()
            self._fetched.clear()
        for found in self._cluster.list(GIT_REPOSITORY):
            key = key_of(found)
            metadata = found["metadata"]
            asked = (metadata.get("annotations") or {}).get(FLUX_REQUEST)
            cause = (metadata["generation"], asked)
            before, at = self._fetched.get(key, (None, 0.0))
            if before != cause or time.monotonic() - at >= _seconds(found["spec"]["interval"]):
                self._fetched[key] = (cause, time.monotonic())
                self._fetch(found, asked)

    def _fetch(self, found: JsonObject, asked: str | None) -> None:
        path = urlsplit(found["spec"]["url"]).path
        commit = _git(path, "rev-parse", f"refs/heads/{found['spec']['ref']['branch']}").decode().strip()
        artifact = self._archives.artifact(_git(path, "archive", "--format=tar", commit), commit)
        status = {"artifact": artifact, "observedGeneration": found["metadata"]["generation"]}
        status |= {"lastHandledReconcileAt": asked} if asked else {}
        self._cluster.set_status(GIT_REPOSITORY, *key_of(found), status)


def _seconds(duration: str) -> float:
    """Return the seconds of a duration of one unit."""
    return float(duration[:-1]) * {"s": 1, "m": 60, "h": 3600}[duration[-1]]


def _git(repository: str, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", repository, *arguments], capture_output=True, check=True, timeout=30).stdout


@contextmanager
def started_sources(cluster: Cluster) -> Iterator[Sources]:
    """Follow the GitRepositories of a cluster for the length of a block."""
    ended = threading.Event()
    # A connection belongs to one thread.
    administrator = Administrator(cluster.kubeconfig)
    with archives() as served:
        sources = Sources(Cluster(cluster.kubeconfig, administrator), served)

        def follow() -> None:
            while not ended.wait(_LOOK_AGAIN):
                sources.reconcile()

        # Once here, so that the connection is there before a test begins.
        sources.reconcile()
        thread = threading.Thread(target=follow, name="sources")
        thread.start()
        try:
            yield sources
        finally:
            ended.set()
            thread.join()
            administrator.close()
