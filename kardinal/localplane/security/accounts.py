"""Tokens of ServiceAccounts: who asks gets one, for some audience and some time (local-plane.md 2.4).

A token is a JSON Web Token with the claims of the real server, signed by a key of this plane. Nothing about it is
stored: it is as good as its signature, its time, and the account (and the object it is bound to) that it names by UID;
deleting any of these ends it. Looking at the signature takes a hundred microseconds, so that tokens seen before are
known by their digest; the rest is looked at every time.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.security.private import write_private
from kardinal.localplane.security.rules import listed, quoted
from kardinal.localplane.security.users import AUTHENTICATED, User, account_groups, account_name
from kardinal.localplane.storage import Committed, Entry
from kardinal.runtime.clock import Clock

__all__ = ["ISSUER", "Accounts", "Authenticated", "TokenRefused", "load_or_create_key"]

ISSUER = "https://kubernetes.default.svc.cluster.local"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_COORDINATE = 32
_REMEMBERED = 1024


class TokenRefused(Exception):
    """A token that is one of ours by its looks, and why it is not good."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """Who a token speaks for, and to whom it may be shown."""

    user: User
    audiences: tuple[str, ...]


class Accounts:
    """Issues tokens and knows them again."""

    def __init__(self, store: Committed, *, key: ec.EllipticCurvePrivateKey, clock: Clock) -> None:
        self._store = store
        self._key = key
        self._key_id = _key_id(key)
        self._clock = clock
        self._seen: dict[bytes, dict[str, Any]] = {}

    def issue(self, account: Entry, *, audiences: Sequence[str], lifetime: timedelta, bound: Entry | None) -> str:
        """A token of `account`; `bound` is the object whose end is its end too."""
        now = int(self._clock.now().timestamp())
        about: JsonObject = {
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        }
        if bound is not None:
            about[bound.resource.removesuffix("s")] = {"name": bound.name, "uid": bound.uid}
        claims = {
            "aud": list(audiences),
            "exp": now + int(lifetime.total_seconds()),
            "iat": now,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": about,
            "nbf": now,
            "sub": account_name(account.namespace, account.name),
        }
        return self._sign({"alg": "ES256", "kid": self._key_id}, claims)

    def authenticate(self, token: str, *, audiences: Sequence[str]) -> Authenticated | None:
        """Who shows the token; None when it is not ours, `TokenRefused` when it is and is no longer good."""
        claims = self._claims(token)
        if claims is None:
            return None
        common = tuple(audience for audience in audiences if audience in claims["aud"])
        if not common:
            shown, expected = listed(claims["aud"]), listed(audiences)
            raise TokenRefused(f"token audiences {shown} is invalid for the target audiences {expected}")
        now = self._clock.now().timestamp()
        if now >= claims["exp"]:
            raise TokenRefused("service account token has expired")
        return Authenticated(self._user(claims), common)

    def _user(self, claims: dict[str, Any]) -> User:
        about = claims["kubernetes.io"]
        namespace, named = about["namespace"], about["serviceaccount"]
        self._require_account(namespace, named)
        extra = [(_CREDENTIAL, (f"JTI={claims['jti']}",))]
        for kind in ("pod", "secret"):
            if kind in about:
                self._require_bound(f"{kind}s", namespace, about[kind])
        if "pod" in about:
            extra.append(("authentication.kubernetes.io/pod-name", (about["pod"]["name"],)))
            extra.append(("authentication.kubernetes.io/pod-uid", (about["pod"]["uid"],)))
        groups = (*account_groups(namespace), AUTHENTICATED)
        return User(claims["sub"], groups, named["uid"], tuple(extra))

    def _require_account(self, namespace: str, named: dict[str, str]) -> None:
        entry = self._store.get("serviceaccounts", namespace=namespace, name=named["name"])
        if entry is None:
            raise TokenRefused(f"serviceaccounts {quoted(named['name'])} not found")
        if entry.uid != named["uid"]:
            raise TokenRefused(f"service account UID ({entry.uid}) does not match claim ({named['uid']})")

    def _require_bound(self, resource: str, namespace: str, named: dict[str, str]) -> None:
        entry = self._store.get(resource, namespace=namespace, name=named["name"])
        if entry is None or entry.uid != named["uid"]:
            raise TokenRefused("service account token has been invalidated")

    def _sign(self, header: JsonObject, claims: JsonObject) -> str:
        content = f"{_encode(orjson.dumps(header))}.{_encode(orjson.dumps(claims))}"
        r, s = decode_dss_signature(self._key.sign(content.encode(), ec.ECDSA(hashes.SHA256())))
        signature = r.to_bytes(_COORDINATE, "big") + s.to_bytes(_COORDINATE, "big")
        return f"{content}.{_encode(signature)}"

    def _claims(self, token: str) -> dict[str, Any] | None:
        """What a token of ours says, good or not."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        if (seen := self._seen.get(digest)) is not None:
            return seen
        claims = self._verified(token)
        if claims is not None:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[digest] = claims
        return claims

    def _verified(self, token: str) -> dict[str, Any] | None:
        content, _, signature = token.rpartition(".")
        try:
            raw = _decode(signature)
            r, s = int.from_bytes(raw[:_COORDINATE], "big"), int.from_bytes(raw[_COORDINATE:], "big")
            self._key.public_key().verify(encode_dss_signature(r, s), content.encode(), ec.ECDSA(hashes.SHA256()))
            claims: dict[str, Any] = orjson.loads(_decode(content.partition(".")[2]))
        except (ValueError, InvalidSignature):
            return None
        return claims


def load_or_create_key(directory: Path) -> ec.EllipticCurvePrivateKey:
    """The key that signs the tokens of `directory`, made at the first call; belongs in a thread."""
    path = directory / "accounts.pem"
    if path.exists():
        key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{path} holds a key of another kind")
        return key
    key = ec.generate_private_key(ec.SECP256R1())
    content = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_private(path, content)
    return key


def _key_id(key: ec.EllipticCurvePrivateKey) -> str:
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return _encode(hashlib.sha256(public).digest())


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
