"""Credentials of a remote: its user, its key, and what it is known by; they never show themselves.

Credentials travel next to a URL, never in it, and may end in a traceback or a log line by accident: their text form
hides everything.
"""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass

__all__ = ["Credentials"]


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """The parts of a Secret that one transfer needs; a part that it does not have is empty.

    `username` and `password`, which may be a token, are for https. `authority` holds the certificates in PEM that alone
    may have signed the one of the host, instead of the trusted ones of the machine. `private_key` and `known_hosts` are
    for ssh, as OpenSSH writes them. `identity` names what stays the same while short-lived tokens come and go: with
    the same identity, the same repositories may be read.
    """

    username: str = ""
    password: str = ""
    authority: str = ""
    private_key: str = ""
    known_hosts: str = ""
    identity: str = ""

    def __repr__(self) -> str:
        return "Credentials(***)"

    @property
    def key(self) -> str:
        """Return a hash that is the same for the same rights."""
        parts = (self.identity,) if self.identity else astuple(self)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()
