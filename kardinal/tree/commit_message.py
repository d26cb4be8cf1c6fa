"""Commit messages, and the trailers by which a promotion recognises its own commit.

A trailer is a line such as `Kardinal-Bundle: app-1-2-3` in the last paragraph. Trailers make it safe to repeat a push
after a crash, so a value that could contain another line is refused. When trailers are read, other lines that were
appended to the paragraph (`Signed-off-by`, a cherry-pick note) are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["KARDINAL", "CommitMessage", "parse_trailers"]

_PERSON = re.compile(r"[^<>\x00-\x1f\x7f]+ <[^<>\x00-\x20\x7f]+>")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_LINE = re.compile(r"(?P<key>[A-Za-z][A-Za-z0-9-]*): (?P<value>.*\S)")

KARDINAL = "kardinal <kardinal@localhost>"


@dataclass(frozen=True)
class CommitMessage:
    """A subject line, an optional body and trailers. Author and committer have the form `Name <address>`."""

    subject: str
    body: str = ""
    trailers: Mapping[str, str] = field(default_factory=dict)
    author: str = KARDINAL
    committer: str = KARDINAL

    def __post_init__(self) -> None:
        for key, value in self.trailers.items():
            if not _KEY.fullmatch(key) or not value.strip() or not value.isprintable():
                raise ValueError(f"{key!r}: {value!r} can not be a trailer: a word, a colon and one line of text")

        for person in (self.author, self.committer):
            if not _PERSON.fullmatch(person):
                raise ValueError(f"{person!r} is not `Name <address>` on one line")

    def __str__(self) -> str:
        trailers = "\n".join(f"{key}: {value.strip()}" for key, value in self.trailers.items())
        paragraphs = (" ".join(self.subject.split()), self.body.strip(), trailers)
        return "\n\n".join(paragraph for paragraph in paragraphs if paragraph) + "\n"


def parse_trailers(text: str) -> dict[str, str]:
    """Return the trailers in the last paragraph of a commit message; a message of one paragraph has none."""
    paragraphs = re.split(r"\n(?:[^\S\n]*+\n)+", text.strip())
    if len(paragraphs) < 2:
        return {}
    matches = (_LINE.fullmatch(line) for line in paragraphs[-1].splitlines())
    return {match["key"]: match["value"] for match in matches if match}
