"""The repository of a Pipeline as the caller can read it: by the caller's own git, or from a directory of theirs.

Nothing is written to it. What is fetched is one commit of each branch, into a directory that is deleted again.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from kardinal.api.repository_url import RepositoryURL
from kardinal.cli.errors import CommandError
from kardinal.git import Credentials, GitRunner, Repositories, Repository
from kardinal.runtime.clock import SystemClock

__all__ = ["ask_git", "open_checkout", "open_remote"]

_FETCHING = ("--quiet", "--depth=1", "--no-tags", "--end-of-options")

_DEADLINE = 300.0
"""Seconds that git may take for one command."""


@asynccontextmanager
async def open_checkout(directory: Path) -> AsyncIterator[tuple[Repository, str]]:
    """Yield the repository of a work tree, and the commit that is checked out there."""
    where = ("-C", str(directory), "rev-parse", "--path-format=absolute")
    git_directory = await ask_git(*where, "--git-common-dir")
    commit = await ask_git("-C", str(directory), "rev-parse", "--verify", "HEAD^{commit}")
    async with _opened(git_directory) as repository:
        yield repository, commit


@asynccontextmanager
async def open_remote(
    url: str, branches: Iterable[str], *, credentials: Credentials | None = None
) -> AsyncIterator[Repository]:
    """Yield the repository at `url`; without `credentials` it is read as `git fetch` of the caller reads it."""
    parsed = RepositoryURL.parse(url, allow_local=True)
    if parsed.path is not None:
        async with _opened(parsed.path) as repository:
            yield repository
    elif credentials is not None:
        async with _opened(url, credentials) as repository:
            yield repository
    else:
        with tempfile.TemporaryDirectory(prefix="kardinal-plan-") as directory:
            await ask_git("init", "--quiet", "--bare", directory)
            wanted = [f"+refs/heads/{branch}:refs/heads/{branch}" for branch in sorted(set(branches))]
            await ask_git(
                "-C", directory, "fetch", "--quiet", "--depth=1", "--no-tags", "--end-of-options", url, *wanted
            )
            async with _opened(directory) as repository:
                yield repository


@asynccontextmanager
async def _opened(url: str, credentials: Credentials | None = None) -> AsyncIterator[Repository]:
    runner = GitRunner(workers=2)
    with tempfile.TemporaryDirectory(prefix="kardinal-plan-") as cache:
        repositories = Repositories(Path(cache), runner=runner, clock=SystemClock(), allow_local=True)
        try:
            yield repositories.open(url, credentials)
        finally:
            await repositories.close()
            runner.close()


async def ask_git(*arguments: str) -> str:
    """Run the caller's git with the caller's configuration; return what it printed."""
    program = shutil.which("git")
    if program is None:
        raise CommandError("git is not on PATH", remedy="Install it, or pass --use-secret.")
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
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
