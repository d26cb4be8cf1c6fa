"""Ask the host of an ended pull request, once, for the people who approved or closed it.

No decision depends on the answer. If the host does not answer in time, the names are left out, and the promotion goes
on.
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from kardinal.objects.errors import KardinalError
from kardinal.objects.text import cut, printable
from kardinal.promotion.api.evidence import MAX_APPROVERS
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.base import StepContext

__all__ = ["approvers", "closer"]

_DEADLINE = 10.0
"""Seconds of real time for the answer of the host."""

_NAME_LIMIT = 64
"""The most characters of a name; names of users at hosts are shorter."""

log = structlog.get_logger(__name__)


async def approvers(context: StepContext, remote: Remote, number: int) -> dict[str, Any]:
    """Return the output with the people who approved a pull request; empty if the environment needs no review."""
    if context.step.spec.approval != "pr-review" or context.merges_itself:
        return {}
    try:
        async with asyncio.timeout(_DEADLINE):
            found = await remote.proposals.approvals(number)
    except (KardinalError, TimeoutError) as error:
        log.warning("the host did not say who approved", pull_request=number, error=str(error))
        return {}
    names = [cut(approval.by, _NAME_LIMIT) for approval in found[:MAX_APPROVERS]]
    return {"approvedBy": names} if names else {}


async def closer(remote: Remote, number: int) -> str:
    """Return the name of the person who closed a pull request; empty if the host does not report it."""
    try:
        async with asyncio.timeout(_DEADLINE):
            name = await remote.proposals.closed_by(number)
    except (KardinalError, TimeoutError) as error:
        log.warning("the host did not say who closed", pull_request=number, error=str(error))
        return ""
    return cut(printable(name or ""), _NAME_LIMIT)
