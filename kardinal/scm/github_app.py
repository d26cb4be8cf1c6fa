"""GitHub Apps: a key that signs for a token of one repository, which is good for an hour.

The token is minted when it is first needed, restricted to the one repository, kept with the sessions of the program,
and minted anew five minutes before it expires, or when GitHub refuses it. Git gets it as the password of the user
`x-access-token`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from gidgethub.apps import get_jwt
from pydantic import AwareDatetime, BaseModel, Field

from kardinal.git import Credentials
from kardinal.runtime.clock import Clock
from kardinal.scm.addresses import quoted
from kardinal.scm.errors import AccessDenied
from kardinal.scm.http import Host, HostClient, HostSessions, MintedToken
from kardinal.scm.values import parsed

__all__ = ["AppAuthenticator", "AppKey"]

_USER = "x-access-token"
_APP = re.compile(r"[0-9]{1,18}|Iv[0-9A-Za-z.]{1,60}", re.ASCII)
"""The number of an App, or its client ID, such as `Iv1.8a61f9b3a7aba766` or `Iv23liAbCdEfGhIjKlMn`."""
_JWT_SECONDS = 540
"""GitHub refuses one of more than ten minutes."""
_AHEAD = 300.0
_LIFETIME = (60.0, 3600.0)
"""Seconds that a token is used at least and at most, whatever the clocks say."""


class ApiInstallation(BaseModel):
    id: int = Field(gt=0)


class ApiInstallationToken(BaseModel):
    token: str = Field(min_length=1)
    expires_at: AwareDatetime
    permissions: dict[str, Any] = {}


@dataclass(frozen=True, slots=True, repr=False)
class AppKey:
    """The keys of a Secret for a GitHub App; without `installation`, that of the repository is looked up."""

    app: str
    private_key: str
    installation: str = ""

    def __repr__(self) -> str:
        return "AppKey(***)"

    @classmethod
    def of(cls, values: Mapping[str, str]) -> AppKey | None:
        """Return the key of a Secret with `appId` and `privateKey`; None where it has neither."""
        app, installation, key = (values.get(name, "").strip() for name in ("appId", "installationId", "privateKey"))
        if not app and not key:
            return None
        if not _APP.fullmatch(app) or (installation and not installation.isdecimal()) or not key:
            raise AccessDenied(
                "a GitHub App is appId (its number or client ID) and the PEM key privateKey, and may have the number "
                "installationId",
                remedy="Correct these keys of the Secret",
            )
        return cls(app, key, installation)

    def signed(self) -> str:
        """Return a token of the App itself; takes milliseconds of a processor."""
        try:
            key = load_pem_private_key(self.private_key.encode(), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, RSAPrivateKey):
            # Without the cause, which may quote the key.
            raise AccessDenied(
                "privateKey is no RSA key in PEM form without a passphrase",
                remedy="Put the file that GitHub made for the App into the Secret",
            )
        return get_jwt(app_id=self.app, private_key=self.private_key, expiration=_JWT_SECONDS)


@dataclass(frozen=True, slots=True)
class _AsApp:
    """Authenticates as the App itself, which may do nothing but mint."""

    key: AppKey
    identity: str

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {await asyncio.to_thread(self.key.signed)}"}

    async def credentials(self) -> Credentials:
        raise AccessDenied("a GitHub App has no credentials without an installation")

    def refused(self) -> bool:
        return False

    def redact(self, text: str) -> str:
        return text.replace(self.key.private_key, "***")


class AppAuthenticator:
    """Authenticates as the installation of an App on one repository."""

    def __init__(
        self,
        key: AppKey,
        *,
        host: Host,
        owner: str,
        name: str,
        sessions: HostSessions,
        authority: str,
        namespace: str,
    ) -> None:
        self.app = key.app
        self._key = key
        self._owner = owner
        self._name = name
        self._tokens = sessions.tokens
        self._clock: Clock = sessions.clock
        as_app = _AsApp(key, identity=f"app-{self.identity}")
        self._client = HostClient(
            host, sessions=sessions, authenticator=as_app, authority=authority, namespace=namespace
        )
        self._last: MintedToken | None = None

    @cached_property
    def identity(self) -> str:
        """Return what the quota of the installation, which is of one owner, is counted under."""
        parts = (self._key.app, self._key.installation, self._key.private_key, self._owner)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {(await self._token()).text}"}

    async def credentials(self) -> Credentials:
        # The identity is what stays: a mirror outlives its tokens.
        return Credentials(_USER, (await self._token()).text, identity=f"github-app {self.identity}")

    async def permissions(self) -> Mapping[str, str]:
        """Return what the token may do: permission -> read or write."""
        return (await self._token()).permissions

    def refused(self) -> bool:
        """Drop the token that was used last: a new one may be better."""
        if self._last is None:
            return False
        self._tokens.drop(self._place, self._last)
        self._last = None
        return True

    def redact(self, text: str) -> str:
        for secret in (self._key.private_key, self._last.text if self._last else ""):
            text = text.replace(secret, "***") if secret else text
        return text

    @property
    def _place(self) -> str:
        return f"{self._client.host.base} {self.identity} {self._owner}/{self._name}"

    async def _token(self) -> MintedToken:
        self._last = await self._tokens.get(self._place, self._mint)
        return self._last

    async def _mint(self) -> MintedToken:
        installation = self._key.installation or str(await self._installation())
        path = f"/app/installations/{installation}/access_tokens"
        answer = await self._client.request("mint", "POST", path, body={"repositories": [self._name]})
        minted = parsed(ApiInstallationToken, answer.value)
        left = (minted.expires_at - self._clock.now()).total_seconds() - _AHEAD
        lifetime = min(max(left, _LIFETIME[0]), _LIFETIME[1])
        return MintedToken(minted.token, lifetime, {name: str(level) for name, level in minted.permissions.items()})

    async def _installation(self) -> int:
        path = f"/repos/{quoted(self._owner)}/{quoted(self._name)}/installation"
        return parsed(ApiInstallation, (await self._client.request("installation", "GET", path)).value).id
