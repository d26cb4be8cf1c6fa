"""`kardinal pr`: review the pull requests of provider `local`, which are stored in the bare repository itself."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click

from kardinal.cli.errors import CommandError
from kardinal.cli.merging import check_merge
from kardinal.cli.output import age, one_line, plain_text, print_table, print_value, say, state_text
from kardinal.cli.ranges import WholeNumber
from kardinal.cli.session import connect, explained, output_option
from kardinal.kube import KubeError
from kardinal.objects.errors import KardinalError
from kardinal.objects.text import escaped
from kardinal.promotion.kinds import PIPELINE
from kardinal.promotion.requests import open_pull_requests
from kardinal.scm import PullRequest, PullRequests

__all__ = ["pr"]


@click.group()
def pr() -> None:
    """List, show, merge or close the pull requests of a local repository."""


def _repository_command(function: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @click.option("--repo", metavar="PATH|file://…", help="The bare repository; default: the namespace's Pipeline's.")
    @click.option("-n", "--namespace", help="Namespace of the Pipeline; default: the one of the context.")
    @click.option("--context", help="Context of the kubeconfig; default: its current one.")
    @click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Path of the kubeconfig.")
    @wraps(function)
    def command(
        *, repo: str | None, namespace: str | None, context: str | None, kubeconfig: Path | None, **options: Any
    ) -> None:
        where = kubeconfig, context, namespace
        bypass = bool(options.pop("allow_bypassing_hooks", False))

        async def run() -> None:
            url = _absolute(repo) if repo else await _pipeline_repository(*where)
            async with open_pull_requests(url, allow_bypassing_hooks=bypass) as pulls:
                await function(_Desk(pulls, url, where, named=repo is not None), **options)

        try:
            asyncio.run(run())
        except KubeError as error:
            raise explained(error) from error
        except KardinalError as error:
            raise CommandError(str(error)) from error

    return command


@dataclass(frozen=True, slots=True)
class _Desk:
    """The pull requests of a repository, its URL, and the kubeconfig, context and namespace of its Pipeline."""

    pulls: PullRequests
    url: str
    where: tuple[Path | None, str | None, str | None]
    named: bool
    """Whether the repository was named on the command line; otherwise it was read from the Pipeline."""


@pr.command("list")
@click.option("--all", "everything", is_flag=True, help="Merged and closed ones too.")
@output_option
@_repository_command
async def list_(desk: _Desk, *, everything: bool, output: str) -> None:
    """List pull requests, newest first; the open ones unless --all is given."""
    listed = await desk.pulls.list(None if everything else "open")
    found = sorted(listed, key=lambda pull: pull.number, reverse=True)
    if output != "table":
        print_value([_summary(pull) for pull in found], output)
        return
    rows: list[list[str]] = [
        [
            f"#{pull.number}",
            pull.environment,
            pull.bundle,
            state_text(pull.state),
            one_line(pull.title),
            age(pull.created_at),
        ]
        for pull in found
    ]
    print_table(
        ["NUMBER", "ENVIRONMENT", "BUNDLE", "STATE", "TITLE", "AGE"],
        rows,
        empty="No open pull requests.",
        prose=("TITLE",),
    )


@pr.command()
@click.argument("number", type=WholeNumber(min=1))
@output_option
@_repository_command
async def show(desk: _Desk, *, number: int, output: str) -> None:
    """Print one pull request with its evidence."""
    pull = await desk.pulls.get(number)
    if output != "table":
        print_value({**_summary(pull), "body": pull.body, "comments": list(pull.comments)}, output)
        return
    say(f"#{pull.number} {escaped(pull.title)} ({pull.state})\n{pull.head} -> {pull.base}\n")
    say(plain_text(pull.body))
    for comment in pull.comments:
        say(f"\n> {plain_text(comment)}")


@pr.command()
@click.argument("number", type=WholeNumber(min=1))
@click.option("--force", is_flag=True, help="Merge it even if its Pipeline is paused or its Bundle is gone.")
@click.option(
    "--allow-bypassing-hooks", is_flag=True, help="Change a repository that has hooks, which do not run then."
)
@_repository_command
async def merge(desk: _Desk, *, number: int, force: bool) -> None:
    """Merge a pull request, as its reviewer."""
    if not force:
        await check_merge(await desk.pulls.get(number), url=desk.url, where=desk.where, named=desk.named)
    merged = await desk.pulls.merge(number, by=getpass.getuser())
    say(f"#{number} merged as {(merged.merge_commit or '')[:12]} into {merged.base}")


@pr.command()
@click.argument("number", type=WholeNumber(min=1))
@click.option("--comment", default="", help="Why.")
@_repository_command
async def close(desk: _Desk, *, number: int, comment: str) -> None:
    """Close a pull request without merging it; its promotion fails."""
    await desk.pulls.close(number, by=getpass.getuser(), comment=comment)
    say(f"#{number} closed")


def _summary(pull: PullRequest) -> dict[str, Any]:
    return {
        "number": pull.number,
        "environment": pull.environment,
        "bundle": pull.bundle,
        "state": pull.state,
        "title": pull.title,
        "head": pull.head,
        "base": pull.base,
    }


def _absolute(repository: str) -> str:
    return repository if "://" in repository else str(Path(repository).resolve())


async def _pipeline_repository(kubeconfig: Path | None, context: str | None, namespace: str | None) -> str:
    async with connect(kubeconfig, context, namespace) as session:
        pipelines = (await session.client.list(PIPELINE, session.namespace)).items
        urls = sorted({item["spec"]["git"]["url"] for item in pipelines if item["spec"]["git"]["provider"] == "local"})
    if len(urls) == 1:
        return str(urls[0])
    if not urls:
        raise CommandError(
            f"no Pipeline of provider local in namespace {session.namespace}",
            remedy="Name the repository: --repo PATH, or another namespace: -n NAMESPACE",
        )
    raise CommandError(
        f"the Pipelines of namespace {session.namespace} have {len(urls)} repositories",
        remedy=f"Choose one: --repo {urls[0]}",
    )
