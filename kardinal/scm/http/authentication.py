"""Authentication of a provider: a header for its API, a user name and password for Git.

The provider turns the values of a Secret into an `HostAuthenticator`, which never shows its secret and removes it from
messages of the host.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kardinal.git import GitCredentials
from kardinal.scm.errors import AccessDenied

__all__ = ["HostAuthenticator", "StaticToken", "static_authenticator"]

_TOKEN_USER = "git"  # noqa: S105 - hosts that take a token as the password ignore the name


class HostAuthenticator(Protocol):
    """One credential at one host."""

    @property
    def identity(self) -> str:
        """Return an identity that distinguishes this credential from others, without revealing it."""
        ...

    async def headers(self) -> Mapping[str, str]:
        """Return the headers of a request; this may mint a token first."""
        ...

    async def credentials(self) -> GitCredentials:
        """Return the user name and password for Git over HTTPS."""
        ...

    def refused(self) -> bool:
        """Note that the host refused the headers; return whether new headers may be accepted."""
        ...

    def redact(self, text: str) -> str:
        """Return `text` without the secret."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class StaticToken:
    """A token, or a user name and password, that do not change; `header` is the header that contains it."""

    username: str
    secret: str
    header: tuple[str, str]

    def __repr__(self) -> str:
        return "StaticToken(***)"

    @property
    def identity(self) -> str:
        return hashlib.sha256(f"{self.username}\0{self.secret}".encode()).hexdigest()[:16]

    async def headers(self) -> Mapping[str, str]:
        return dict([self.header])

    async def credentials(self) -> GitCredentials:
        return GitCredentials(self.username, self.secret)

    def refused(self) -> bool:
        return False

    def redact(self, text: str) -> str:
        for secret in (self.secret, self.header[1].rpartition(" ")[2]):
            text = text.replace(secret, "***") if secret else text
        return text


def static_authenticator(values: Mapping[str, str], *, header: str, scheme: str) -> StaticToken | None:
    """Return the authenticator of a Secret with `token`, or `username` and `password`; None if it has neither.

    Raises `AccessDenied` for a value that is invalid in a header. `header` and `scheme` are the host's form of a token,
    such as `Authorization` and `token`; a password is always sent as HTTP basic authentication.
    """
    username, password, token = (values.get(key, "").rstrip("\r\n") for key in ("username", "password", "token"))
    if not all(value.isprintable() for value in (username, password, token)):
        raise AccessDenied("the credential has control characters", remedy="Correct the token in the Secret")
    if token:
        value = f"{scheme} {token}" if scheme else token
        return StaticToken(username or _TOKEN_USER, token, (header, value))
    if username and password:
        encoded = base64.b64encode(f"{username}:{password}".encode()).decode()
        return StaticToken(username, password, ("Authorization", f"Basic {encoded}"))
    return None
