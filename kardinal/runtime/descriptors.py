"""File descriptors of the process: raise their limit, and reserve a part that no listener uses."""

from __future__ import annotations

import resource
from contextlib import suppress

__all__ = ["raise_limit", "share"]

MOST = 65_536
"""The limit on descriptors that the process tries to set."""
RESERVED = 256
"""Descriptors for requests to the API server, Git, renderers, and accepted connections before they are counted."""
LEAST = 33
"""The minimum number of connections of a listener, even if the process has few descriptors."""


def raise_limit() -> None:
    """Raise the soft limit on descriptors as far as the hard limit allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    # macOS has another limit, in the kernel, which cannot be read here.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def share(most: int) -> int:
    """Return how many of `most` connections a listener may have if two more listeners have the same share."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return most
    return min(most, max(LEAST, (soft - RESERVED) // 3))
