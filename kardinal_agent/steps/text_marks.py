"""Find the part of a pull request's body that is kardinal's, between two marks that hosts do not show (pure).

    text of a reviewer
    <!-- kardinal <uid of the Bundle> <digest of the text> <digest of the title> -->
    ## Promotion: my-app 1.29.0 to prod
    ...
    <!-- /kardinal <digest of the text> -->
    text of a reviewer

Every user who may edit a pull request may write marks, so a mark proves nothing. It only marks the lines that kardinal
may rewrite: those between an end mark and the nearest begin mark before it with the same digest and the uid of the
Bundle. A mark counts only at the beginning of a line, where neither our tables nor our diffs can contain one. The rest
of the body belongs to people, and so does a title with another digest.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

__all__ = ["WITHDRAWN", "OwnPart", "marked", "named_bundles", "own_part", "text_digest", "without_owner"]

_DIGEST = r"[0-9a-f]{16}"
_OWNER = re.compile(
    rf"^<!-- kardinal (?P<uid>[\w.-]{{1,64}}) (?P<digest>{_DIGEST}) (?P<title>{_DIGEST}) -->[ \t]*$", re.MULTILINE
)
_END = re.compile(rf"^<!-- /kardinal (?P<digest>{_DIGEST}) -->[ \t]*$", re.MULTILINE)
WITHDRAWN = "withdrawn"
"""The owner in the mark of a pull request that was withdrawn."""


@dataclass(frozen=True, slots=True)
class OwnPart:
    """The text of a body around kardinal's part, and the digests of the last written text and title."""

    before: str
    after: str
    digest: str
    title: str
    """The digest of the title that kardinal wrote."""

    def has_title(self, title: str) -> bool:
        """Return whether kardinal wrote this title; spaces that a host may have removed are ignored."""
        return self.title == _title_digest(title)


def text_digest(title: str, text: str) -> str:
    """Return the digest by which a written text is recognised."""
    return hashlib.sha256(f"{title}\n{text}".encode(errors="replace")).hexdigest()[:16]


def marked(text: str, *, uid: str, digest: str, title: str) -> str:
    """Return a text of kardinal's between its marks, without a final line end; `title` is the title written with it."""
    begin = f"<!-- kardinal {uid} {digest} {_title_digest(title)} -->"
    return f"{begin}\n{text.rstrip()}\n\n<!-- /kardinal {digest} -->"


def own_part(body: str, *, uid: str) -> OwnPart | None:
    """Find the part of a body that kardinal wrote for a Bundle; return the text around it and its digests, or None."""
    lines = body.replace("\r\n", " \n")  # same length, so that positions stay valid
    begin: re.Match[str] | None = None
    for mark in sorted([*_OWNER.finditer(lines), *_END.finditer(lines)], key=lambda found: found.start()):
        if mark.re is _OWNER:
            begin = mark if mark["uid"] == uid else None
        elif begin is not None and begin["digest"] == mark["digest"]:
            return OwnPart(body[: begin.start()], body[mark.end() :], mark["digest"], begin["title"])
    return None


def named_bundles(body: str) -> frozenset[str]:
    """Return the UIDs of the Bundles that the marks of a body name."""
    return frozenset(mark["uid"] for mark in _OWNER.finditer(body.replace("\r\n", "\n")))


def without_owner(body: str) -> str:
    """Return the body of a withdrawn pull request without the uid, so that a later Bundle does not adopt it."""
    lines = body.replace("\r\n", "\n")
    return _OWNER.sub(lambda mark: mark[0].replace(f" {mark['uid']} ", f" {WITHDRAWN} ", 1), lines)


def _title_digest(title: str) -> str:
    return hashlib.sha256(" ".join(title.split()).encode(errors="replace")).hexdigest()[:16]
