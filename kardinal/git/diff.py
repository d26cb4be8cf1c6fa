"""The change of a promotion as a unified diff, for people: bounded, and without characters that steer a terminal."""

from __future__ import annotations

from collections.abc import Iterable

import pygit2

from kardinal.git.values import Change
from kardinal.objects.text import printable

__all__ = ["DIFF_LIMIT", "unified"]

DIFF_LIMIT = 64 << 10
"""Bytes of a diff that are kept."""

_NOTE_ROOM = 200


def unified(changes: Iterable[Change], *, limit: int = DIFF_LIMIT) -> str:
    """Return the diff of `changes`, at most `limit` bytes; a last line says how many lines are left out."""
    lines: list[str] = []
    size = left_out = 0
    for change in changes:
        for line in _lines(change):
            size += len(line.encode()) + 1
            if size > limit - _NOTE_ROOM:
                left_out += 1
            else:
                lines.append(line)
    if left_out:
        lines.append(f"… {left_out:,} more lines are left out")
    return "".join(f"{line}\n" for line in lines)


def _lines(change: Change) -> Iterable[str]:
    patch = pygit2.Patch.create_from(change.before, change.after, old_as_path=change.path, new_as_path=change.path)
    for line in (patch.data or b"").decode("utf-8", "replace").splitlines():
        yield "\t".join(map(printable, line.split("\t")))
