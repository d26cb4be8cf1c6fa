"""Recognise a refusal of a host that has the archived repository as its reason.

Hosts refuse a push, a new pull request and a merge in an archived repository as they refuse a token without the right,
and Git reports only the status 403. So the host is asked once for each refusal. The repository can be unarchived at any
time: the promotion waits for that, because another token would not help.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kardinal.git import AuthenticationFailed, PushRejected
from kardinal.objects.errors import KardinalError
from kardinal.scm import AccessDenied, HostError, RequestRefused
from kardinal_agent.remotes import Queued, Remote

__all__ = ["RepositoryArchived", "unless_archived"]

_DEADLINE = 10.0
"""Seconds of real time that a host has for the answer."""

T = TypeVar("T")


class RepositoryArchived(HostError):
    """The repository is archived, so nothing may be written to it; a person can unarchive it at any time."""

    field = "git.url"
    transient = True
    blocked = True


async def unless_archived(action: Awaitable[T], remote: Callable[[], Awaitable[Remote]]) -> T:
    """Return the result of an action; raises `RepositoryArchived` if that is the reason of a refusal."""
    try:
        return await action
    except (AuthenticationFailed, PushRejected, AccessDenied, RequestRefused) as error:
        url = await _archived(remote)
        if not url:
            raise
        raise RepositoryArchived(
            f"{url} is archived at its host, which takes no changes", remedy="Unarchive it, or name another repository"
        ) from error


async def _archived(remote: Callable[[], Awaitable[Remote]]) -> str:
    """Return the address of the repository if its host says that it is archived."""
    try:
        async with asyncio.timeout(_DEADLINE):
            opened = await remote()
            if opened.pull_requests is None or not (await opened.pull_requests.access()).archived:
                return ""
            return opened.repository.url
    except (KardinalError, Queued, TimeoutError):
        return ""
