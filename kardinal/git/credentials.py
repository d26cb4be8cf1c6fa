"""A user name and a password or token, which never show themselves.

Credentials travel next to a URL, never in it, and may end in a traceback or a log line by accident: their text form
hides everything.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Credentials"]


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """The user name and the password or token of an HTTPS remote."""

    username: str
    password: str

    def __repr__(self) -> str:
        return "Credentials(***)"
