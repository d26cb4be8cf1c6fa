"""Put untrusted values into Markdown text: cut to a length, on one line, and unable to leave their table cell.

The values in a pull request come from build systems, commit authors and gate expressions. A pipe would shift the
columns of a table, a line break would end the table, and a bracket or an angle bracket could forge a link or an image.
Hosts interpret even more: `@alice` notifies a person, `Fixes #12` closes an issue when the pull request is merged, and
an address becomes a link. They interpret the text after Markdown, in which an HTML entity is a plain character again.
So each of these is broken up by a zero-width space.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit

from kardinal.objects.text import cut

__all__ = ["ago", "cell", "link", "moment", "period", "table"]

_LIMIT = 300
"""The maximum length of a value, in characters."""

_MARKUP = re.compile(r"([\\|`\[\]*])")
_ENTITIES = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;"})

_BREAK = "&#8203;"
"""A zero-width space, which `kardinal.cli.output.plain_text` removes."""
_REFERENCE = re.compile(
    r"""
    (?<=@) (?! (?<=\w@) sha\d+: )         # @alice; the digest of app@sha256:… is no name
    | (?<=\#) (?=\w)                      # #12, acme/app#12
    | (?<=!) (?=\d) | (?<=\$) (?=\d)      # !12, $12 of GitLab
    | (?<=&) (?=\d)                       # &12 of GitLab
    | (?<=\bGH-) (?=\d)                   # GH-12
    | (?<=:) (?=//)                       # https://github.com/acme/app/issues/12
    | (?<=\bwww\.)
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""The places in a text at which a host would find a person, an issue, a change or an address."""
_BROKEN = "\u200b"

_URL_SAFE = "/:?#=&%+,;~!.-_"


def cell(value: object) -> str:
    """Return `value` as text that cannot leave its cell."""
    text = "".join(char if unicodedata.category(char)[0] not in "CZ" else " " for char in str(value))
    text = cut(" ".join(text.split()), _LIMIT)
    text = _MARKUP.sub(r"\\\1", _REFERENCE.sub(_BROKEN, text))
    return text.translate(_ENTITIES).replace(_BROKEN, _BREAK)


def link(label: str, url: str) -> str:
    """Return a link, or plain text if `url` is not an http or https URL."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return cell(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or len(url) > 2048:
        return cell(url)
    return f"[{cell(label)}]({quote(url, safe=_URL_SAFE)})"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def ago(when: datetime, *, now: datetime) -> str:
    return f"{period(now - when)} ago ({moment(when)})"


def period(duration: timedelta) -> str:
    """Return a duration in at most its two largest units, such as `3h20m`."""
    seconds = max(int(duration.total_seconds()), 0)
    units = [(seconds // 86400, "d"), (seconds // 3600 % 24, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
    first = next((index for index, (count, _) in enumerate(units) if count), len(units) - 1)
    shown = units[first : first + 2] if first < 2 else units[first : first + 1]
    return "".join(f"{count}{unit}" for count, unit in shown if count) or "0s"
