"""Write a condition to each Pipeline: whether the agent that serves it can promote to its repository.

The condition is `RepositoryReady`; the agent of a shard writes `RepositoryReady-<shard>`. A repository is checked when
its Pipeline changes, after a promotion has failed, and when a promotion finds that its Secret has changed. A ready
repository is never polled. A repository that is not ready is checked again after a delay, because it is mended outside
of the cluster, where no event is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from kardinal.clock import Clock
from kardinal.models.base import Condition
from kardinal.objects import JsonObject, Key, key_of
from kardinal.objects.conditions import MESSAGE_LIMIT
from kardinal.objects.text import cut
from kardinal.promotion.api import Pipeline, set_condition
from kardinal.promotion.kinds import PIPELINE
from kardinal.promotion.steps.registry import Registry
from kardinal.promotion.steps.sequence import planned
from kardinal.promotion.translation import Features
from kardinal.promotion.translation.translate import validate
from kardinal.rendering.programs import NOT_ISOLATED, ProgramRenderer
from kardinal.rendering.renderer import RenderingUnavailable
from kardinal.runtime import Backoff, Channel, EventRecorder, Informer, KeyMemory, Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import deleted, generation_changed, status_changed
from kardinal_agent.errors import classified
from kardinal_agent.pipeline_steps import steps_of
from kardinal_agent.readiness.access import check_access
from kardinal_agent.readiness.check import Promotions, check_inputs, check_repository
from kardinal_agent.remotes import Queued, Remotes
from kardinal_agent.secret_memory import SecretVersions

__all__ = ["ReadinessReconciler", "condition_type"]

RETRY = Backoff(base=5.0, cap=600.0, jitter=0.2)
"""The delays between checks of a repository that is not ready, in seconds."""
_QUEUED = timedelta(seconds=30)
_DEADLINE = 70.0
_INPUTS_DEADLINE = 30.0
"""Seconds for one check, and for its inputs; a transfer that takes longer continues, and the next check shares it."""
_BY_CREDENTIALS = "credentials"
_READY = "the repository answers, may be written to, and has every path"

log = structlog.get_logger(__name__)


def condition_type(shard: str | None) -> str:
    """Return the type of the condition that the agent of a shard writes: `RepositoryReady-eu`, for example."""
    return f"RepositoryReady-{shard}" if shard else "RepositoryReady"


@dataclass(frozen=True, slots=True)
class _Found:
    """The result for one generation of a Pipeline until it is written: reason and message of the problem, if any."""

    pipeline: tuple[str, int]
    problem: tuple[str, str] | None


class ReadinessReconciler:
    """Writes the condition of one agent to every Pipeline that has an environment on its shard."""

    def __init__(
        self,
        pipelines: Informer,
        steps: Informer,
        *,
        shard: str | None,
        registry: Registry,
        remotes: Remotes,
        renderer: ProgramRenderer,
        versions: SecretVersions,
        status: StatusWriter,
        recorder: EventRecorder,
        clock: Clock,
    ) -> None:
        self._pipelines = pipelines
        self._steps = steps
        self._shard = shard
        self._type = condition_type(shard)
        self._registry = registry
        self._remotes = remotes
        self._renderer = renderer
        self._status = status
        self._recorder = recorder
        self._clock = clock
        self.memory = KeyMemory(pipelines)
        self._failures: dict[Key, int] = self.memory.map()
        self._doubted = self.memory.set()
        self._found: dict[Key, _Found] = self.memory.map()
        self._secrets = Channel()
        pipelines.index(_BY_CREDENTIALS, lambda pipeline: map(str, _secrets_of(pipeline)))
        versions.subscribe(self._secret_changed)

    def sources(self) -> Sequence[Source]:
        return [
            Watch(self._pipelines, when=generation_changed),
            Watch(self._steps, self._pipeline_of, when=status_changed("state", "retry") & ~deleted),
            self._secrets,
        ]

    async def reconcile(self, key: Key) -> Result:
        current = self._pipelines.get(*key)
        if current is None or "deletionTimestamp" in current["metadata"]:
            return Result()
        pipeline = Pipeline.model_validate(current)
        served = [environment.name for environment in pipeline.spec.environments if environment.shard == self._shard]
        condition = pipeline.status.condition(self._type)
        if not served or validate(pipeline, features=Features(registry=self._registry, allow_local_repositories=True)):
            self.memory.drop(key)
            return await self._write(current, pipeline, None) if condition is not None else Result()
        known = condition is not None and condition.observed_generation == pipeline.metadata.generation
        pending = key in self._doubted or key in self._found
        promotions = [(step, planned(step.spec.steps, self._registry.steps)) for step in steps_of(pipeline, served)]
        ready = await self._ready(promotions)
        if (
            known
            and condition is not None
            and condition.status == "True"
            and condition.message == ready
            and not pending
        ):
            return Result()
        found = self._found.get(key)
        if found is None or found.pipeline != _version(pipeline):
            self._doubted.discard(key)
            try:
                found = self._found[key] = _Found(_version(pipeline), await self._look(pipeline, promotions))
            except Queued:
                self._doubted.add(key)
                return Result(requeue_after=_QUEUED)
        problem = found.problem
        # The write is refused if another program was faster; the result is kept for the next run.
        await self._write(current, pipeline, self._condition(pipeline, problem or ("", ready)))
        del self._found[key]
        if problem is None:
            self._failures.pop(key, None)
            return Result()
        if not known or (condition is not None and condition.status == "True"):
            self._recorder.event(current, type="Warning", reason="RepositoryNotReady", note=problem[1])
        failures = self._failures[key] = self._failures.get(key, -1) + 1
        return Result(requeue_after=timedelta(seconds=RETRY.delay(failures)))

    async def _ready(self, promotions: Promotions) -> str:
        """Return the message of a ready repository, with the missing isolation of renderers, if any.

        It is empty if isolation is required and missing: then the repository is not ready.
        """
        missing = await self._missing_walls(promotions)
        if missing and self._renderer.requires_isolation:
            return ""
        return cut(f"{_READY}; {missing}" if missing else _READY, MESSAGE_LIMIT)

    async def _missing_walls(self, promotions: Promotions) -> str:
        renders = any(one.declaration.renders for _, sequence in promotions for one in sequence)
        return await asyncio.to_thread(self._renderer.missing_walls) if renders else ""

    async def _look(self, pipeline: Pipeline, promotions: Promotions) -> tuple[str, str] | None:
        """Return reason and message of the first problem; None if promotions can land."""
        if self._renderer.requires_isolation and (missing := await self._missing_walls(promotions)):
            return RenderingUnavailable.__name__, f"{missing}. {NOT_ISOLATED}"
        try:
            remote = await self._remotes.open(promotions[0][0])
            try:
                async with asyncio.timeout(_DEADLINE):
                    # Asked before Git, which reports of an archived repository only that the push is denied.
                    await check_access(remote, promotions, statuses=pipeline.spec.git.status_on_others)
                    await check_repository(remote.repository, promotions)
            finally:
                remote.release()
            async with asyncio.timeout(_INPUTS_DEADLINE):
                await check_inputs(self._remotes, promotions)
        except Queued:
            raise
        except Exception as error:
            failure = classified(error)
            if not failure.known:
                name = pipeline.metadata.name
                log.error("a repository could not be looked at, by a bug", pipeline=name, exc_info=error)
            return failure.reason, failure.message
        return None

    def _condition(self, pipeline: Pipeline, found: tuple[str, str]) -> tuple[Condition, ...]:
        """Return all conditions with ours set; `found` is reason and message, with an empty reason if ready."""
        reason, message = found
        return set_condition(
            pipeline.status.conditions,
            self._type,
            "False" if reason else "True",
            reason=reason or "Ready",
            message=cut(message, MESSAGE_LIMIT),
            now=self._clock.now(),
            observed_generation=pipeline.metadata.generation or None,
        )

    async def _write(self, current: JsonObject, pipeline: Pipeline, conditions: tuple[Condition, ...] | None) -> Result:
        """Write the conditions; None removes ours."""
        if conditions is None:
            conditions = tuple(entry for entry in pipeline.status.conditions if entry.type != self._type)
        status = pipeline.status.model_copy(update={"conditions": conditions})
        await self._status.write(PIPELINE, current, status.to_json(), shared=True)
        return Result()

    def _pipeline_of(self, step: JsonObject) -> Iterable[Key]:
        """Map a PromotionStep that has failed, or is being retried, to its Pipeline."""
        status = step.get("status") or {}
        metadata = step["metadata"]
        retry = status.get("retry") or {}
        if status.get("state") != "Failed" and retry.get("attempts") != 1:
            return []
        key = Key(metadata["namespace"], step["spec"]["pipeline"])
        self._doubted.add(key)
        return [key]

    def _secret_changed(self, secret: Key) -> None:
        """Check the Pipelines again that name a Secret, which a promotion has found changed."""
        for pipeline in self._pipelines.by_index(_BY_CREDENTIALS, str(secret)):
            key = key_of(pipeline)
            self._doubted.add(key)
            self._secrets.push(key)


def _secrets_of(pipeline: JsonObject) -> Iterator[Key]:
    """Yield the keys of the Secrets with which a Pipeline reads repositories."""
    namespace = pipeline["metadata"]["namespace"]
    spec = pipeline.get("spec") or {}
    holders = [spec.get("git")]
    for environment in spec.get("environments") or ():
        holders.append((environment.get("update") or {}).get("config"))
        holders += (step.get("config") for step in environment.get("steps") or ())
    for holder in holders:
        reference = (holder or {}).get("secretRef")
        if isinstance(reference, dict) and isinstance(reference.get("name"), str):
            yield Key(namespace, reference["name"])


def _version(pipeline: Pipeline) -> tuple[str, int]:
    return pipeline.metadata.uid, pipeline.metadata.generation
