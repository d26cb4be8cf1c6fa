"""Merge a pull request of provider `local`, as its reviewer: pull requests that are stored in a bare repository.

Gates hold the agent, but not the repository, so a person can always merge. The check prevents two mistakes: a merge
while the Pipeline is paused, and a merge for a deleted Bundle, which no promotion would continue from.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kardinal.clock import SystemClock
from kardinal.git import GitRunner, Repositories
from kardinal.objects.text import escaped
from kardinal.promotion.requests.requester import RequestDenied, Requester
from kardinal.promotion.views.reading import freeze_of
from kardinal.scm import PullRequest, PullRequests, local_pull_requests

__all__ = ["open_pull_requests", "refuse_merge"]

_FORCE = "or merge it all the same: --force"


@asynccontextmanager
async def open_pull_requests(url: str, *, allow_bypassing_hooks: bool = False) -> AsyncIterator[PullRequests]:
    """Open the pull requests of a local repository until the block ends."""
    runner = GitRunner(workers=1)
    cache = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="kardinal-pr-"))
    repositories = Repositories(
        cache, runner=runner, clock=SystemClock(), allow_local=True, allow_bypassing_hooks=allow_bypassing_hooks
    )
    try:
        yield local_pull_requests(repositories.open(url), clock=SystemClock())
    finally:
        await repositories.close()
        runner.close()
        await asyncio.to_thread(shutil.rmtree, cache)


async def refuse_merge(requester: Requester, pull: PullRequest) -> None:
    """Raise `RequestDenied` if the Pipeline of a pull request is paused, or its Bundle was deleted."""
    freeze = freeze_of(await requester.reader.gates(requester.namespace), pull.pipeline)
    if freeze is not None:
        why = escaped(" ".join((freeze.spec.message or "").split()))
        raise RequestDenied(
            f"Pipeline {pull.pipeline} is paused" + (f": {why}" if why else ""),
            remedy=f"Let it go on: kardinal resume {pull.pipeline}{requester.option}; {_FORCE}",
        )
    if await requester.reader.bundle(requester.namespace, pull.bundle) is None:
        raise RequestDenied(
            f"Bundle {pull.bundle} of pull request {pull.number} is gone: nothing would follow its merge",
            remedy=f"Close it: kardinal pr close {pull.number}; {_FORCE}",
        )
