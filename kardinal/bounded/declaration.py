"""Declarations of readers: which bytes of others each one takes, and how it is bounded.

The module that has a reader has its declarations, as constants beside the limits that they are made of:

    FOREIGN = ForeignBytes("list pages of a host's API", of="Git host", size=mebibytes(MAX_BODY), …)

`make docs` collects them into the table of docs/security.md. A test fails when the page is stale, and another one
(`tests/house/test_foreign_bytes.py`) when bytes are read or decoded outside the readers.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ForeignBytes", "mebibytes"]


@dataclass(frozen=True, slots=True)
class ForeignBytes:
    """One place that takes bytes of others.

    `of`: the actor of docs/security.md that writes them. `size`: of what arrives. `unpacked`: the bound after
    decompression, or why there is none. `structure`: nesting and number of values, counted before they are decoded.
    `time`: until the reader gives up. `held`: how much is in memory or on disk at once, and for whom. `decoded`: on the
    event loop, a thread or in a child. `tests`: the hostile inputs, as `attacks/test_git.py::test_one`.
    """

    bytes: str
    of: str
    size: str
    unpacked: str
    structure: str
    time: str
    held: str
    decoded: str
    tests: tuple[str, ...]


def mebibytes(number: int) -> str:
    """Return a number of bytes for people, such as `4 MiB` or `64 KiB`."""
    return f"{number >> 20:,} MiB" if number >= 1 << 20 else f"{number >> 10:,} KiB"
