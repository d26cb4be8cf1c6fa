"""Looks of an agent at the pull requests of others at a host, without the controllers that say when it looks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from kardinal.objects import JsonObject, Key
from kardinal.objects.conditions import format_time
from kardinal.promotion.api import Pipeline
from kardinal.runtime import Backoff, KeyMemory
from kardinal_agent.hosts.memory import HostMemory
from kardinal_agent.hosts.others import Group, OtherPullRequests
from kardinal_agent.remotes import Remote
from tests.agent.other_changes import asking
from tests.agent.sites import Site
from tests.agent.without_server import NoObjects, remote_of
from tests.support.clock import VirtualClock
from tests.support.fake_gitea import FakeGitea

__all__ = ["Looks", "answered", "looking"]


def answered(
    pipeline: JsonObject, *, now: datetime, held: Mapping[str, str], until: datetime | None = None
) -> JsonObject:
    """Return a Pipeline with the controller's answer about its gates; an environment is held for its reason."""
    metadata = {"uid": f"uid-{pipeline['metadata']['name']}", "generation": 1, **pipeline["metadata"]}
    answer = {
        "observedGeneration": metadata["generation"],
        "evaluatedAt": format_time(now),
        "until": format_time(until) if until is not None else None,
        "held": [{"environment": name, "reason": reason} for name, reason in held.items()],
    }
    return {**pipeline, "metadata": metadata, "status": {"otherChanges": answer}}


class Looks:
    """The looks of one agent at one host; time passes only between them."""

    def __init__(self, host: FakeGitea | Site, remote: Remote, clock: VirtualClock) -> None:
        self._host = host
        self._remote = remote
        self._clock = clock
        memory = HostMemory(clock, backoff=Backoff(base=1.0, cap=300.0), memory=KeyMemory(NoObjects()))
        self._others = OtherPullRequests(memory, holds=lambda step: (), clock=clock)

    async def look(self, held: Mapping[str, str] | None = None, *, after: timedelta = timedelta()) -> bool:
        """Look once, `after` a time, with `held` environments; return whether the agent looks again in a minute."""
        await self._clock.advance(after)
        pipeline = Pipeline.model_validate(answered(asking(self._host), now=self._clock.now(), held=held or {}))
        heads = await self._remote.proposals.heads()
        return await self._others.tell(self._remote, Group(Key("team", "config"), (pipeline,), ()), heads)


@asynccontextmanager
async def looking(host: FakeGitea | Site, directory: Path, *, clock: VirtualClock) -> AsyncIterator[Looks]:
    """Open a host as an agent does; `directory` is a cache."""
    async with remote_of(host, directory, clock=clock) as remote:
        yield Looks(host, remote, clock)
