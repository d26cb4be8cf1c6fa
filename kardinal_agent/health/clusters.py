"""The clusters that environments are proved in: the agent's own, and those of `health.cluster`.

Another cluster is a Secret of the PromotionStep's namespace with a kubeconfig, marked for that use. There is one
connection for each such Secret, shared by the promotions that use it and closed when the last of them has ended.

What the servers say there is not told: who writes the kubeconfig chooses the server, which would make the agent a way
to read the answers of hosts that its author cannot reach. How much they say is bounded, and what is kept of it for one
namespace.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from kardinal.api import PromotionStep, names
from kardinal.kube import TENANT, Access, Client, ConfigError, Connection, KubeError, NotFound, Room, embedded_access
from kardinal.objects import SECRET, Key, labels_of
from kardinal.objects.secrets import SecretValueError, secret_text
from kardinal.runtime import Channel, DynamicInformers
from kardinal_agent.health.watching import HealthWatches, Unreadable

__all__ = ["Clusters"]

_KEY = "kubeconfig"


@dataclass(eq=False)
class _Remote:
    """A connection to another cluster, and the promotions that use it."""

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
    ) -> None:
        self.own = HealthWatches(informers, channel)
        self._informers = informers
        self._channel = channel
        self._secrets = secrets
        self._namespaces = namespaces
        self._remotes: dict[Key, _Remote] = {}
        self._used: dict[Key, Key] = {}
        self._rooms: weakref.WeakValueDictionary[str, Room] = weakref.WeakValueDictionary()
        """The memory for the clusters of a namespace, for as long as there are some."""
        self._opening = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()

    async def watches_of(self, step: PromotionStep) -> HealthWatches:
        """Return the watches of the cluster in which a step is proved; raises `Unreadable` where there is none."""
        cluster = step.spec.health.cluster
        if cluster is None:
            return self.own
        hub = step.metadata.namespace
        secret, user = Key(self._namespaces.get(hub, hub), cluster), Key(hub, step.metadata.name)
        async with self._opening:
            if secret not in self._remotes:
                self._remotes[secret] = await self._open(secret)
        self._remotes[secret].users.add(user)
        self._used[user] = secret
        return self._remotes[secret].watches

    def release(self, key: Key) -> None:
        """Look at nothing for a promotion any more, and close the connection that it was the last to use."""
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
        """Start nothing: a connection is opened when it is first used."""

    async def stop(self) -> None:
        """Close every connection."""
        for remote in self._remotes.values():
            await remote.closing.aclose()
        self._remotes.clear()
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def _open(self, secret: Key) -> _Remote:
        async def load() -> Access:
            return await self._access(secret)

        try:
            connection = Connection(await load(), load=load)
        except ConfigError as error:
            raise Unreadable(str(error)) from None
        async with AsyncExitStack() as stack:
            room = self._rooms.setdefault(secret.namespace, Room())
            client = await stack.enter_async_context(
                Client(connection, user_agent="kardinal-agent", bounds=TENANT, room=room)
            )
            informers = self._informers.of(client)
            stack.push_async_callback(informers.close)
            watches = HealthWatches(informers, self._channel, cluster=secret.name)
            return _Remote(watches, stack.pop_all())

    async def _access(self, secret: Key) -> Access:
        """Read the Secret, which may have changed since. Raises `ConfigError`."""
        where = f"health.cluster: Secret {secret}"
        try:
            found = await self._secrets.get(SECRET, secret.name, secret.namespace)
        except NotFound:
            raise ConfigError(f"{where} does not exist: create it with a {_KEY}") from None
        except KubeError as error:
            raise ConfigError(f"{where} cannot be read: {type(error).__name__}") from None
        if labels_of(found).get(names.LABEL_CREDENTIALS) != names.CREDENTIALS_KUBECONFIG:
            mark = f"{names.LABEL_CREDENTIALS}={names.CREDENTIALS_KUBECONFIG}"
            command = f"kubectl -n {secret.namespace} label secret {secret.name} {mark}"
            raise ConfigError(f"{where} does not say that it is for this: {command}")
        try:
            if text := secret_text(found, _KEY):
                return await asyncio.to_thread(embedded_access, text)
        except (SecretValueError, ConfigError) as error:
            raise ConfigError(f"{where}: {error}") from None
        raise ConfigError(f"{where} has no key {_KEY}")
