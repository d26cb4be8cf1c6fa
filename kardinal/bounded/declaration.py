"""Declarations of readers: the bytes of others that each reader takes, and its bounds.

A module with a reader declares it in a constant, beside the limits of the reader:

    FOREIGN = ForeignBytes("list pages of a host's API", of="Git host", size=mebibytes(MAX_BODY), …)

`make docs` collects the declarations into the table of docs/security.md. A test fails when the page is stale, and
`tests/house/test_foreign_bytes.py` fails when bytes are read or decoded outside of the readers.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ForeignBytes", "mebibytes"]


@dataclass(frozen=True, slots=True)
class ForeignBytes:
    """One place that takes bytes of others.

    `of`: the actor of docs/security.md that writes the bytes. `size`: the bound on the bytes that arrive. `unpacked`:
    the bound after decompression, or the reason why there is none. `structure`: the bounds of nesting and number of
    values, which are counted before decoding. `time`: the deadline of the reader. `held`: the most bytes in memory or
    on disk at once, and for whom. `decoded`: where, on the event loop, a thread or in a child. `tests`: the tests with
    hostile inputs, such as `attacks/test_git.py::test_one`.
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
    """Return a number of bytes as text, such as `4 MiB` or `64 KiB`."""
    return f"{number >> 20:,} MiB" if number >= 1 << 20 else f"{number >> 10:,} KiB"
