"""A person who reviews pull requests, with tools of their own: nothing of it is shared with the programs under test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kardinal.git import GitRunner, Repositories
from kardinal.scm import NewPullRequest, PullRequest, PullRequests, local_pull_requests
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["close_pull_request", "merge_pull_request", "open_pull_requests", "propose"]


@asynccontextmanager
async def _desk(world: World, repository: GitRepository) -> AsyncIterator[PullRequests]:
    runner = GitRunner(workers=1)
    directory = world.new_directory("reviewer-git")
    repositories = Repositories(directory, runner=runner, clock=world.clock, allow_local=True)
    try:
        yield local_pull_requests(repositories.open(repository.url), clock=world.clock)
    finally:
        await repositories.close()
        runner.close()


async def propose(world: World, repository: GitRepository, branch: str, *, pipeline: str, bundle: str) -> None:
    """Open a pull request from a branch as the agent does for a Bundle."""
    async with _desk(world, repository) as pull_requests:
        await pull_requests.open(
            NewPullRequest(
                title=f"Promote {bundle}", body="", head=branch, base="main", bundle=bundle, pipeline=pipeline
            )
        )


async def open_pull_requests(world: World, repository: GitRepository) -> list[PullRequest]:
    async with _desk(world, repository) as pull_requests:
        return await pull_requests.list(state="open")


async def merge_pull_request(world: World, repository: GitRepository, number: int) -> PullRequest:
    async with _desk(world, repository) as pull_requests:
        return await pull_requests.merge(number, by="reviewer")


async def close_pull_request(world: World, repository: GitRepository, number: int) -> PullRequest:
    async with _desk(world, repository) as pull_requests:
        return await pull_requests.close(number, by="reviewer", comment="not this one")
