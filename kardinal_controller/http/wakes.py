"""Wake promotions whose pull request a host says has changed: one annotation, however many deliveries say so.

The annotation reaches agents wherever they are. It says nothing but that another look is worth it, so it may be lost,
late or false: what is true is read from the host. A PromotionStep is written to at most once in `INTERVAL` seconds, and
once more after the last delivery.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from kardinal.api import PROMOTION_STEP
from kardinal.api.names import ANNOTATION_WOKEN, FIELD_MANAGER_CONTROLLER
from kardinal.kube import Client, KubeError, NotFound
from kardinal.objects import JsonObject, Key, key_of
from kardinal.objects.conditions import format_time
from kardinal.runtime.clock import Clock, Timer
from kardinal.runtime.informer import Informer
from kardinal.runtime.logging import get_logger

__all__ = ["Wakes"]

INTERVAL = 1.0

_PIPELINE = "waiting of pipeline"

_log = get_logger(__name__)


class Wakes:
    """Writes annotations on PromotionSteps that wait for a merge."""

    def __init__(self, client: Client, steps: Informer, *, clock: Clock) -> None:
        self._client = client
        self._steps = steps
        self._clock = clock
        self._last: dict[Key, float] = {}
        self._due: dict[Key, Timer] = {}
        self._writing: set[asyncio.Task[None]] = set()
        steps.index(_PIPELINE, _waiting_of_pipeline)

    async def stop(self) -> None:
        """Give up what is not written yet; the poll of the agents finds it."""
        for timer in self._due.values():
            timer.cancel()
        self._due.clear()
        writing = list(self._writing)
        for task in writing:
            task.cancel()
        await asyncio.gather(*writing, return_exceptions=True)

    def wake(self, pipeline: Key, *, number: int | None, branch: str) -> None:
        """Wake the promotions of a Pipeline that wait for this pull request, or whose branch or base this is."""
        for step in self._steps.by_index(_PIPELINE, str(pipeline)):
            if _concerns(step, number, branch):
                self._schedule(key_of(step))

    def _schedule(self, key: Key) -> None:
        if key in self._due:
            return
        now = self._clock.monotonic()
        self._last = {known: at for known, at in self._last.items() if at + INTERVAL > now}
        if key not in self._last:
            self._start(key)
            return
        # What comes while it is being written may not have been seen by who is woken.
        self._due[key] = self._clock.call_later(self._last[key] + INTERVAL - now, lambda: self._start(key))

    def _start(self, key: Key) -> None:
        self._due.pop(key, None)
        self._last[key] = self._clock.monotonic()
        task = asyncio.get_running_loop().create_task(self._write(key), name=f"wake {key}")
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, key: Key) -> None:
        body = {"metadata": {"annotations": {ANNOTATION_WOKEN: format_time(self._clock.now())}}}
        try:
            await self._client.patch(
                PROMOTION_STEP, key.name, key.namespace, body, field_manager=FIELD_MANAGER_CONTROLLER
            )
        except NotFound:
            return
        except KubeError as error:
            _log.warning("a promotion could not be woken; its agent polls", step=str(key), error=type(error).__name__)


def _waiting_of_pipeline(step: JsonObject) -> Iterable[str]:
    if (step.get("status") or {}).get("state") == "WaitingForMerge":
        yield str(Key(step["metadata"]["namespace"], step["spec"]["pipeline"]))


def _concerns(step: JsonObject, number: int | None, branch: str) -> bool:
    noted: dict[str, Any] = step["status"].get("pullRequest") or {}
    if number is not None and number == noted.get("number"):
        return True
    return bool(branch) and branch in (noted.get("branch"), step["spec"]["git"].get("branch"))
