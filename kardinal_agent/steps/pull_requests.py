"""Shared by the steps that open, await and withdraw a pull request."""

from __future__ import annotations

from kardinal.scm import PullRequest, PullRequests
from kardinal_agent.steps.base import StepContext

__all__ = ["AGENT", "own_pull_request", "waiting_message"]

AGENT = "kardinal"
"""The name under which pull requests without review are merged, and superseded ones closed."""


def waiting_message(url: str) -> str:
    """Return what a promotion says while its pull request is open."""
    return f"waits for {url} to be merged"


async def own_pull_request(context: StepContext, pull_requests: PullRequests) -> PullRequest | None:
    """Return the newest pull request of the branch if it was opened since this promotion started.

    It is this promotion's own, whatever has become of it: the process may have died between opening it and noting its
    number, and a person may have merged or closed it meanwhile. An older one belongs to an earlier Bundle of the name.
    """
    found = await pull_requests.find(context.branch, base=context.target)
    started = context.status.started_at
    return found if found is not None and started is not None and found.created_at >= started else None
