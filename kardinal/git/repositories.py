"""The repositories of one process.

The same URL with the same credentials is the same object: one mirror, one writer per branch, one fetch for
everybody. A cache directory holds nothing but mirrors, which can be deleted at any time while no process uses them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from kardinal.git.credentials import Credentials
from kardinal.git.local import LocalBackend
from kardinal.git.repository import Repository
from kardinal.git.runner import GitRunner
from kardinal.git.urls import RepositoryURL
from kardinal.git.values import Observer
from kardinal.runtime.clock import Clock

__all__ = ["Repositories"]


def _unobserved(operation: str, seconds: float, outcome: str) -> None:
    """Nobody is interested."""


class Repositories:
    """Opens repositories by URL."""

    def __init__(
        self,
        cache_dir: Path,
        *,
        runner: GitRunner,
        clock: Clock,
        allow_local: bool,
        on_operation: Observer = _unobserved,
    ) -> None:
        self._cache_dir = cache_dir
        self._runner = runner
        self._clock = clock
        self._allow_local = allow_local
        self._observer = on_operation
        self._open: dict[tuple[str, Credentials | None], Repository] = {}
        self.fetches = 0

    def open(self, url: str, credentials: Credentials | None = None) -> Repository:
        """The repository at `url`. Nothing is contacted yet; a URL that is not acceptable raises."""
        parsed = RepositoryURL.parse(url, allow_local=self._allow_local)
        key = (parsed.text, None if parsed.path else credentials)
        repository = self._open.get(key)
        if repository is None:
            if parsed.path is None:
                raise AssertionError("remote")
            backend = LocalBackend(parsed, parsed.path, runner=self._runner)
            repository = self._open[key] = Repository(
                backend, runner=self._runner, clock=self._clock, observer=self._observer
            )
        return repository

    async def close(self) -> None:
        """Finish what is under way in every repository."""
        await asyncio.gather(*(repository.close() for repository in self._open.values()))
