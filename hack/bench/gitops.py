"""Simulate a GitOps tool and a kubelet at the lowest cost: apply only the environments that a commit has changed.

    python -m hack.bench.gitops KUBECONFIG REPOSITORY...

In a cluster, the tool runs on another machine, so here it must not take CPU time from the programs that are measured.
It polls the branch on disk every few milliseconds, even if the Pipelines use another URL of the repository, and reads
only the changed directories of environments. A Deployment gets the new tag, and is Available at once. The process
prints a line on standard output when it polls, and runs until it is terminated.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pygit2

from hack.bench.team import BRANCH, ENVIRONMENTS
from kardinal.kube import AlreadyExists, Client, load_connection
from kardinal.objects import DEPLOYMENT, NAMESPACE, JsonObject
from kardinal.runtime.process import run
from kardinal_local import sample
from kardinal_local.simulator.rollout import advance

_EVERY = 0.005
"""The poll interval of a branch in seconds."""
_AT_ONCE = 16
"""The number of Deployments that are written concurrently."""
_PATH = re.compile(r"(?P<application>[^/]+)/environments/(?P<environment>[^/]+)/kustomization\.yaml")
_TAG = re.compile(rb'newTag: "?([^"\s]+)')


@dataclass(frozen=True, slots=True)
class _Change:
    """The image tag of one environment after a commit."""

    application: str
    environment: str
    tag: str
    commit: str


class _Branch:
    """The branch of one repository, with the commit that was seen last."""

    def __init__(self, repository: str) -> None:
        self._ref = Path(repository, "refs", "heads", BRANCH)
        self._repository = pygit2.Repository(repository)
        self._seen = self._head()

    def changes(self) -> Iterator[_Change]:
        """Yield the environments that have changed since the last call."""
        before = self._seen
        after = self._head()
        if before == after:
            return
        self._seen = after
        for delta in self._repository.diff(before, after).deltas:
            if found := _PATH.fullmatch(delta.new_file.path):
                tag = _TAG.search(self._repository[delta.new_file.id].read_raw())
                if tag is not None:
                    yield _Change(found["application"], found["environment"], tag[1].decode(), after)

    def _head(self) -> str:
        return self._ref.read_text().strip()


async def _apply(client: Client, change: _Change, turns: asyncio.Semaphore) -> None:
    async with turns:
        stored = await client.apply(DEPLOYMENT, _deployment(change), field_manager="bench-gitops", force=True)
        status = advance(stored, now=datetime.now(UTC), delay=timedelta()).status
        metadata = stored["metadata"]
        await client.patch(
            DEPLOYMENT, metadata["name"], metadata["namespace"], {"status": status}, subresource="status"
        )


def _deployment(change: _Change) -> JsonObject:
    labels = {"app": change.application}
    container = {"name": "app", "image": f"{sample.IMAGE}:{change.tag}"}
    return {
        "apiVersion": DEPLOYMENT.api_version,
        "kind": DEPLOYMENT.kind,
        "metadata": {
            "name": change.application,
            "namespace": change.environment,
            "annotations": {"bench/commit": change.commit},
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


async def _follow(kubeconfig: Path, repositories: list[str]) -> None:
    async with Client(await load_connection(kubeconfig), user_agent="bench-gitops") as client:
        for name in ENVIRONMENTS:
            with suppress(AlreadyExists):
                await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        branches = [_Branch(repository) for repository in repositories]
        turns = asyncio.Semaphore(_AT_ONCE)
        sys.stdout.write("{}\n")
        sys.stdout.flush()
        async with asyncio.TaskGroup() as writes:
            while True:
                for branch in branches:
                    for change in branch.changes():
                        writes.create_task(_apply(client, change, turns))
                await asyncio.sleep(_EVERY)


if __name__ == "__main__":
    run(_follow(Path(sys.argv[1]), sys.argv[2:]))
