"""Noting the proposal of a promotion before it is made, so that no order of deletion leaves it behind.

A PromotionStep gets its finalizer first, then its status the branch, and only then is anything pushed: a process that
dies in between leaves a note of what is not there, never a branch without a note.
"""

from __future__ import annotations

from kardinal.api import PROMOTION_STEP
from kardinal.api.names import FINALIZER
from kardinal.api.promotion_step import Proposal
from kardinal.kube import Client
from kardinal.runtime.finalizers import add_finalizer, is_being_deleted
from kardinal.steps.declaration import Role
from kardinal_agent.execution.draft import StatusDraft, StepDeleted
from kardinal_agent.steps import StepContext

__all__ = ["Proposals"]

_CONCERNED = frozenset([Role.PUSH, Role.PROPOSE, Role.AWAIT, Role.MERGE])


class Proposals:
    """Puts the finalizer on the PromotionSteps of one agent."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def note(self, draft: StatusDraft, context: StepContext) -> None:
        """Before the effect of a step: have finalizer and status say that there may be a proposal.

        The note is in the draft, to be written before the effect. Raises `StepDeleted`.
        """
        if not context.proposes or context.planned.declaration.role not in _CONCERNED:
            return
        obj = await add_finalizer(self._client, PROMOTION_STEP, draft.object, FINALIZER)
        if obj is None:
            raise StepDeleted
        draft.object = obj
        if draft.status.proposal is None:
            proposal = Proposal(branch=context.branch, bundle_uid=context.bundle.metadata.uid)
            draft.move(draft.status.model_copy(update={"proposal": proposal}))

    def check(self, draft: StatusDraft) -> None:
        """Raise `StepDeleted` where the last write has found that the PromotionStep is being deleted."""
        if is_being_deleted(draft.object):
            raise StepDeleted
