"""GitHub Apps: a private key with which a token for one repository is requested, valid for an hour.

The token is minted when it is first needed, restricted to the one repository, cached with the sessions of the program,
and minted again five minutes before it expires, or when GitHub refuses it. Git uses it as the password of the user
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

from kardinal.clock import Clock
from kardinal.git import GitCredentials
from kardinal.scm.addresses import quoted
from kardinal.scm.errors import AccessDenied
from kardinal.scm.http import Host, HostClient, HostSessions, MintedToken
from kardinal.scm.values import parsed

__all__ = ["AppAuthenticator", "AppKey"]

_USER = "x-access-token"
_APP = re.compile(r"[0-9]{1,18}|Iv[0-9A-Za-z.]{1,60}", re.ASCII)
"""The number of an App, or its client ID, such as `Iv1.8a61f9b3a7aba766` or `Iv23liAbCdEfGhIjKlMn`."""
_JWT_SECONDS = 540
"""In seconds. GitHub refuses a JWT that is valid for more than ten minutes."""
_AHEAD = 300.0
_LIFETIME = (60.0, 3600.0)
"""The minimum and maximum time in seconds for which a token is used, whatever the clocks say."""


class ApiInstallation(BaseModel):
    id: int = Field(gt=0)


class ApiInstallationToken(BaseModel):
    token: str = Field(min_length=1)
    expires_at: AwareDatetime
    permissions: dict[str, Any] = {}


@dataclass(frozen=True, slots=True, repr=False)
class AppKey:
    """The keys of a Secret for a GitHub App. `installation` defaults to the installation of the repository."""

    app: str
    private_key: str
    installation: str = ""

    def __repr__(self) -> str:
        return "AppKey(***)"

    @classmethod
    def of(cls, values: Mapping[str, str]) -> AppKey | None:
        """Return the key of a Secret with `appId` and `privateKey`; None if it has neither."""
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
        """Return a JWT of the App itself; signing takes milliseconds of CPU time."""
        try:
            key = load_pem_private_key(self.private_key.encode(), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, RSAPrivateKey):
            # Raised without the cause, which may quote the key.
            raise AccessDenied(
                "privateKey is no RSA key in PEM form without a passphrase",
                remedy="Put the file that GitHub made for the App into the Secret",
            )
        return get_jwt(app_id=self.app, private_key=self.private_key, expiration=_JWT_SECONDS)


@dataclass(frozen=True, slots=True)
class _AsApp:
    """Authenticate as the App itself, which may only mint tokens."""

    key: AppKey
    identity: str

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {await asyncio.to_thread(self.key.signed)}"}

    async def credentials(self) -> GitCredentials:
        raise AccessDenied("a GitHub App has no credentials without an installation")

    def refused(self) -> bool:
        return False

    def redact(self, text: str) -> str:
        return text.replace(self.key.private_key, "***")


class AppAuthenticator:
    """Authenticate as the installation of an App on one repository."""

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
        """The identity under which requests are counted: that of the installation, which belongs to one owner."""
        parts = (self._key.app, self._key.installation, self._key.private_key, self._owner)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {(await self._token()).text}"}

    async def credentials(self) -> GitCredentials:
        # The identity does not change, so a mirror can outlive the tokens.
        return GitCredentials(_USER, (await self._token()).text, identity=f"github-app {self.identity}")

    async def permissions(self) -> Mapping[str, str]:
        """Return the permissions of the token: permission -> read or write."""
        return (await self._token()).permissions

    def refused(self) -> bool:
        """Drop the token that was used last, because a new one may be accepted."""
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
