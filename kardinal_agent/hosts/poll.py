"""Look at the open pull requests of a repository now and then, for the deliveries that were lost or never configured.

One list for each repository and credential serves all promotions that wait there. A promotion is run again when its
pull request is no longer open, when its head or its base has moved since the list before, and at its first list;
nothing of a list is believed beyond that.
While nothing waits, nothing is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta

import structlog
from pydantic import ValidationError

from kardinal.api import PromotionStep
from kardinal.git import BranchNotFound
from kardinal.objects import JsonObject, Key
from kardinal.objects.naming import short_hash
from kardinal.runtime import Channel, Clock, Informer, Result, Source, Watch
from kardinal.runtime.predicates import either, status_changed
from kardinal_agent.errors import classified
from kardinal_agent.remotes import Queued, Remote, Remotes

__all__ = ["MergePoll"]

POLL_DEADLINE = 100.0
"""Seconds of real time after which a look is given up; the next one is due as usual."""

_BY_REPOSITORY = "repository of an open pull request"

Mark = tuple[str | None, str | None]
"""The head of a pull request and the head of its base; None for what is not there."""

log = structlog.get_logger(__name__)


class MergePoll:
    """The poll of one agent, a reconciler of repositories; `providers` are those with a host to ask."""

    def __init__(
        self,
        steps: Informer,
        merges: Channel,
        *,
        remotes: Remotes,
        providers: Collection[str],
        interval: timedelta,
        clock: Clock,
    ) -> None:
        self._steps = steps
        self._merges = merges
        self._remotes = remotes
        self._providers = providers
        self._interval = interval
        self._clock = clock
        self._next: dict[Key, float] = {}
        self._marks: dict[Key, dict[Key, Mark]] = {}
        steps.index(_BY_REPOSITORY, lambda step: map(str, self._repository_of(step)))

    def sources(self) -> Sequence[Source]:
        """Return what begins a poll: a promotion that waits for a merge."""
        waits = status_changed("state") & either(lambda step: bool(list(self._repository_of(step))))
        return (Watch(self._steps, self._repository_of, when=waits),)

    async def reconcile(self, key: Key) -> Result:
        now = self._clock.monotonic()
        self._next = {known: due for known, due in self._next.items() if known == key or due > now}
        waiting = self._steps.by_index(_BY_REPOSITORY, str(key))
        if not waiting:
            self._marks.pop(key, None)
            return Result()
        if (due := self._next.get(key, now)) > now:
            return Result(requeue_after=timedelta(seconds=due - now))
        self._next[key] = now + self._interval.total_seconds()
        try:
            async with asyncio.timeout(POLL_DEADLINE):
                await self._look(key, waiting)
        except Queued:
            pass
        except Exception as error:
            failure = classified(error)
            log.warning("open pull requests could not be listed", repository=str(key), error=failure.message)
        return Result(requeue_after=self._interval)

    async def _look(self, key: Key, waiting: Iterable[JsonObject]) -> None:
        steps = []
        for raw in waiting:
            with suppress(ValidationError):
                steps.append(PromotionStep.model_validate(raw))
        remote = await self._remotes.open(steps[0])
        try:
            heads = {found.number: found.head_commit for found in await remote.proposals.list("open")}
            bases = {branch: await _head(remote, branch) for branch in {step.spec.git.branch for step in steps}}
        finally:
            remote.release()
        before, self._marks[key] = self._marks.get(key, {}), {}
        for step in steps:
            name, noted = Key(step.metadata.namespace, step.metadata.name), step.status.pull_request
            if noted is None:
                continue
            mark = self._marks[key][name] = (heads.get(noted.number), bases[step.spec.git.branch])
            if noted.number not in heads or before.get(name) != mark:
                self._merges.push(name)

    def _repository_of(self, step: JsonObject) -> Iterable[Key]:
        status, git = step.get("status") or {}, step["spec"]["git"]
        if status.get("state") == "WaitingForMerge" and git.get("provider") in self._providers:
            parts = (git.get("provider"), git["url"], (git.get("secretRef") or {}).get("name", ""))
            yield Key(step["metadata"]["namespace"], f"repository-{short_hash(' '.join(parts))}")


async def _head(remote: Remote, branch: str) -> str | None:
    try:
        return (await remote.repository.head(branch)).commit
    except BranchNotFound:
        return None
