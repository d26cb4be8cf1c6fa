"""Text fields that hold a list, because the Graph engine fills them from several nodes, such as `upstreamVerified`."""

from __future__ import annotations

__all__ = ["LIST_SEPARATOR", "split_list"]

LIST_SEPARATOR = ","


def split_list(text: str | None) -> tuple[str, ...]:
    """Return the values of a field that the Graph engine filled from several nodes; empty if the field is absent."""
    return tuple(part.strip() for part in text.split(LIST_SEPARATOR)) if text else ()
