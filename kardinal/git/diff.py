"""The change of a promotion as a unified diff for people: limited in size, and without terminal control characters."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from kardinal.git.lines import Effort, Hunk, TooDifferent, hunks, is_binary, split_lines
from kardinal.git.values import ChangedFile
from kardinal.objects.text import printable

__all__ = ["DIFF_LIMIT", "unified"]

DIFF_LIMIT = 64 << 10
"""The default maximum size of a diff in bytes."""

_NOTE_ROOM = 200
_CONTEXT = 3
"""The number of unchanged lines before and after a difference."""
_SHORT_ID = 7
_MODE = "100644"
_NO_END = "\\ No newline at end of file"


def unified(changes: Iterable[ChangedFile], *, limit: int = DIFF_LIMIT) -> str:
    """Return the diff of `changes`, at most `limit` bytes; the last line counts the lines that are left out."""
    lines: list[str] = []
    size = left_out = files = 0
    effort = Effort()
    for change in changes:
        if left_out:
            files += 1
            continue
        for line in _lines(change, effort, limit):
            size += len(line.encode()) + 1
            if left_out or size > limit - _NOTE_ROOM:
                left_out += 1
            else:
                lines.append(line)
    if left_out:
        lines.append(f"… {left_out:,} more lines are left out{f', and {files:,} more files' if files else ''}")
    return "".join(f"{line}\n" for line in lines)


def _lines(change: ChangedFile, effort: Effort, limit: int) -> Iterator[str]:
    for line in _patch(change, effort, limit):
        yield "\t".join(map(printable, line.split("\t")))


def _patch(change: ChangedFile, effort: Effort, limit: int) -> Iterator[str]:
    path = printable(change.path)
    before = change.before
    after = change.after
    old = "/dev/null" if before is None else f"a/{path}"
    new = "/dev/null" if after is None else f"b/{path}"
    yield f"diff --git a/{path} b/{path}"
    if before is None:
        yield f"new file mode {_MODE}"
    if after is None:
        yield f"deleted file mode {_MODE}"
    mode = "" if before is None or after is None else f" {_MODE}"
    yield f"index {_id(before)}..{_id(after)}{mode}"
    if is_binary(before or b"") or is_binary(after or b""):
        yield f"Binary files {old} and {new} differ"
        return
    if before is None or after is None:
        text, sign = (before or b"", "-") if after is None else (after, "+")
        yield from _whole(text, sign, (f"--- {old}", f"+++ {new}"), limit)
        return
    try:
        one = split_lines(before)
        other = split_lines(after)
        found = list(hunks(one, other, effort))
    except TooDifferent:
        yield f"diff is not shown: comparing the lines of {path} would be too much work"
        return
    if found:
        yield f"--- {old}"
        yield f"+++ {new}"
        for group in _groups(found):
            yield from _group(group, one, other)


def _whole(text: bytes, sign: str, head: Sequence[str], limit: int) -> Iterator[str]:
    """Yield the lines of a new or deleted file; lines beyond the limit are only counted."""
    count = text.count(b"\n") + (not text.endswith(b"\n"))
    if not text:
        return
    yield from head
    yield f"@@ -0,0 +1{_more(count)} @@" if sign == "+" else f"@@ -1{_more(count)} +0,0 @@"
    shown = text[:limit].split(b"\n")[:count]
    for line in shown:
        yield f"{sign}{line.decode('utf-8', 'replace')}"
    for _ in range(count - len(shown)):
        yield sign
    if not text.endswith(b"\n"):
        yield _NO_END


def _groups(found: Sequence[Hunk]) -> Iterator[list[Hunk]]:
    """Yield groups of hunks that are shown together, because their contexts touch."""
    group: list[Hunk] = []
    for hunk in found:
        if group and hunk.start - group[-1].end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(hunk)
    yield group


def _group(group: Sequence[Hunk], one: Sequence[bytes], other: Sequence[bytes]) -> Iterator[str]:
    first = group[0]
    last = group[-1]
    before = min(first.start, _CONTEXT)
    after = min(len(one) - last.end, _CONTEXT)
    removed = _range(first.start - before, last.end + after)
    added = _range(first.other_start - before, last.other_end + after)
    yield f"@@ -{removed} +{added} @@"
    at = first.start - before
    for hunk in group:
        yield from _signed(" ", one[at : hunk.start])
        yield from _signed("-", one[hunk.start : hunk.end])
        yield from _signed("+", other[hunk.other_start : hunk.other_end])
        at = hunk.end
    yield from _signed(" ", one[at : at + after])


def _signed(sign: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        text = line.removesuffix(b"\n").decode("utf-8", "replace")
        yield f"{sign}{text}"
        if not line.endswith(b"\n"):
            yield _NO_END


def _range(start: int, end: int) -> str:
    """Return a range of lines in a unified diff: `4,2` for the lines from 3 up to 5, `3,0` for none after line 3."""
    return f"{start + 1 if end > start else start}{_more(end - start)}"


def _more(count: int) -> str:
    return "" if count == 1 else f",{count}"


def _id(content: bytes | None) -> str:
    if content is None:
        return "0" * _SHORT_ID
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()[:_SHORT_ID]
