"""Wake the promotions and Pipelines that a delivery is for: one write, however many equal deliveries arrive.

A promotion that waits for its pull request gets an annotation. A Pipeline with `git.statusOnOthers` gets
`status.wokenAt`, because it may have no promotion at that time, and the controller may write only its status. Both
reach agents in any cluster and only mean that the agent should look again. So a wake may be lost, late or wrong: the
state is read from the host. An object is written at most once in its interval, and once more after the last delivery.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from kardinal.clock import Clock, Timer
from kardinal.kube import Client, KubeError, NotFound, PatchType
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.objects.conditions import format_time
from kardinal.promotion.api.names import ANNOTATION_WOKEN, FIELD_MANAGER_CONTROLLER
from kardinal.promotion.kinds import PIPELINE, PROMOTION_STEP
from kardinal.runtime.informer import Informer
from kardinal.runtime.logging import get_logger

__all__ = ["Wakes"]

INTERVALS = {PROMOTION_STEP: 1.0, PIPELINE: 10.0}
"""The minimum seconds between two writes; longer for Pipelines, because strangers may open pull requests."""

_PIPELINE = "waiting of pipeline"

_log = get_logger(__name__)


class _Sleeper(NamedTuple):
    resource: ResourceType
    key: Key


class Wakes:
    """Wake PromotionSteps that wait for a merge, and Pipelines with `git.statusOnOthers`."""

    def __init__(self, client: Client, steps: Informer, *, clock: Clock) -> None:
        self._client = client
        self._steps = steps
        self._clock = clock
        self._last: dict[_Sleeper, float] = {}
        self._due: dict[_Sleeper, Timer] = {}
        self._writing: set[asyncio.Task[None]] = set()
        steps.index(_PIPELINE, _waiting_of_pipeline)

    async def stop(self) -> None:
        """Cancel writes that are not done; the agents find the changes when they poll."""
        for timer in self._due.values():
            timer.cancel()
        self._due.clear()
        writing = list(self._writing)
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)

    def wake(self, pipeline: Key, *, number: int | None, branch: str, checked: Collection[str]) -> None:
        """Wake the promotions of a Pipeline that wait for this pull request, or whose branch or base is `branch`.

        `checked` are the commit and branches of a finished check; promotions with such a commit or branch are woken as
        well.
        """
        for step in self._steps.by_index(_PIPELINE, str(pipeline)):
            if _concerns(step, number, branch, checked):
                self._schedule(_Sleeper(PROMOTION_STEP, key_of(step)))

    def wake_pipeline(self, pipeline: Key) -> None:
        """Wake a Pipeline, for example because a pull request was opened."""
        self._schedule(_Sleeper(PIPELINE, pipeline))

    def _schedule(self, sleeper: _Sleeper) -> None:
        if sleeper in self._due:
            return
        now = self._clock.monotonic()
        self._last = {known: at for known, at in self._last.items() if at + INTERVALS[known.resource] > now}
        if sleeper not in self._last:
            self._start(sleeper)
            return
        # The reader of the current write may not have seen the newest change.
        wait = self._last[sleeper] + INTERVALS[sleeper.resource] - now
        self._due[sleeper] = self._clock.call_later(wait, lambda: self._start(sleeper))

    def _start(self, sleeper: _Sleeper) -> None:
        self._due.pop(sleeper, None)
        self._last[sleeper] = self._clock.monotonic()
        task = asyncio.get_running_loop().create_task(self._write(sleeper), name=f"wake {sleeper.key}")
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, sleeper: _Sleeper) -> None:
        resource = sleeper.resource
        key = sleeper.key
        now = format_time(self._clock.now())
        try:
            if resource is PIPELINE:
                body: JsonObject = {"status": {"wokenAt": now}}
                await self._client.patch(
                    PIPELINE, key.name, key.namespace, body, kind=PatchType.MERGE, subresource="status"
                )
                return
            body = {"metadata": {"annotations": {ANNOTATION_WOKEN: now}}}
            await self._client.patch(
                PROMOTION_STEP, key.name, key.namespace, body, field_manager=FIELD_MANAGER_CONTROLLER
            )
        except NotFound:
            return
        except KubeError as error:
            name = type(error).__name__
            _log.warning("an object could not be woken; its agent polls", kind=resource.kind, key=str(key), error=name)


def _waiting_of_pipeline(step: JsonObject) -> Iterable[str]:
    if (step.get("status") or {}).get("state") == "WaitingForMerge":
        yield str(Key(step["metadata"]["namespace"], step["spec"]["pipeline"]))


def _concerns(step: JsonObject, number: int | None, branch: str, checked: Collection[str]) -> bool:
    noted: dict[str, Any] = step["status"].get("pullRequest") or {}
    if number is not None and number == noted.get("number"):
        return True
    if noted.get("branch") in checked or step["status"].get("commit") in checked:
        return True
    return bool(branch) and branch in (noted.get("branch"), step["spec"]["git"].get("branch"))
