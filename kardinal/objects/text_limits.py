"""Keep the texts of pull requests and comments within the limits of all hosts.

GitHub accepts 65,536 characters of a body or a comment, GitLab 1,048,576; Gitea and provider `local` have no such
limit. The lowest limit is used for all hosts. It is counted in bytes of UTF-8, because no text has more characters than
bytes.
"""

from __future__ import annotations

__all__ = ["BODY_LIMIT", "head_of", "size", "within"]

BODY_LIMIT = 65_536
"""The most bytes of a whole body or comment."""

_NOTE = "\n\n… {} more lines are left out here"
_NOTE_ROOM = 64


def size(text: str) -> int:
    """Return the bytes of a text."""
    return len(text.encode(errors="surrogatepass"))


def head_of(text: str, limit: int) -> str:
    """Return the beginning of a text, at most `limit` bytes."""
    return text.encode(errors="surrogatepass")[: max(limit, 0)].decode(errors="ignore")


def within(text: str, limit: int) -> str:
    """Return a text of at most `limit` bytes: the first lines, and the number of lines that were left out."""
    if size(text) <= limit:
        return text
    lines = text.split("\n")
    kept = head_of(text, limit - _NOTE_ROOM).rpartition("\n")[0]
    return head_of(kept + _NOTE.format(len(lines) - len(kept.split("\n"))), limit)
