"""Read Git repositories with the access of the user who runs a command: by the user's own git, or from clones.

`git` runs in temporary directories and never in a clone, because the configuration of a clone can name programs that
git runs. Clones are read by `kardinal.git.checkouts`, which writes nothing to them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from kardinal.cli.errors import CommandError
from kardinal.clock import SystemClock
from kardinal.git import GitCredentials, GitRunner, Repositories, Repository
from kardinal.git.checkouts import (
    Checkout,
    LoggedCommit,
    commits_between,
    lend_objects,
    read_checkout,
    tip_known_to,
)
from kardinal.git.names import HEADS
from kardinal.objects.errors import KardinalError
from kardinal.promotion.sources.edit_sources import Address
from kardinal.tree.repository_url import InvalidRepositoryURL, RepositoryURL, repository_key

__all__ = ["CallerRepositories", "ask_git", "caller_repositories", "list_commits", "open_checkout"]

_DEADLINE = 300.0
"""The deadline of one git command in seconds."""
_PROTOCOLS = "https:http:ssh"
"""The protocols that git may use. `file` is missing, because git would run programs that such a repository names."""
_SETTINGS = ("-c", "safe.bareRepository=explicit")
_OF_A_REPOSITORY = frozenset(
    {
        "GIT_DIR",
        "GIT_COMMON_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    }
)
"""Environment variables that would direct git to another repository; they are set in a Git hook, for example."""

CredentialsOf = Callable[[Address], Awaitable[GitCredentials | None]]


class CallerRepositories:
    """The repositories that a plan reads.

    `own` is the URL of the Pipeline's repository, and `credentials` returns the credentials of a repository. Each of
    `checkouts` is a clone that is read in place of the repository at one of its remotes; if no clone has a remote with
    the URL `own`, the first clone is read for it. The checked-out commit is read in place of the branch.
    """

    def __init__(
        self,
        repositories: Repositories,
        runner: GitRunner,
        directory: Path,
        *,
        own: str,
        checkouts: Sequence[Checkout],
        credentials: CredentialsOf | None,
    ) -> None:
        self._repositories = repositories
        self._runner = runner
        self._directory = directory
        self._own = repository_key(own)
        self._checkouts = checkouts
        self._credentials = credentials
        self._opened: dict[Address, Repository] = {}
        self._used: set[Path] = set()

    async def open(self, address: Address) -> Repository:
        """Return the repository at an address with the references of the address; open it only once."""
        if address not in self._opened:
            self._opened[address] = await self._open(address)
        return self._opened[address]

    def check_used(self) -> None:
        """Raise `CommandError` if a clone was not read, because it is no clone of a repository that the plan reads."""
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

    def _checkout_of(self, url: str) -> Checkout | None:
        key = repository_key(url)
        named = next((checkout for checkout in self._checkouts if key in _keys(checkout)), None)
        if named is None and key == self._own and self._checkouts:
            return self._checkouts[0]
        return named

    async def _linked(self, checkout: Checkout, address: Address) -> str:
        """Create a repository that reads the objects of a clone, and return its directory.

        It has the references of the address. If the first one is a branch, it is the commit that is checked out.
        """
        directory = self._new_directory()
        await self._runner.run(_lend, checkout, Path(directory), address.refs)
        return directory

    async def _fetched(self, address: Address) -> str:
        directory = self._new_directory()
        await ask_git("init", "--quiet", "--bare", directory)
        wanted = set(address.refs)
        listed = (await ask_git("ls-remote", "--end-of-options", address.url, *sorted(wanted))).splitlines()
        there = sorted(wanted & {line.partition("\t")[2] for line in listed})
        depth = () if address.depth is None else (f"--depth={address.depth}",)
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", *depth)
        if there or not wanted:
            specs = [f"+{ref}:{ref}" for ref in there or ("refs/heads/*",)]
            await ask_git(f"--git-dir={directory}", "fetch", *options, "--end-of-options", address.url, *specs)
        return directory

    def _new_directory(self) -> str:
        return tempfile.mkdtemp(dir=self._directory)


@asynccontextmanager
async def caller_repositories(
    own: str, checkouts: Iterable[Path], credentials: CredentialsOf | None
) -> AsyncIterator[CallerRepositories]:
    """Yield the repositories of a plan.

    If `credentials` is None, or has none for a remote repository, the user's own `git fetch` reads it. A local
    repository is opened in place.
    """
    async with _repositories() as (repositories, runner, directory):
        trees = [await runner.run(read_checkout, tree) for tree in checkouts]
        yield CallerRepositories(repositories, runner, directory, own=own, checkouts=trees, credentials=credentials)


@asynccontextmanager
async def open_checkout(directory: Path) -> AsyncIterator[tuple[Repository, Checkout]]:
    """Yield the repository of a work tree, or a bare repository, with the commit and branch that are checked out."""
    async with _repositories() as (repositories, runner, _):
        checkout = await runner.run(read_checkout, directory)
        yield repositories.open(str(checkout.repository)), checkout


async def list_commits(directory: Path, before: str, after: str, *, limit: int) -> list[LoggedCommit]:
    """Return the newest `limit` commits between two commits, as `git log before..after` in a clone lists them.

    Raises `CommandError` if `directory` is not in a clone.
    """
    async with _repositories() as (_, runner, _):
        try:
            checkout = await runner.run(read_checkout, directory)
        except KardinalError as error:
            raise CommandError(str(error)) from None
        return await runner.run(commits_between, checkout, before, after, limit=limit)


@asynccontextmanager
async def _repositories() -> AsyncIterator[tuple[Repositories, GitRunner, Path]]:
    """Yield `Repositories`, their threads and a temporary directory; all are closed or deleted after the block."""
    runner = GitRunner(workers=2)
    with tempfile.TemporaryDirectory(prefix="kardinal-") as made:
        directory = Path(made)
        repositories = Repositories(directory / "cache", runner=runner, clock=SystemClock(), allow_local=True)
        try:
            yield repositories, runner, directory
        finally:
            await repositories.close()
            runner.close()


def _keys(checkout: Checkout) -> Iterator[str]:
    """Yield the `repository_key` of each remote of a clone."""
    for url in checkout.remotes.values():
        with suppress(InvalidRepositoryURL):
            yield repository_key(url)


def _lend(checkout: Checkout, directory: Path, refs: Sequence[str]) -> None:
    known: dict[str, str] = {}
    for index, ref in enumerate(refs):
        commit = tip_known_to(checkout, ref) if index or not ref.startswith(HEADS) else None
        if commit is not None or not index:
            known[ref] = commit or checkout.commit
    lend_objects(checkout, directory, known)


async def ask_git(*arguments: str, protocols: str = _PROTOCOLS) -> str:
    """Run the user's git with the user's settings in an empty directory, and return its standard output.

    `protocols`: the protocols that git may use, with colons between. Raises `CommandError` if git is not installed,
    fails, or has not ended within the deadline.
    """
    program = shutil.which("git")
    if program is None:
        raise CommandError("git is not on PATH", remedy="Install it, or pass --use-secret.")
    with tempfile.TemporaryDirectory(prefix="kardinal-git-") as empty:
        process = await asyncio.create_subprocess_exec(
            program,
            *_SETTINGS,
            *arguments,
            cwd=empty,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(protocols),
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
        last = error.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        remedy = "Can you run git fetch there? Or pass --checkout, or --use-secret."
        raise CommandError(f"git: {last[-1]}", remedy=remedy)
    return out.decode("utf-8", "surrogateescape").strip()


def _environment(protocols: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    return kept | {"LC_ALL": "C", "GIT_ALLOW_PROTOCOL": protocols, "GIT_NO_LAZY_FETCH": "1"}
