"""Bring a proposal up to date with its base where the host merges no other: one at a time for each base.

Each update begins the checks of the host anew, and each merge leaves the other proposals behind again. So the one whose
turn it is gets the time to be merged before the next one is updated: a dozen proposals cost a dozen runs of the checks
and not a hundred. The host does it, by a merge or a rebase, because it knows then which approvals still count.
"""

from __future__ import annotations

from datetime import timedelta

from kardinal.git import MergeConflict
from kardinal.scm import MergeBlocked
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.base import StepContext, Waiting
from kardinal_agent.steps.upkeep import Kept

__all__ = ["bring_up_to_date", "is_behind"]


def is_behind(kept: Kept) -> bool:
    """Return whether the host says that the commit which is proposed now lacks commits of the base."""
    return bool(kept.found.behind) and kept.head == kept.found.head_commit


async def bring_up_to_date(context: StepContext, remote: Remote, kept: Kept) -> Waiting:
    """Have the host do it if it is the turn of this proposal, and wait for what comes of it."""
    found, memory = kept.found, context.host_memory
    if memory.take_turn((remote.repository.url, found.base), context.key):
        said = "it is being brought up to date"
        try:
            await remote.proposals.bring_up_to_date(found.number, expected_head=kept.head)
        except MergeConflict as error:
            # The base has moved since the proposal was compared with it: the next attempt does that again.
            error.transient = True
            raise
        except MergeBlocked as error:
            said = str(error)
    else:
        said = "another one is brought up to date and merged first"
    delay = memory.merge_delay(context.key)
    return Waiting(
        f"{found.url} is behind {found.base}, and the host merges it only up to date: {said}",
        until=context.now + min(delay, kept.again or timedelta.max),
        subscribe=remote.proposals.subscribe,
        update=kept.update,
    )
