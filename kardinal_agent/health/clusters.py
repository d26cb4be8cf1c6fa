"""The clusters that environments are proved in: the agent's own, and those of `health.cluster`.

Another cluster is a Secret with a kubeconfig in the namespace of the PromotionStep, with the label
`kardinal.io/credentials: kubeconfig`. Each such Secret has one connection, which is shared by the promotions that use
it and closed when the last of them has ended.

Answers of such a server are not quoted: the author of the kubeconfig chooses the server, so a team could otherwise read
answers of hosts that only the agent can reach. The size of its answers is bounded, and so is the memory for all answers
to one namespace.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from kardinal.kube import (
    TENANT,
    Client,
    ClusterAccess,
    ConfigError,
    Connection,
    KubeError,
    NotFound,
    Room,
    embedded_access,
)
from kardinal.objects import SECRET, Key, labels_of
from kardinal.objects.secret_purposes import CREDENTIALS_KUBECONFIG, LABEL_CREDENTIALS
from kardinal.objects.secrets import SecretValueError, secret_text
from kardinal.promotion.api import PromotionStep
from kardinal.runtime import Channel, DynamicInformers, KeyMemory
from kardinal_agent.health.watching import HealthWatches, ObjectUnreadable

__all__ = ["Clusters"]

_KEY = "kubeconfig"


@dataclass(eq=False)
class _Remote:
    """A connection to another cluster with the keys of the promotions that use it."""

    watches: HealthWatches
    closing: AsyncExitStack
    users: set[Key] = field(default_factory=set)


class Clusters:
    """Opens and closes the connections of one agent."""

    def __init__(
        self,
        informers: DynamicInformers,
        channel: Channel,
        *,
        secrets: Client,
        namespaces: Mapping[str, str],
        memory: KeyMemory,
    ) -> None:
        self.own = HealthWatches(informers, channel)
        self._informers = informers
        self._channel = channel
        self._secrets = secrets
        self._namespaces = namespaces
        self._remotes: dict[Key, _Remote] = {}
        self._used: dict[Key, Key] = {}
        self._rooms: weakref.WeakValueDictionary[str, Room] = weakref.WeakValueDictionary()
        """The memory budget of each namespace with connections; an entry ends with the last of them."""
        self._opening = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()
        memory.on_drop(self._release)

    async def watches_of(self, step: PromotionStep) -> HealthWatches:
        """Return the watches in the cluster of an environment; raises `ObjectUnreadable` if it cannot be reached."""
        cluster = step.spec.health.cluster
        if cluster is None:
            return self.own
        hub = step.metadata.namespace
        secret = Key(self._namespaces.get(hub, hub), cluster)
        user = Key(hub, step.metadata.name)
        async with self._opening:
            if secret not in self._remotes:
                self._remotes[secret] = await self._open(secret)
        self._remotes[secret].users.add(user)
        self._used[user] = secret
        return self._remotes[secret].watches

    def _release(self, key: Key) -> None:
        """Stop all watches of a promotion, and close its connection if no other promotion uses it."""
        self.own.release(key)
        secret = self._used.pop(key, None)
        remote = self._remotes.get(secret) if secret is not None else None
        if secret is None or remote is None:
            return
        remote.watches.release(key)
        remote.users.discard(key)
        if not remote.users:
            del self._remotes[secret]
            task = asyncio.get_running_loop().create_task(remote.closing.aclose(), name=f"close cluster {secret}")
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def start(self) -> None:
        """Do nothing: each connection is opened at its first use."""

    async def stop(self) -> None:
        """Close every connection."""
        for remote in self._remotes.values():
            await remote.closing.aclose()
        self._remotes.clear()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _open(self, secret: Key) -> _Remote:
        async def load() -> ClusterAccess:
            return await self._access(secret)

        try:
            connection = Connection(await load(), load=load)
        except ConfigError as error:
            raise ObjectUnreadable(str(error)) from None
        async with AsyncExitStack() as stack:
            room = self._rooms.setdefault(secret.namespace, Room())
            client = await stack.enter_async_context(
                Client(connection, user_agent="kardinal-agent", bounds=TENANT, room=room)
            )
            informers = self._informers.of(client)
            stack.push_async_callback(informers.close)
            watches = HealthWatches(informers, self._channel, cluster=secret.name)
            return _Remote(watches, stack.pop_all())

    async def _access(self, secret: Key) -> ClusterAccess:
        """Return the access of the kubeconfig in a Secret, which is read again each time. Raises `ConfigError`."""
        where = f"health.cluster: Secret {secret}"
        try:
            found = await self._secrets.get(SECRET, secret.name, secret.namespace)
        except NotFound:
            raise ConfigError(f"{where} does not exist: create it with a {_KEY}") from None
        except KubeError as error:
            raise ConfigError(f"{where} cannot be read: {type(error).__name__}") from None
        if labels_of(found).get(LABEL_CREDENTIALS) != CREDENTIALS_KUBECONFIG:
            mark = f"{LABEL_CREDENTIALS}={CREDENTIALS_KUBECONFIG}"
            command = f"kubectl -n {secret.namespace} label secret {secret.name} {mark}"
            raise ConfigError(f"{where} does not say that it is for this: {command}")
        try:
            if text := secret_text(found, _KEY):
                return await asyncio.to_thread(embedded_access, text)
        except (SecretValueError, ConfigError) as error:
            raise ConfigError(f"{where}: {error}") from None
        raise ConfigError(f"{where} has no key {_KEY}")
