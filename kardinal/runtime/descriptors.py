"""Descriptors of the process: as many as it may have, and a part of them that no listener takes."""

from __future__ import annotations

import resource
from contextlib import suppress

__all__ = ["raise_limit", "share"]

MOST = 65_536
"""Descriptors that the limit is raised to, where it may be."""
RESERVED = 256
"""Descriptors for requests to the API server, Git, renderers, and what is accepted at once before it is counted."""
LEAST = 33
"""Connections of a listener in a process that has hardly any descriptors."""


def raise_limit() -> None:
    """Raise the soft limit of descriptors as far as the hard one allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    # macOS has a further limit, of the kernel, which is not told here.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def share(most: int) -> int:
    """Return how many of `most` connections a listener has room for, when others have as many."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    return min(most, max(LEAST, (soft - RESERVED) // 3))
