"""Repositories as the caller of a command can read them: by the caller's own git, or from directories of theirs.

Nothing is written to them. What is fetched, and the references that stand for what is checked out, are in directories
that are deleted again.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kardinal.api.repository_url import InvalidRepositoryURL, RepositoryURL, repository_key
from kardinal.cli.errors import CommandError
from kardinal.git import Credentials, GitRunner, Repositories, Repository
from kardinal.git.edit_sources import Address
from kardinal.git.names import HEADS
from kardinal.runtime.clock import SystemClock

__all__ = ["CallerRepositories", "ask_git", "caller_repositories", "open_head"]

_DEADLINE = 300.0
"""Seconds that git may take for one command."""

CredentialsOf = Callable[[Address], Awaitable[Credentials | None]]


@dataclass(frozen=True, slots=True)
class _Checkout:
    """A work tree: the commit that is checked out, its objects, and the repositories that its remotes are."""

    directory: Path
    commit: str
    objects: str
    shallow: str
    keys: frozenset[str]


class CallerRepositories:
    """The repositories that a plan reads; `own` is the URL of the Pipeline's, and `credentials` those to read with.

    A work tree stands for the repository that one of its remotes is; where none is the Pipeline's, the first one stands
    for that. What is checked out there stands for the branch that is read.
    """

    def __init__(
        self,
        repositories: Repositories,
        directory: Path,
        *,
        own: str,
        checkouts: Sequence[_Checkout],
        credentials: CredentialsOf | None,
    ) -> None:
        self._repositories = repositories
        self._directory = directory
        self._own = repository_key(own)
        self._checkouts = checkouts
        self._credentials = credentials
        self._opened: dict[Address, Repository] = {}
        self._used: set[Path] = set()

    async def open(self, address: Address) -> Repository:
        """Return a repository with the references that are read of it."""
        if address not in self._opened:
            self._opened[address] = await self._open(address)
        return self._opened[address]

    def check_used(self) -> None:
        """Raise `CommandError` for a work tree that stands for no repository that was read."""
        for checkout in self._checkouts:
            if checkout.directory not in self._used:
                read = ", ".join(dict.fromkeys(address.url for address in self._opened))
                remedy = f"Leave it out, or name a clone of what is read: {read}"
                raise CommandError(f"{checkout.directory} is a clone of no repository that is read here", remedy=remedy)

    async def _open(self, address: Address) -> Repository:
        parsed = RepositoryURL.parse(address.url, allow_local=True)
        if checkout := self._checkout_of(address.url):
            self._used.add(checkout.directory)
            return self._repositories.open_copy(address.url, await self._linked(checkout, address))
        if parsed.path is not None:
            return self._repositories.open(address.url)
        credentials = await self._credentials(address) if self._credentials else None
        if credentials is not None:
            return self._repositories.open(address.url, credentials)
        return self._repositories.open_copy(address.url, await self._fetched(address))

    def _checkout_of(self, url: str) -> _Checkout | None:
        key = repository_key(url)
        named = next((checkout for checkout in self._checkouts if key in checkout.keys), None)
        if named is None and key == self._own and self._checkouts:
            return self._checkouts[0]
        return named

    async def _linked(self, checkout: _Checkout, address: Address) -> str:
        """Return a repository of the objects of a work tree, in which the first reference is what is checked out."""
        directory = await self._made()
        await asyncio.to_thread(_borrow, directory, checkout)
        for index, ref in enumerate(address.refs):
            commit = await _known(checkout.directory, ref) if index or not ref.startswith(HEADS) else None
            if commit is not None or not index:
                await ask_git("-C", directory, "update-ref", ref, commit or checkout.commit)
        return directory

    async def _fetched(self, address: Address) -> str:
        directory = await self._made()
        wanted = set(address.refs)
        listed = (await ask_git("ls-remote", "--end-of-options", address.url, *sorted(wanted))).splitlines()
        there = sorted(wanted & {line.partition("\t")[2] for line in listed})
        depth = () if address.depth is None else (f"--depth={address.depth}",)
        options = ("--quiet", "--no-tags", *depth)
        if there or not wanted:
            specs = [f"+{ref}:{ref}" for ref in there or ("refs/heads/*",)]
            await ask_git("-C", directory, "fetch", *options, "--end-of-options", address.url, *specs)
        return directory

    async def _made(self) -> str:
        directory = tempfile.mkdtemp(dir=self._directory)
        await ask_git("init", "--quiet", "--bare", directory)
        return directory


@asynccontextmanager
async def caller_repositories(
    own: str, checkouts: Iterable[Path], credentials: CredentialsOf | None
) -> AsyncIterator[CallerRepositories]:
    """Yield the repositories of a plan; without `credentials` they are read as `git fetch` of the caller reads them."""
    trees = [await _checkout(directory) for directory in checkouts]
    async with _repositories() as (repositories, directory):
        yield CallerRepositories(repositories, directory, own=own, checkouts=trees, credentials=credentials)


@asynccontextmanager
async def open_head(directory: Path) -> AsyncIterator[tuple[Repository, str]]:
    """Yield the repository of a work tree, or a bare one, and the commit that its HEAD is."""
    where = ("-C", str(directory), "rev-parse", "--path-format=absolute")
    git_directory = await ask_git(*where, "--git-common-dir")
    commit = await ask_git("-C", str(directory), "rev-parse", "--verify", "HEAD^{commit}")
    async with _repositories() as (repositories, _):
        yield repositories.open(git_directory), commit


@asynccontextmanager
async def _repositories() -> AsyncIterator[tuple[Repositories, Path]]:
    """Yield what opens repositories, and a directory; both go with the block."""
    runner = GitRunner(workers=2)
    with tempfile.TemporaryDirectory(prefix="kardinal-") as made:
        directory = Path(made)
        repositories = Repositories(directory / "cache", runner=runner, clock=SystemClock(), allow_local=True)
        try:
            yield repositories, directory
        finally:
            await repositories.close()
            runner.close()


async def _checkout(directory: Path) -> _Checkout:
    where = ("-C", str(directory), "rev-parse", "--path-format=absolute")
    objects = await ask_git(*where, "--git-path", "objects")
    shallow = await ask_git(*where, "--git-path", "shallow")
    commit = await ask_git("-C", str(directory), "rev-parse", "--verify", "HEAD^{commit}")
    remotes = await ask_git("-C", str(directory), "config", "--get-regexp", r"^remote\..*\.url$", refused="")
    keys = set()
    for line in remotes.splitlines():
        with suppress(InvalidRepositoryURL):
            keys.add(repository_key(line.partition(" ")[2]))
    return _Checkout(directory, commit, objects, shallow, frozenset(keys))


def _borrow(directory: str, checkout: _Checkout) -> None:
    """Let a repository read the objects of a work tree."""
    Path(directory, "objects", "info", "alternates").write_text(f"{checkout.objects}\n")
    with suppress(FileNotFoundError):
        shutil.copyfile(checkout.shallow, Path(directory, "shallow"))


async def _known(directory: Path, ref: str) -> str | None:
    """Return where a work tree knows a reference to be: at its remotes, which is newer, else itself."""
    name = ref.removeprefix(HEADS)
    tracked = await ask_git("-C", str(directory), "for-each-ref", "--format=%(objectname)", f"refs/remotes/*/{name}")
    if ref.startswith(HEADS) and tracked:
        return tracked.split()[0]
    return await ask_git("-C", str(directory), "rev-parse", "--verify", "--quiet", ref, refused="") or None


async def ask_git(*arguments: str, refused: str | None = None) -> str:
    """Run the caller's git with the caller's configuration; return what it printed, or `refused` where it fails."""
    program = shutil.which("git")
    if program is None:
        raise CommandError("git is not on PATH", remedy="Install it, or pass --use-secret.")
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"LC_ALL": "C"},
    )
    try:
        async with asyncio.timeout(_DEADLINE):
            out, error = await process.communicate()
    except TimeoutError:
        raise CommandError(f"git {arguments[-1]} has not answered within {_DEADLINE:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        if refused is not None:
            return refused
        last = error.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        remedy = "Can you run git fetch there? Or pass --checkout, or --use-secret."
        raise CommandError(f"git: {last[-1]}", remedy=remedy)
    return out.decode("utf-8", "surrogateescape").strip()
