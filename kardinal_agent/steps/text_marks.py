"""Find the part of a pull request's body that is kardinal's, between two marks that hosts do not show (pure).

    text of a reviewer
    <!-- kardinal <uid of the Bundle> <digest of the text> <digest of the title> -->
    ## Promotion: my-app 1.29.0 to prod
    ...
    <!-- /kardinal <digest of the text> -->
    text of a reviewer

Everybody who may edit a pull request may write marks as well, so that a mark proves nothing. It only says which lines
kardinal may write anew: those between an end and the nearest begin before it that has the same digest and names the
Bundle. A mark counts at the beginning of a line, where neither a table nor a diff of ours can have one. Everything else
in the body is people's, and so is a title with another digest.

The version before had one mark, below its text: `<!-- kardinal <uid> <digest of title and text> -->`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["OwnPart", "marked", "named_bundles", "own_part", "text_digest", "without_owner"]

_DIGEST = r"[0-9a-f]{16}"
_OWNER = re.compile(
    rf"^<!-- kardinal (?P<uid>[\w.-]{{1,64}}) (?P<digest>{_DIGEST})(?: (?P<title>{_DIGEST}))? -->[ \t]*$", re.MULTILINE
)
_END = re.compile(rf"^<!-- /kardinal (?P<digest>{_DIGEST}) -->[ \t]*$", re.MULTILINE)
_SINGLE_BEGIN = re.compile(r"^## (?:Promotion|Rollback): ", re.MULTILINE)
_WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class OwnPart:
    """The part of a body that is kardinal's: what is around it, and the digests of what was written last."""

    before: str
    after: str
    digest: str
    title: str
    """The digest of the title that kardinal wrote; empty where that is not known."""

    def has_title(self, title: str) -> bool:
        """Return whether a title is the one that kardinal wrote, whatever spaces a host has taken off."""
        return self.title == _title_digest(title)


def text_digest(title: str, text: str) -> str:
    """Return the digest by which a text is known to be on a pull request already."""
    return hashlib.sha256(f"{title}\n{text}".encode(errors="replace")).hexdigest()[:16]


def marked(text: str, *, uid: str, digest: str, title: str) -> str:
    """Return a text of kardinal's between its marks, without a line end; `title` is the title that goes with it."""
    begin = f"<!-- kardinal {uid} {digest} {_title_digest(title)} -->"
    return f"{begin}\n{text.rstrip()}\n\n<!-- /kardinal {digest} -->"


def own_part(body: str, *, uid: str, title: str) -> OwnPart | None:
    """Return the part of a body that kardinal has written for a Bundle; None where there is none.

    `title` is that of the pull request: of the version before, it is ours if the digest of title and text says so.
    """
    lines = body.replace("\r\n", " \n")  # of the same length, so that positions stay
    begin: re.Match[str] | None = None
    for mark in sorted([*_OWNER.finditer(lines), *_END.finditer(lines)], key=lambda found: found.start()):
        if mark.re is _OWNER:
            begin = mark if mark["uid"] == uid and mark["title"] else None
        elif begin is not None and begin["digest"] == mark["digest"]:
            return OwnPart(body[: begin.start()], body[mark.end() :], mark["digest"], begin["title"])
    return next(_single(body, lines, uid=uid, title=title), None)


def _single(body: str, lines: str, *, uid: str, title: str) -> Iterator[OwnPart]:
    """Yield the text above a mark of the version before."""
    for mark in _OWNER.finditer(lines):
        heading = _SINGLE_BEGIN.search(lines, 0, mark.start())
        if mark["title"] or mark["uid"] != uid or heading is None:
            continue
        text = body[heading.start() : mark.start()].replace("\r\n", "\n").rstrip() + "\n"
        known = _title_digest(title) if text_digest(title, text) == mark["digest"] else ""
        yield OwnPart(body[: heading.start()], body[mark.end() :], mark["digest"], known)


def named_bundles(body: str) -> frozenset[str]:
    """Return the UIDs of the Bundles that the marks of a body name."""
    return frozenset(mark["uid"] for mark in _OWNER.finditer(body.replace("\r\n", "\n")))


def without_owner(body: str) -> str:
    """Return the text of a pull request that is withdrawn, so that a promotion that is made again leaves it alone."""
    lines = body.replace("\r\n", "\n")
    return _OWNER.sub(lambda mark: mark[0].replace(f" {mark['uid']} ", f" {_WITHDRAWN} ", 1), lines)


def _title_digest(title: str) -> str:
    return hashlib.sha256(" ".join(title.split()).encode(errors="replace")).hexdigest()[:16]
