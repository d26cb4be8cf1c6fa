"""The sources of a catalog with the access of the user who runs a command.

Remote repositories are mirrored below the user's cache directory by the user's own git, whose configuration may rewrite
URLs and have credentials. Local repositories are read in place. A commit that a mirror has needs no network.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from kardinal.catalog.contracts import Resolved, SourceTree
from kardinal.catalog.errors import CatalogError
from kardinal.cli.checkout import ask_git
from kardinal.cli.errors import CommandError
from kardinal.clock import SystemClock
from kardinal.git import CommitNotFound, GitRunner, Repositories, Repository
from kardinal.git.names import HEADS, check_ref
from kardinal.git.trees import TreeStore
from kardinal.objects.errors import KardinalError

__all__ = ["CallerSources", "cache_directory", "caller_sources"]

_PROTOCOLS = "https:http:ssh:file"
"""Git may read local directories here, to which only the user's configuration can rewrite a remote URL."""
_FETCHES = 8
"""The most fetches at the same time."""
_FULL_ID = 40


class CallerSources:
    """The `CatalogSources` of a command. `offline`: nothing is fetched."""

    def __init__(self, cache: Path, repositories: Repositories, runner: GitRunner, *, offline: bool) -> None:
        self._cache = cache
        self._repositories = repositories
        self._runner = runner
        self._offline = offline
        self.trees = cache / "trees"
        """The directory below which all trees lie."""
        self._store = TreeStore(self.trees)
        self._places = asyncio.Semaphore(_FETCHES)
        self._kept: set[tuple[str, str]] = set()
        self._fetched: dict[str, asyncio.Task[None]] = {}

    async def resolve(self, url: str, version: str) -> Resolved:
        with _as_catalog_errors():
            repository, mirror = self._open(url)
            if mirror is not None:
                if len(version) == _FULL_ID and await asyncio.to_thread(mirror.is_dir):
                    with suppress(CommitNotFound):
                        return Resolved((await repository.revision(version)).commit)
                await self._fetch(url, mirror)
            found = await repository.revision(version)
            return Resolved(found.commit, found.branch)

    async def tree(self, url: str, commit: str, path: str) -> SourceTree:
        with _as_catalog_errors():
            repository, mirror = self._open(url)
            if mirror is None:
                return SourceTree(*await repository.extract(commit, path, self._store))
            if await asyncio.to_thread(mirror.is_dir):
                with suppress(CommitNotFound):
                    return await self._extract(repository, commit, path)
            await self._fetch(url, mirror)
            return await self._extract(repository, commit, path)

    async def download(self, url: str, digest: str) -> tuple[str, Path]:
        raise CatalogError("fetch", f"{url} is not downloaded")

    async def _extract(self, repository: Repository, commit: str, path: str) -> SourceTree:
        """Return the tree of a commit in a mirror, which keeps the commit from now on."""
        found = SourceTree(*await repository.extract(commit, path, self._store))
        if (repository.url, commit) not in self._kept:
            await repository.keep(commit)
            self._kept.add((repository.url, commit))
        return found

    def _open(self, url: str) -> tuple[Repository, Path | None]:
        """Return the repository at a URL, and the directory of its mirror; None if it is local."""
        parsed = self._repositories.parse(url)
        if parsed.path is not None:
            return self._repositories.open(url), None
        name = hashlib.sha256(parsed.text.encode()).hexdigest()[:32]
        mirror = self._cache / "repositories" / f"{name}.git"
        return self._repositories.open_copy(url, str(mirror)), mirror

    async def _fetch(self, url: str, mirror: Path) -> None:
        """Fetch all branches and tags into the mirror, once in the life of this object."""
        if url not in self._fetched:
            self._fetched[url] = asyncio.create_task(self._fetch_now(url, mirror), name="git fetch")
        await asyncio.shield(self._fetched[url])

    async def _fetch_now(self, url: str, mirror: Path) -> None:
        if self._offline:
            if await asyncio.to_thread(mirror.is_dir):
                return
            raise CatalogError("fetch", f"{url} was never fetched", remedy="Run the command once without --offline")
        async with self._places, _held(mirror.with_suffix(".lock")):
            try:
                head = await ask_git("ls-remote", "--symref", "--end-of-options", url, "HEAD", protocols=_PROTOCOLS)
                if await asyncio.to_thread(mirror.is_dir):
                    await _fetch_into(mirror, url, head)
                    return
                new = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=mirror.parent, prefix=".new-"))
                try:
                    await ask_git("init", "--quiet", "--bare", str(new))
                    await _fetch_into(new, url, head)
                    await asyncio.to_thread(new.rename, mirror)
                finally:
                    await asyncio.to_thread(shutil.rmtree, new, ignore_errors=True)
            except CommandError as error:
                raise CatalogError("fetch", f"{url} can not be fetched: {error.message}", transient=True) from None


def cache_directory() -> Path:
    """Return the directory for mirrors and trees of the user."""
    chosen = os.environ.get("XDG_CACHE_HOME")
    return (Path(chosen) if chosen else Path.home() / ".cache") / "kardinal" / "catalog"


@asynccontextmanager
async def caller_sources(cache: Path, *, offline: bool) -> AsyncIterator[CallerSources]:
    """Yield the sources of a command, with mirrors and trees in the directory `cache`."""
    for directory in ("repositories", "trees"):
        await asyncio.to_thread((cache / directory).mkdir, mode=0o700, parents=True, exist_ok=True)
    runner = GitRunner()
    repositories = Repositories(cache / "unused", runner=runner, clock=SystemClock(), allow_local=True)
    try:
        yield CallerSources(cache, repositories, runner, offline=offline)
    finally:
        await repositories.close()
        runner.close()


async def _fetch_into(mirror: Path, url: str, head: str) -> None:
    """Fetch into a bare repository; `head` is the answer of `git ls-remote --symref`."""
    specs = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
    options = ("--quiet", "--prune", "--no-recurse-submodules", "--no-write-fetch-head")
    arguments = (f"--git-dir={mirror}", "-c", "gc.autoDetach=false", "fetch", *options, "--end-of-options", url, *specs)
    await ask_git(*arguments, protocols=_PROTOCOLS)
    name = head.partition("\t")[0].removeprefix("ref: ")
    if name.startswith(HEADS):
        await asyncio.to_thread((mirror / "HEAD").write_text, f"ref: {check_ref(name)}\n")


@asynccontextmanager
async def _held(path: Path) -> AsyncIterator[None]:
    """Hold a lock file, for which other processes wait."""
    file = await asyncio.to_thread(os.open, path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)
        yield
    finally:
        await asyncio.to_thread(os.close, file)


@contextmanager
def _as_catalog_errors() -> Iterator[None]:
    """Turn the errors of Git into those of catalogs."""
    try:
        yield
    except CatalogError:
        raise
    except KardinalError as error:
        raise CatalogError("fetch", error.message, remedy=error.remedy, transient=error.transient) from error
