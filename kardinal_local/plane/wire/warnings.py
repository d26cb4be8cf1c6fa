"""Make Warning headers, which clients print as they come.

Each is told once. When there are more than four thousand characters of them, all are cut
short, and what is too much even then is left out. One that a header cannot hold is not sent at all; the real server
does the same.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["warning_headers"]

TOTAL_LIMIT = 4096
SHORTENED_TO = 256


def warning_headers(warnings: Iterable[str]) -> list[str]:
    """The values of the headers for `warnings`."""
    told = list(dict.fromkeys(filter(None, warnings)))
    if sum(map(len, told)) > TOTAL_LIMIT:
        told = _shortened(told)
    return [f'299 - "{_escaped(warning)}"' for warning in told if not _has_control_characters(warning)]


def _shortened(warnings: list[str]) -> list[str]:
    kept, total = [], 0
    for warning in warnings:
        if total >= TOTAL_LIMIT:
            break
        kept.append(warning[:SHORTENED_TO])
        total += len(kept[-1])
    return kept


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _has_control_characters(text: str) -> bool:
    return any(character < " " or "\x7f" <= character <= "\x9f" for character in text)
