"""Stand in for a GitOps tool and a kubelet at next to no cost: apply what a commit has changed, and nothing else.

    python -m hack.bench.gitops KUBECONFIG REPOSITORY...

A tool in a cluster has a machine of its own, and this one must not take that of the programs that are measured. So the
branch is looked at on disk every few milliseconds, however the Pipelines reach the repository, and of each move only
the directories of environments that differ are read. A Deployment gets the tag and is Available at once. The process
says on standard output that it looks, and ends when it is terminated.
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
"""Seconds between two looks at a branch."""
_AT_ONCE = 16
"""Deployments written at once."""
_PATH = re.compile(r"(?P<application>[^/]+)/environments/(?P<environment>[^/]+)/kustomization\.yaml")
_TAG = re.compile(rb'newTag: "?([^"\s]+)')


@dataclass(frozen=True, slots=True)
class _Change:
    """The content of one directory of an environment after a commit."""

    application: str
    environment: str
    tag: str
    commit: str


class _Branch:
    """The branch of one repository, as far as it was looked at."""

    def __init__(self, repository: str) -> None:
        self._ref = Path(repository, "refs", "heads", BRANCH)
        self._repository = pygit2.Repository(repository)
        self._seen = self._head()

    def changes(self) -> Iterator[_Change]:
        """Yield what has changed since the last look."""
        before, after = self._seen, self._head()
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
