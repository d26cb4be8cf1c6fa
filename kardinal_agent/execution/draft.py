"""The status of a promotion during a run: as it is on the server, and as a draft that every action changes.

The Events of every change are recorded: at once if only the draft changes, because the effect of a step has happened
even if the status is never written, and after the write if the status itself is the news.
"""

from __future__ import annotations

import structlog

from kardinal.clock import Clock
from kardinal.kube import NotFound
from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal.runtime import StatusWriter
from kardinal_agent.execution.events import PromotionEvents, Transition
from kardinal_agent.execution.status import ready
from kardinal_agent.steps import Announcement

__all__ = ["StatusDraft", "StepDeleted"]

log = structlog.get_logger(__name__)


class StepDeleted(Exception):
    """Raised when the PromotionStep is gone or being deleted: the run ends."""


class StatusDraft:
    """The status of one PromotionStep; `raw` is the object that was read, `step` and `bundle` are its models."""

    def __init__(
        self,
        raw: JsonObject,
        step: PromotionStep,
        bundle: Bundle,
        *,
        writer: StatusWriter,
        events: PromotionEvents,
        clock: Clock,
    ) -> None:
        self.object = raw
        """The PromotionStep as it was read, or as the last write of this run has returned it."""
        self._step = step
        self._bundle = bundle
        self._writer = writer
        self._events = events
        self._clock = clock
        self.written = step.status
        """The status as it was read, or as this run has written it last."""
        self.status = step.status

    def move(self, status: PromotionStepStatus, announcement: Announcement | None = None) -> None:
        """Change the draft to `status`, which a later write includes."""
        before = self.status
        self.status = status
        self._report(before, announcement)

    async def save(self, status: PromotionStepStatus, *, reason: str | None = None) -> None:
        """Change the draft to `status` and write it; `reason` of the condition Ready defaults to the state."""
        before = self.status
        self.status = status
        await self.write(reason=reason)
        self._report(before)

    async def write(self, *, reason: str | None = None) -> None:
        """Write the draft to the server, unless the server has it already. Raises `StepDeleted`."""
        if self.status == self.written:
            return
        now = self._clock.now()
        generation = self._step.metadata.generation
        self.status = ready(self.status, reason=reason, generation=generation, now=now)
        try:
            written = await self._writer.write(PROMOTION_STEP, self.object, self.status.to_json())
        except NotFound:
            raise StepDeleted from None
        self.object = written or self.object
        if self.status.state != self.written.state:
            log.info(
                "promotion changed its state",
                state=self.status.state,
                before=self.written.state,
                environment=self._step.spec.environment,
                bundle=self._bundle.metadata.name,
                reason=self.status.message,
            )
        self.written = self.status

    def untold_landing(self) -> str | None:
        """Return the commit that has landed and is in no written status, because the PromotionStep is gone."""
        told = self.written.promoted_at is not None or self.status.promoted_at is None
        return None if told else self.status.commit

    def _report(self, before: PromotionStepStatus, announcement: Announcement | None = None) -> None:
        transition = Transition(
            step=self._step,
            bundle=self._bundle,
            before=before,
            after=self.status,
            now=self._clock.now(),
            announcement=announcement,
        )
        self._events.record(self.object, transition)
