"""The Secrets that sign deliveries of Git hosts, each read once in `LIFETIME` seconds.

A Secret is used only if it says that it is for webhooks, and its value is too long to be guessed. An unusable Secret
counts as an empty one, which signs nothing; the log has the reason.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus

from kardinal.clock import Clock
from kardinal.kube import Client, Forbidden, KubeError, NotFound
from kardinal.objects import SECRET, Key
from kardinal.runtime.logging import get_logger
from kardinal_controller.http.problem import ProblemError
from kardinal_controller.webhook_secrets import webhook_secret

__all__ = ["HostSecrets"]

LIFETIME = 5.0
"""The time in seconds for which a Secret, or its absence, is cached."""
REMEMBERED = 4096
"""The most Secrets in the cache."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry:
    secret: bytes
    until: float


class HostSecrets:
    """Read and cache the Secrets of `git.webhookSecretRef`."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._reading = asyncio.Lock()

    def __len__(self) -> int:
        """Return the number of Secrets in the cache."""
        return len(self._entries)

    async def read(self, key: Key) -> bytes:
        """Return the value of a Secret; empty if it must not be used. Raises `ProblemError` 503."""
        # Read once for all callers that wait for it.
        async with self._reading:
            entry = self._entries.get(key)
            now = self._clock.monotonic()
            if entry is None or entry.until <= now:
                entry = _Entry(await self._read(key), now + LIFETIME)
                self._entries[key] = entry
                self._entries.move_to_end(key)
                while len(self._entries) > REMEMBERED:
                    self._entries.popitem(last=False)
        return entry.secret

    async def _read(self, key: Key) -> bytes:
        try:
            secret = await self._client.get(SECRET, key.name, key.namespace)
        except (NotFound, Forbidden) as error:
            _log.warning("the Secret of a webhook cannot be read", secret=str(key), error=type(error).__name__)
            return b""
        except KubeError as error:
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE, "the API server did not answer; try again", headers={"Retry-After": "5"}
            ) from error
        value, problem = webhook_secret(secret)
        if problem:
            _log.warning(f"the Secret of a webhook is not used: {problem}", secret=str(key))
        return value
