"""The users that requests come from: their names and groups.

A ServiceAccount is a user as any other, with a name and groups that follow from where it lives; nothing but these names
connects an account with the rights that bindings give it.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ANONYMOUS",
    "AUTHENTICATED",
    "MASTERS",
    "NODE_NAME",
    "UNAUTHENTICATED",
    "User",
    "account_groups",
    "account_name",
    "account_of",
]

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
NODE_NAME = "authentication.kubernetes.io/node-name"
"""What a user is said to run on: the name of a machine."""
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class User:
    """Who a request comes from; `extra` is what its authentication wants to say besides."""

    name: str
    groups: tuple[str, ...]
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def is_master(self) -> bool:
        """Whether no rule can refuse this user anything."""
        return MASTERS in self.groups


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


def account_name(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount."""
    return f"{_ACCOUNT}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every ServiceAccount of a namespace."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name of the ServiceAccount that a user name stands for."""
    namespace, colon, name = user.removeprefix(_ACCOUNT).partition(":")
    if not user.startswith(_ACCOUNT) or not colon or not namespace or not name or ":" in name:
        return None
    return namespace, name
