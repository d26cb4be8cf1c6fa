"""Issue and verify the tokens of ServiceAccounts, each for some audience and some time.

A token is a JSON Web Token with the claims of the real server, signed with a secret of this plane: only the
plane itself asks whether a token is one of its own. Nothing about it is stored: it is as
good as its signature, its time, and the account (and the object it is bound to) that it names by UID; deleting any of
these ends it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

import orjson

from kardinal_local.plane.clock import Clock
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.security.rules import listed, quoted
from kardinal_local.plane.security.users import AUTHENTICATED, NODE_NAME, User, account_groups, account_name
from kardinal_local.plane.storage import Committed, Entry

__all__ = ["ISSUER", "Accounts", "Authenticated", "TokenRefused"]

ISSUER = "https://kubernetes.default.svc.cluster.local"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
_REMEMBERED = 1024
_HEADER = {"alg": "HS256", "typ": "JWT"}


class TokenRefused(Exception):
    """A token that is one of ours by its looks, and why it is not good."""


@dataclass(frozen=True, slots=True)
class Authenticated:
    """Who a token speaks for, and to whom it may be shown."""

    user: User
    audiences: tuple[str, ...]


class Accounts:
    """Issues tokens and knows them again."""

    def __init__(self, store: Committed, *, key: bytes, clock: Clock) -> None:
        self._store = store
        self._key = key
        self._clock = clock
        # What a token says never changes; whether it is still good is looked at every time.
        self._claims = lru_cache(maxsize=_REMEMBERED)(self._verified)

    def issue(self, account: Entry, *, audiences: Sequence[str], lifetime: timedelta, bound: Entry | None) -> str:
        """A token of `account`; `bound` is the object whose end is its end too."""
        now = int(self._clock.now().timestamp())
        about: JsonObject = {
            "namespace": account.namespace,
            "serviceaccount": {"name": account.name, "uid": account.uid},
        }
        if bound is not None:
            about[bound.resource.removesuffix("s")] = {"name": bound.name, "uid": bound.uid}
            if node := (bound.decode().get("spec") or {}).get("nodeName"):
                about["node"] = {"name": node}
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
        content = f"{_encode(orjson.dumps(_HEADER))}.{_encode(orjson.dumps(claims))}"
        return f"{content}.{_encode(self._signature(content))}"

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
        if "node" in about:
            extra.append((NODE_NAME, (about["node"]["name"],)))
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

    def _signature(self, content: str) -> bytes:
        return hmac.digest(self._key, content.encode("utf-8", "surrogateescape"), hashlib.sha256)

    def _verified(self, token: str) -> dict[str, Any] | None:
        """What a token of ours says, good or not."""
        content, _, signature = token.rpartition(".")
        try:
            if not hmac.compare_digest(_decode(signature), self._signature(content)):
                return None
        except ValueError:
            return None
        claims: dict[str, Any] = orjson.loads(_decode(content.partition(".")[2]))
        return claims


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
