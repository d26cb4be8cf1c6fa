"""The status of a promotion while a run works on it: what stands on the server, and the draft that every action moves.

Every move is handed to the observer: at once where the draft only moves, because what a step did has happened whatever
becomes of the note of it, and after the write where the status itself is the news.
"""

from __future__ import annotations

from kardinal.api import PROMOTION_STEP, Bundle, PromotionStep
from kardinal.api.promotion_step import PromotionStepStatus
from kardinal.kube import NotFound
from kardinal.objects import JsonObject
from kardinal.runtime import Clock, StatusWriter
from kardinal_agent.execution import transitions
from kardinal_agent.execution.observer import PromotionObserver
from kardinal_agent.execution.transitions import Transition
from kardinal_agent.steps import Announcement

__all__ = ["StatusDraft", "StepDeleted"]


class StepDeleted(Exception):
    """The PromotionStep is gone or being deleted: nothing more is done for it."""


class StatusDraft:
    """The status of one PromotionStep, given as the object that was read and as its models."""

    def __init__(
        self,
        raw: JsonObject,
        step: PromotionStep,
        bundle: Bundle,
        *,
        writer: StatusWriter,
        observer: PromotionObserver,
        clock: Clock,
    ) -> None:
        self.object = raw
        """The PromotionStep, as far as this run knows."""
        self._step = step
        self._bundle = bundle
        self._writer = writer
        self._observer = observer
        self._clock = clock
        self.written = step.status
        """The status on the server, as far as this run knows."""
        self.status = step.status

    def move(self, status: PromotionStepStatus, announcement: Announcement | None = None) -> None:
        """Move the draft to `status`, which some later write takes along."""
        before, self.status = self.status, status
        self._report(before, announcement)

    async def save(self, status: PromotionStepStatus, *, reason: str | None = None) -> None:
        """Move the draft to `status` and write it; `reason` is that of the condition Ready, by default the state."""
        before, self.status = self.status, status
        await self.write(reason=reason)
        self._report(before)

    async def write(self, *, reason: str | None = None) -> None:
        """Make the server's status that of the draft; nothing is sent where it already is. Raises `StepDeleted`."""
        if self.status == self.written:
            return
        now, generation = self._clock.now(), self._step.metadata.generation
        self.status = transitions.ready(self.status, reason=reason, generation=generation, now=now)
        try:
            written = await self._writer.write(PROMOTION_STEP, self.object, self.status.to_json())
        except NotFound:
            raise StepDeleted from None
        self.object = written or self.object
        self.written = self.status

    def untold_landing(self) -> str | None:
        """Return the commit that has landed and that no status says, because the PromotionStep is gone."""
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
        self._observer.observe(self.object, transition)
