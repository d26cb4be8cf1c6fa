"""Check that all pages and headings that the repository cites exist in it: `python -m hack.lint.citations`.

A citation is the name of a Markdown page, alone or followed by one of its sections:

    docs/design/runtime.md
    docs/design/runtime.md, "Work queues"
    docs/design/runtime.md#work-queues

The page must be a file; it is looked up in the directory of the citing file, the root, `docs/` and `docs/design/`, in
this order. The section must be one of its headings. Section numbers and codes of catalogues are errors: a reader cannot
look them up, and they change when a page is edited. URLs are not checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Finding", "check"]

_SUFFIXES = frozenset({".py", ".md", ".toml", ".yaml", ".yml"})
_NAMES = frozenset({"Makefile", "Dockerfile.agent", "Dockerfile.controller", "Dockerfile.supplychain"})
_RECORDED = "recordings"
"""The name of directories with recorded responses of real servers, which are not checked."""

_PLACES = ("", "docs", "docs/design")

_URL = re.compile(r"\w+://[^\s)>\"'`]+")
_HEADING = re.compile(r"^#{1,6}[ \t]+(?P<text>.+?)[ \t#]*$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_CITATION = re.compile(
    r"""
    (?P<page>[\w./-]*\w\.md)\b
    (?: \#(?P<anchor>[\w-]+)
      | [`)]{0,2} , \s+ (?:\#\s+)? (?: "(?P<quoted>[^"]{1,80})" | \*(?P<starred>[^*]{1,80})\* )
      | ,? \s+ (?:\#\s+)? (?P<number>[A-Z]?\d[\w.]*)
    )?
    | \b(?P<code>DD\s+\d[\d.]* | P\d{1,2})\b
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken citation; `path` is relative to the root, `line` counts from 1."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def check(root: Path, files: Iterable[Path]) -> Iterator[Finding]:
    """Yield the broken citations in `files`, whose paths are relative to `root`."""
    root = root.resolve()
    for path in files:
        if not _is_checked(path):
            continue
        text = _URL.sub(lambda url: " " * len(url[0]), (root / path).read_text(encoding="utf-8"))
        for citation in _CITATION.finditer(text):
            if message := _fault(root, path, citation):
                yield Finding(path, text.count("\n", 0, citation.start()) + 1, message)


def _is_checked(path: Path) -> bool:
    if _RECORDED in path.parts:
        return False
    return path.suffix in _SUFFIXES or path.name in _NAMES or path.parts[0] == ".ci"


def _fault(root: Path, path: Path, citation: re.Match[str]) -> str | None:
    if code := citation["code"]:
        return f"{_unwrapped(code)} names no page: say the reason in a sentence, or cite a heading of docs/design"
    page = _find(root, path, citation["page"])
    if page is None:
        return f"there is no {citation['page']}: cite a page of the repository, or say the reason in a sentence"
    name = page.relative_to(root)
    if (anchor := citation["anchor"]) and anchor not in map(_slug, _headings(page)):
        return f"{name} has no heading with the anchor #{anchor}: {_known(page)}"
    if number := citation["number"]:
        return f'{name} has no numbered sections ({number}): cite a heading as {name}, "Heading"'
    heading = _unwrapped(citation["quoted"] or citation["starred"] or "")
    if heading and heading not in _headings(page):
        return f'{name} has no heading "{heading}": {_known(page)}'
    return None


def _find(root: Path, citing: Path, page: str) -> Path | None:
    places = [citing.parent, *map(Path, _PLACES)]
    candidates = ((root / place / page.lstrip("/")).resolve() for place in places)
    return next((found for found in candidates if found.is_file() and found.is_relative_to(root)), None)


@cache
def _headings(page: Path) -> tuple[str, ...]:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return tuple(heading["text"].replace("`", "") for heading in _HEADING.finditer(text))


def _slug(heading: str) -> str:
    """Return the anchor that GitHub gives a heading: `Work queues` → `work-queues`."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _known(page: Path) -> str:
    return f"it has {', '.join(_headings(page))}"


def _unwrapped(text: str) -> str:
    """Return a text that may be wrapped across several lines of a comment as one line."""
    return re.sub(r"\s*\n\s*#?\s*|\s+", " ", text)


def _tracked(root: Path) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    return [path for path in map(Path, filter(None, listed.split("\0"))) if (root / path).is_file()]


def main() -> int:
    """Print all findings in the repository of the working directory; return 1 if there are any, else 0."""
    root = Path.cwd()
    findings = list(check(root, _tracked(root)))
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} citations lead nowhere", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
