"""Poll the open pull requests of a repository: for merges without a delivery, and for the statuses of others.

One list for each repository serves all promotions that wait there, and all Pipelines of the namespace with
`git.statusOnOthers`. A promotion is run again at the first list, when its pull request is no longer open, and when its
head or its base has moved since the list before. The list only wakes promotions; each asks the host for itself. Without
a waiting promotion and a Pipeline with statuses, no request is made.

The regular look finds changes whose delivery was lost. For pull requests of others a look is also due when one of the
Pipelines changes, is woken, or gets another answer of its gates, at most every `PAUSE` seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import structlog
from pydantic import ValidationError

from kardinal.clock import Clock
from kardinal.git import BranchNotFound
from kardinal.models.base import SecretReference
from kardinal.objects import JsonObject, Key
from kardinal.objects.capabilities import Capabilities
from kardinal.objects.naming import short_hash
from kardinal.promotion.api import Pipeline, PromotionStep
from kardinal.runtime import Channel, EventRecorder, Informer, Result, Source, Watch
from kardinal.runtime.predicates import either, generation_changed, status_changed
from kardinal.scm import OpenHead
from kardinal.tree.repository_url import InvalidRepositoryURL, repository_key
from kardinal_agent.errors import Failure, classified
from kardinal_agent.hosts.others import AGAIN, Group, OtherPullRequests, answers
from kardinal_agent.pipeline_steps import steps_of
from kardinal_agent.remotes import Queued, Remote, Remotes

__all__ = ["HostPoll"]

POLL_DEADLINE = 100.0
"""Seconds of real time after which a look is given up; the next look is due as usual."""
PAUSE = 15.0
"""Seconds between two looks at one repository, however often a Pipeline is woken."""

_BY_REPOSITORY = "repository of an open pull request"
_ASKING = "repository of a Pipeline with statuses on others"

Mark = tuple[str | None, str | None]
"""The head of a pull request and the head of its base; None for a missing one."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Looked:
    """The last look at a repository: its time, its cause, and how long it counts; None for ever."""

    at: float
    asked: str
    interval: float | None


class HostPoll:
    """The reconciler of repositories of one agent. `providers` are the capabilities of providers with a host.

    Without an `interval` there is no regular look: only woken repositories are polled.
    """

    def __init__(
        self,
        steps: Informer,
        pipelines: Informer,
        merges: Channel,
        *,
        shard: str | None,
        remotes: Remotes,
        providers: Mapping[str, Capabilities],
        others: OtherPullRequests,
        recorder: EventRecorder,
        interval: timedelta | None,
        clock: Clock,
    ) -> None:
        self._steps = steps
        self._pipelines = pipelines
        self._merges = merges
        self._shard = shard
        self._remotes = remotes
        self._providers = providers
        self._others = others
        self._recorder = recorder
        self._interval = interval.total_seconds() if interval is not None else None
        self._clock = clock
        self._looked: dict[Key, _Looked] = {}
        self._marks: dict[Key, dict[Key, Mark]] = {}
        self._told: dict[Key, str] = {}
        steps.index(_BY_REPOSITORY, lambda step: map(str, self._repository_of_step(step)))
        pipelines.index(_ASKING, lambda pipeline: map(str, self._repository_of_pipeline(pipeline)))

    def sources(self) -> Sequence[Source]:
        """Return the sources of keys: promotions that wait for a merge, and Pipelines with `statusOnOthers`."""
        waits = status_changed("state") & either(lambda step: bool(list(self._repository_of_step(step))))
        asks = generation_changed | status_changed("wokenAt", "otherChanges")
        return (
            Watch(self._steps, self._repository_of_step, when=waits),
            Watch(self._pipelines, self._repository_of_pipeline, when=asks),
        )

    async def reconcile(self, key: Key) -> Result:
        now = self._clock.monotonic()
        self._forget(key, now)
        waiting = self._steps.by_index(_BY_REPOSITORY, str(key))
        group = self._group(key)
        if not waiting or self._interval is None:
            self._marks.pop(key, None)
        if not group.pipelines and (not waiting or self._interval is None):
            return Result()
        asked = _asked(group)
        looked = self._looked.get(key)
        due = now if looked is None else _due(looked, asked)
        if due is None:
            return Result()
        if due > now:
            return Result(requeue_after=timedelta(seconds=due - now))
        more = False
        failure = None
        try:
            async with asyncio.timeout(POLL_DEADLINE):
                more = await self._look(key, waiting, group)
        except Queued:
            more = True
        except Exception as error:
            failure = classified(error)
            more = failure.passing and bool(group.pipelines)
            log.warning("open pull requests could not be looked at", repository=str(key), error=failure.message)
        self._tell(key, group, failure)
        interval = _shorter(self._interval, max(AGAIN, (failure and failure.retry_after) or 0.0) if more else None)
        self._looked[key] = _Looked(now, asked, interval)
        return Result(requeue_after=timedelta(seconds=interval) if interval is not None else None)

    async def _look(self, key: Key, waiting: Iterable[JsonObject], group: Group) -> bool:
        steps = []
        for raw in waiting:
            with suppress(ValidationError):
                steps.append(PromotionStep.model_validate(raw))
        remote, heads = await self._listed([*steps, *map(_step_of, group.pipelines)])
        try:
            if self._interval is not None:
                await self._look_for_merges(key, remote, steps, heads)
            return bool(group.pipelines) and await self._others.tell(remote, group, heads)
        finally:
            remote.release()

    async def _listed(self, steps: Sequence[PromotionStep]) -> tuple[Remote, Sequence[OpenHead]]:
        """Open the repository and list its pull requests, with the first credential that permits both."""
        first: Exception | None = None
        by_secret: dict[SecretReference | None, PromotionStep] = {}
        for step in steps:
            by_secret.setdefault(step.spec.git.secret_ref, step)
        for step in by_secret.values():
            try:
                remote = await self._remotes.open(step)
            except Queued:
                raise
            except Exception as error:
                first = first or error
                continue
            try:
                return remote, await remote.proposals.heads()
            except BaseException as error:
                remote.release()
                if not isinstance(error, Exception):
                    raise
                first = first or error
        assert first is not None  # noqa: S101 - there is a step, and each has returned or failed
        raise first

    async def _look_for_merges(
        self, key: Key, remote: Remote, steps: Sequence[PromotionStep], heads: Sequence[OpenHead]
    ) -> None:
        commits = {head.number: head.commit for head in heads}
        bases = {branch: await _head(remote, branch) for branch in {step.spec.git.branch for step in steps}}
        before = self._marks.get(key, {})
        self._marks[key] = {}
        for step in steps:
            name = Key(step.metadata.namespace, step.metadata.name)
            noted = step.status.pull_request
            if noted is None:
                continue
            mark = self._marks[key][name] = (commits.get(noted.number), bases[step.spec.git.branch])
            if noted.number not in commits or before.get(name) != mark:
                self._merges.push(name)

    def _group(self, key: Key) -> Group:
        """Return the Pipelines with `statusOnOthers` that this agent serves, if their gates have been asked.

        One agent serves all Pipelines of a group, because two agents would write contradicting statuses.
        """
        found = []
        for raw in sorted(self._pipelines.by_index(_ASKING, str(key)), key=lambda one: str(one["metadata"]["name"])):
            with suppress(ValidationError):
                pipeline = Pipeline.model_validate(raw)
                found += [pipeline] if pipeline.spec.environments else []
        served = [environment.shard for pipeline in found for environment in pipeline.spec.environments][:1]
        if served != [self._shard] or answers(found, now=self._clock.now()) is None:
            return Group(key, (), ())
        return Group(key, found, self._steps.by_index(_BY_REPOSITORY, str(key)))

    def _tell(self, key: Key, group: Group, failure: Failure | None) -> None:
        """Write one Event to each Pipeline about a failure to write statuses; a repeated failure writes none."""
        message = failure.message if failure is not None and not failure.passing else ""
        if message and self._told.get(key) != message:
            for pipeline in group.pipelines:
                current = self._pipelines.get(pipeline.metadata.namespace, pipeline.metadata.name)
                if current is not None:
                    self._recorder.event(current, type="Warning", reason="StatusesNotWritten", note=message)
        if failure is None or message:
            self._told.pop(key, None)
        if message:
            self._told[key] = message

    def _forget(self, key: Key, now: float) -> None:
        """Drop repositories whose next look was due and was not asked for."""
        if len(self._looked) > 2 * len(self._marks) + 64:
            self._looked = {
                known: looked
                for known, looked in self._looked.items()
                if known == key or self._waits(known) or looked.at + (looked.interval or PAUSE) > now
            }
            self._told = {known: message for known, message in self._told.items() if known in self._looked}

    def _waits(self, key: Key) -> bool:
        index = str(key)
        return bool(self._pipelines.by_index(_ASKING, index) or self._steps.by_index(_BY_REPOSITORY, index))

    def _repository_of_step(self, step: JsonObject) -> Iterable[Key]:
        if (step.get("status") or {}).get("state") == "WaitingForMerge":
            yield from self._repository(step["metadata"]["namespace"], step["spec"]["git"])

    def _repository_of_pipeline(self, pipeline: JsonObject) -> Iterable[Key]:
        git = pipeline["spec"]["git"]
        abilities = self._providers.get(git.get("provider"))
        if git.get("statusOnOthers") and abilities is not None and abilities.statuses:
            yield from self._repository(pipeline["metadata"]["namespace"], git)

    def _repository(self, namespace: str, git: JsonObject) -> Iterable[Key]:
        if git.get("provider") in self._providers:
            with suppress(InvalidRepositoryURL):
                parts = (git["provider"], repository_key(git["url"]))
                yield Key(namespace, f"repository-{short_hash(' '.join(parts))}")


def _asked(group: Group) -> str:
    """Return the cause of a look as a text; a different text makes another look due."""
    return repr(
        [
            (one.metadata.uid, one.metadata.generation, one.status.woken_at, one.status.other_changes)
            for one in group.pipelines
        ]
    )


def _due(looked: _Looked, asked: str) -> float | None:
    """Return the monotonic time of the next look; None if only a change makes one due."""
    regular = None if looked.interval is None else looked.at + looked.interval
    return regular if looked.asked == asked else _shorter(regular, looked.at + PAUSE)


def _shorter(one: float | None, other: float | None) -> float | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _step_of(pipeline: Pipeline) -> PromotionStep:
    return steps_of(pipeline, [pipeline.spec.environments[0].name])[0]


async def _head(remote: Remote, branch: str) -> str | None:
    try:
        return (await remote.repository.head(branch)).commit
    except BranchNotFound:
        return None
