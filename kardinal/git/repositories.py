"""The repositories of one process.

The same URL with the same credentials for the same owner is the same object: one mirror, one writer per branch, one
fetch for all callers. Short-lived tokens of one identity count as the same credentials, and the newest token is used.
The owner is the namespace for which a remote repository is opened; transfers count for its share. A cache directory
contains only mirrors, which can be deleted at any time while no process uses them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from kardinal.clock import Clock
from kardinal.git.addresses import HostAddresses
from kardinal.git.backend import Backend
from kardinal.git.cache import CACHE_SIZE, Cache
from kardinal.git.credentials import GitCredentials
from kardinal.git.local import LocalBackend
from kardinal.git.mirror import MirrorBackend
from kardinal.git.repository import Repository
from kardinal.git.runner import GitRunner
from kardinal.git.transfers import TransferLimits
from kardinal.git.values import Observer
from kardinal.processes.memory_shares import AVAILABLE, MemoryPool, children_memory
from kardinal.tree.repository_url import RepositoryURL

__all__ = ["Repositories"]


def _unobserved(operation: str, seconds: float, outcome: str) -> None:
    """Ignore an operation."""


class Repositories:
    """Open repositories by URL.

    `memory`: the memory of the container in bytes, of which all transfers together get a part.
    """

    def __init__(
        self,
        cache_dir: Path,
        *,
        runner: GitRunner,
        clock: Clock,
        allow_local: bool,
        allow_bypassing_hooks: bool = False,
        insecure: Sequence[str] = (),
        on_operation: Observer = _unobserved,
        limits: TransferLimits | None = None,
        memory: int = AVAILABLE,
        cache_size: int = CACHE_SIZE,
        addresses: HostAddresses | None = None,
    ) -> None:
        self._cache = Cache(cache_dir, size=cache_size)
        self._runner = runner
        self._clock = clock
        self._allow_local = allow_local
        self._bypasses_hooks = allow_bypassing_hooks
        self._insecure = insecure
        self._observer = on_operation
        self._limits = limits or TransferLimits()
        share = children_memory(memory)
        self._memory = MemoryPool(each=share, total=share)
        self._addresses = addresses
        self._open: dict[tuple[str, str, str], tuple[Repository, Backend]] = {}
        self._fetches = 0

    @property
    def fetches(self) -> int:
        """The number of fetches begun since the start."""
        return self._fetches

    def parse(self, url: str) -> RepositoryURL:
        """Return the validated form of a URL. Raises `InvalidRepositoryURL` or `LocalRepositoryRefused`."""
        return RepositoryURL.parse(url, allow_local=self._allow_local, insecure=self._insecure)

    def open(self, url: str, credentials: GitCredentials | None = None, *, owner: str = "") -> Repository:
        """Return the repository at `url` without contacting it. Raises the same errors as `parse`."""
        parsed = self.parse(url)
        key = (parsed.text, "", "") if parsed.path else (parsed.text, credentials.key if credentials else "", owner)
        if key not in self._open:
            backend = self._backend(parsed, credentials, owner)
            repository = Repository(backend, runner=self._runner, clock=self._clock, observer=self._observer)
            self._open[key] = repository, backend
        repository, backend = self._open[key]
        if isinstance(backend, MirrorBackend):
            backend.credentials = credentials
        return repository

    def open_copy(self, url: str, directory: str) -> Repository:
        """Return the repository at `url` from its copy in a local directory; errors name the URL."""
        backend = LocalBackend(self.parse(url), directory, runner=self._runner)
        return Repository(backend, runner=self._runner, clock=self._clock, observer=self._observer)

    async def close(self) -> None:
        """Finish the current operations in every repository."""
        await asyncio.gather(*(repository.close() for repository, _ in self._open.values()))
        self._cache.close()

    def _backend(self, url: RepositoryURL, credentials: GitCredentials | None, owner: str) -> Backend:
        if url.path is not None:
            return LocalBackend(url, url.path, runner=self._runner, allow_bypassing_hooks=self._bypasses_hooks)
        return MirrorBackend(
            url,
            credentials,
            owner=owner,
            cache=self._cache,
            runner=self._runner,
            clock=self._clock,
            limits=self._limits,
            memory=self._memory,
            addresses=self._addresses,
            on_fetch=self._count_fetch,
        )

    def _count_fetch(self) -> None:
        self._fetches += 1
