"""The identities that have a kubeconfig, and the tokens that prove them.

The person who started the plane may do everything, and so may the installer, which puts there what the programs need.
Any other program is the ServiceAccount it would be in a cluster, with the rights that bindings give to that account
and no others. Each has a random token of its own, so that the request log can tell who wrote what and the programs
share no secret. A kubeconfig is a file of its own; `~/.kube/config` is never touched. What touches files belongs in a
thread.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from pathlib import Path

import orjson

from kardinal_local.plane.security.authority import Authority
from kardinal_local.plane.security.private import write_private
from kardinal_local.plane.security.users import AUTHENTICATED, MASTERS, User, account_groups, account_name

__all__ = ["IDENTITIES", "Tokens", "write_kubeconfig"]

IDENTITIES = ("admin", "installer", "controller", "agent", "simulator", "supplychain")
_MASTERS = frozenset({"admin", "installer"})
"""The identities that no rule can refuse anything."""
PROGRAMS_NAMESPACE = "kardinal-system"
_KEY = "accounts"


class Tokens:
    """The bearer tokens of the identities, kept across restarts so that a kubeconfig stays good.

    `key` is what the tokens of ServiceAccounts are signed with.
    """

    def __init__(self, secret: dict[str, str]) -> None:
        self._tokens = {name: secret[name] for name in IDENTITIES}
        self.key = secret[_KEY].encode()
        # Looked up by digest, so that the time of a lookup says nothing about the token.
        self._users = {_digest(token): _user(name) for name, token in self._tokens.items()}

    @classmethod
    def load_or_create(cls, directory: Path) -> Tokens:
        path = directory / "tokens.json"
        secret: dict[str, str] = orjson.loads(path.read_bytes()) if path.exists() else {}
        missing = [name for name in (*IDENTITIES, _KEY) if name not in secret]
        if missing:
            secret.update({name: secrets.token_urlsafe(32) for name in missing})
            write_private(path, orjson.dumps(secret))
        return cls(secret)

    def of(self, identity: str) -> str:
        return self._tokens[identity]

    def authenticate(self, token: str) -> User | None:
        return self._users.get(_digest(token))


def write_kubeconfig(path: Path, *, server: str, authority: Authority, identity: str, token: str) -> None:
    """A kubeconfig with one cluster, one user and one context, in a file of its own."""
    authority_data = base64.b64encode(authority.certificate).decode()
    content = f"""\
apiVersion: v1
kind: Config
current-context: kardinal-local
clusters:
- name: kardinal-local
  cluster:
    server: {server}
    certificate-authority-data: {authority_data}
users:
- name: {identity}
  user:
    token: {token}
contexts:
- name: kardinal-local
  context:
    cluster: kardinal-local
    user: {identity}
    namespace: default
"""
    write_private(path, content.encode())


def _user(identity: str) -> User:
    if identity in _MASTERS:
        return User(identity, (MASTERS, AUTHENTICATED))
    groups = (*account_groups(PROGRAMS_NAMESPACE), AUTHENTICATED)
    return User(account_name(PROGRAMS_NAMESPACE, f"kardinal-{identity}"), groups)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
