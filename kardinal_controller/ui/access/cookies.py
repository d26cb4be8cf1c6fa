"""The session cookie of `--ui-auth=token`: the bearer token of the viewer, encrypted.

Its key is in Secret `kardinal-ui`, so any replica reads it, and none stores sessions. A cookie has at most 4,096 bytes,
and a token may have more, so the value is divided: `kardinal-ui=2.<first part>` and `kardinal-ui-1=<second part>`.
AES-GCM refuses parts of two sessions, and every changed or truncated value. The end of the session is inside, because
a browser may ignore `Max-Age`.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from aiohttp import web
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from kardinal.clock import Clock
from kardinal.kube import Client
from kardinal.promotion.api.names import UI_SECRET
from kardinal_controller.own_keys import own_key

__all__ = ["TOKEN_LIMIT", "SessionCookies", "SessionKey", "TokenSession"]

NAME = "kardinal-ui"
SESSION_SECONDS = 12 * 3600
"""The longest session; it ends earlier with its token."""
TOKEN_LIMIT = 5_000
"""The maximum size of a token in bytes: all cookies of a host have to fit into one header of 8 KiB."""
PART = 3_800
"""The characters of one cookie."""
PARTS = 2

_NONCE = 12
_ENDS = struct.Struct(">Q")
_PURPOSE = b"kardinal-ui session v1"


@dataclass(frozen=True, slots=True)
class TokenSession:
    """A bearer token, and the time in seconds since 1970 at which its session ends."""

    token: str = field(repr=False)
    ends_at: int


class SessionCookies:
    """Write and read session cookies. `path` is the base path of the page."""

    def __init__(self, key: bytes, *, path: str, clock: Clock) -> None:
        derived = HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(key)
        self._cipher = AESGCM(derived)
        self._path = path or "/"
        self._clock = clock

    def write(self, answer: web.StreamResponse, session: TokenSession, *, secure: bool) -> None:
        """Set the cookies of a session. `secure`: browsers send them over TLS only."""
        nonce = secrets.token_bytes(_NONCE)
        sealed = self._cipher.encrypt(nonce, _ENDS.pack(session.ends_at) + session.token.encode(), _PURPOSE)
        value = base64.urlsafe_b64encode(nonce + sealed).decode()
        parts = [value[at : at + PART] for at in range(0, len(value), PART)]
        if len(parts) > PARTS:
            raise ValueError("the token is longer than TOKEN_LIMIT")
        lifetime = max(session.ends_at - int(self._clock.now().timestamp()), 0)
        for name, part in zip(_NAMES, [f"{len(parts)}.{parts[0]}", *parts[1:]], strict=False):
            self._set(answer, name, part, lifetime=lifetime, secure=secure)
        for name in _NAMES[len(parts) :]:
            self._set(answer, name, "", lifetime=0, secure=secure)

    def clear(self, answer: web.StreamResponse, *, secure: bool) -> None:
        """Delete the cookies of a session."""
        for name in _NAMES:
            self._set(answer, name, "", lifetime=0, secure=secure)

    def read(self, cookies: Mapping[str, str]) -> TokenSession | None:
        """Return the session of a request; None without one, and for cookies that this key did not make."""
        count, dot, first = cookies.get(NAME, "").partition(".")
        if not dot or count not in _COUNTS:
            return None
        value = first + "".join(cookies.get(name, "") for name in _NAMES[1 : int(count)])
        if len(value) > PARTS * PART:
            return None
        try:
            raw = base64.b64decode(value, altchars=b"-_", validate=True)
            plain = self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], _PURPOSE)
        except (binascii.Error, ValueError, InvalidTag):
            return None
        (ends_at,) = _ENDS.unpack_from(plain)
        if ends_at <= self._clock.now().timestamp():
            return None
        return TokenSession(plain[_ENDS.size :].decode(), ends_at)

    def _set(self, answer: web.StreamResponse, name: str, value: str, *, lifetime: int, secure: bool) -> None:
        answer.set_cookie(
            name, value, max_age=lifetime, path=self._path, secure=secure, httponly=True, samesite="Strict"
        )


class SessionKey:
    """The key of session cookies. A runnable of the manager."""

    def __init__(self, client: Client, *, namespace: str, path: str, clock: Clock) -> None:
        self._client = client
        self._namespace = namespace
        self._path = path
        self._clock = clock
        self._cookies: SessionCookies | None = None

    async def start(self) -> None:
        """Read the key, or create it. Raises `RuntimeFailure` with a remedy."""
        key = await own_key(self._client, UI_SECRET, namespace=self._namespace)
        self._cookies = SessionCookies(key, path=self._path, clock=self._clock)

    async def stop(self) -> None:
        """Keep the key, because requests in progress may still need it."""

    def cookies(self) -> SessionCookies:
        """Return the cookies under this key, once the program has started."""
        if self._cookies is None:
            raise RuntimeError("sessions are asked for before the program has started")
        return self._cookies


_NAMES = (NAME, *(f"{NAME}-{number}" for number in range(1, PARTS)))
_COUNTS = frozenset(str(number) for number in range(1, PARTS + 1))
