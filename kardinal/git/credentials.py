"""Credentials of a remote: the user, the key, and the keys or certificates by which the host is known.

Credentials are kept beside a URL and never in it. They may end in a traceback or a log line by accident, so their text
form hides everything.
"""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass

__all__ = ["GitCredentials"]


@dataclass(frozen=True, slots=True, repr=False)
class GitCredentials:
    """The parts of a Secret that one transfer needs; a part that the Secret does not have is empty.

    `username` and `password`, which may be a token, are for https. `authority` contains certificates in PEM; if given,
    only these authorities are trusted, and not those of the machine. `private_key` and `known_hosts` are for ssh, in
    the format of OpenSSH. `identity` names the account behind short-lived tokens: with the same identity, the same
    repositories may be read.
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
        """Return a hash that is equal for credentials with equal rights."""
        parts = (self.identity,) if self.identity else astuple(self)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()
