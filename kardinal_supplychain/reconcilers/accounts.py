"""The ServiceAccounts with whose rights objects are stamped.

An owner names one of its own namespace; otherwise the blueprint names one, which may be in another namespace; otherwise
it is `default`. Requests are made as the account, so the API server decides about each of them, and refuses all unless
a Role in the namespace of the account lets the program impersonate it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from kardinal.objects import SERVICE_ACCOUNT, JsonObject, Key, ResourceType
from kardinal.objects.errors import KardinalError
from kardinal.runtime import DynamicInformers, Event, Handle, KeyMemory
from kardinal_supplychain.api.fields import ServiceAccountReference
from kardinal_supplychain.reconcilers.uses import Uses

__all__ = ["AccountError", "Accounts", "StampingAccount", "account_of"]

READ_SECONDS: Final = 5.0
"""Seconds of real time that the start waits for the list of accounts."""

DEFAULT: Final = "default"
"""The account that each namespace has."""

_RBAC = "rbac.authorization.k8s.io"
ROLE: Final = ResourceType(_RBAC, "v1", "Role", "roles")
ROLE_BINDING: Final = ResourceType(_RBAC, "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE_BINDING: Final = ResourceType(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class AccountError(KardinalError):
    """There is no such account."""


class StampingAccount(NamedTuple):
    """A ServiceAccount."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """The name of its user, such as `system:serviceaccount:team:deployer`."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"


def account_of(namespace: str, name: str | None, reference: ServiceAccountReference | None) -> StampingAccount:
    """Return the account for an owner of a namespace that names one, with a blueprint that does. Raises `AccountError`.

    A name that is none, such as `other:default`, would be that of another account to the API server.
    """
    account = StampingAccount(namespace, DEFAULT)
    if name:
        account = StampingAccount(namespace, name)
    elif reference is not None:
        account = StampingAccount(reference.namespace or namespace, reference.name)
    if not _NAME.fullmatch(account.name) or not _NAMESPACE.fullmatch(account.namespace):
        raise AccountError(f"[{account.namespace}/{account.name}] is no name of a service account")
    return account


class Accounts:
    """Which accounts there are, and the owners that wait for one, or for its rights."""

    def __init__(self, dynamic: DynamicInformers, *, memory: KeyMemory, push: Callable[[Key], None]) -> None:
        self._dynamic = dynamic
        self._push = push
        self._users: Uses[StampingAccount] = Uses(memory)
        self._known: Handle | None = None
        self._awaiting: dict[Key, tuple[frozenset[str], list[Handle]]] = {}
        memory.on_drop(self.stop_awaiting_rights)

    async def start(self) -> None:
        """Watch ServiceAccounts; where that is not allowed, each counts as existing."""
        self._known = self._dynamic.open(SERVICE_ACCOUNT, projection=_name_alone, changed=self._changed)
        await self._known.wait_read_within(READ_SECONDS)

    async def stop(self) -> None:
        """Close all watches."""
        for owner in list(self._awaiting):
            self.stop_awaiting_rights(owner)
        if self._known is not None:
            self._known.close()

    def require(self, owner: Key, account: StampingAccount) -> None:
        """Raise `AccountError` if there is no such account; `owner` is woken once there is."""
        self._users.note(owner, [account])
        known = self._known
        if account.name == DEFAULT or known is None or not known.synced:
            return
        if known.get(account.namespace, account.name) is None:
            raise AccountError(f"service account [{account.namespace}/{account.name}] does not exist")

    def await_rights(self, owner: Key, account: StampingAccount) -> None:
        """Wake `owner` at each change of rights in its own namespace, in that of the account, and in all namespaces.

        A ClusterRole whose rules change is not noticed.
        """
        namespaces = frozenset((owner.namespace, account.namespace))
        if owner in self._awaiting and self._awaiting[owner][0] == namespaces:
            return
        self.stop_awaiting_rights(owner)
        changed = partial(self._right_changed, owner)
        handles = [
            self._dynamic.open(
                resource,
                namespaces=sorted(namespaces) if resource.namespaced else (None,),
                projection=_name_alone,
                changed=changed,
            )
            for resource in (ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING)
        ]
        self._awaiting[owner] = namespaces, handles

    def stop_awaiting_rights(self, owner: Key) -> None:
        """Undo `await_rights`; nothing happens if it was not called."""
        _, handles = self._awaiting.pop(owner, (frozenset(), []))
        for handle in handles:
            handle.close()

    def _changed(self, event: Event | None) -> None:
        if event is not None:
            for owner in self._users.users(StampingAccount(*event.key)):
                self._push(owner)

    def _right_changed(self, owner: Key, event: Event | None) -> None:
        if event is not None:
            self._push(owner)


def _name_alone(obj: JsonObject) -> JsonObject:
    fields = ("name", "namespace", "uid", "resourceVersion")
    metadata = obj["metadata"]
    return {"metadata": {field: metadata[field] for field in fields if field in metadata}}
