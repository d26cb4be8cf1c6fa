"""Check a merge by `kardinal pr merge`: the Pipeline must not be paused, and the Bundle must exist.

The check is that of `kardinal.promotion.requests.merges`, for which the Pipeline of the repository is looked up here.
"""

from __future__ import annotations

from pathlib import Path

from kardinal.cli.errors import CommandError
from kardinal.cli.output import say
from kardinal.cli.session import Session, connect
from kardinal.kube import KubeError
from kardinal.promotion.requests import RequestDenied, refuse_merge
from kardinal.scm import PullRequest
from kardinal.tree.repository_url import RepositoryURL

__all__ = ["check_merge"]


async def check_merge(
    pull: PullRequest, *, url: str, where: tuple[Path | None, str | None, str | None], named: bool
) -> None:
    """Raise `CommandError` if the Pipeline of an open pull request is paused, or its Bundle was deleted.

    `url` is the URL of the repository, and `where` the kubeconfig, the context and the namespace. If the repository was
    `named` on the command line, an unreachable API server is a note and no error. A namespace without a Pipeline of
    this repository is always a note.
    """
    if pull.state != "open":
        return
    try:
        async with connect(*where) as session:
            if await _has_pipeline(session, pull.pipeline, url):
                await refuse_merge(session.requester, pull)
            else:
                _note(f"namespace {session.namespace} has no Pipeline {pull.pipeline} of this repository")
    except RequestDenied as error:
        raise CommandError(error.message, remedy=error.remedy) from error
    except KubeError:
        if not named:
            raise
        _note("no API server can be reached")


def _note(reason: str) -> None:
    say(f"Note: {reason}, so that it is not known whether the promotion is paused or gone", err=True)


async def _has_pipeline(session: Session, name: str, url: str) -> bool:
    stored = await session.reader.pipeline(session.namespace, name) if name else None
    return stored is not None and _same_place(stored["spec"]["git"]["url"], url)


def _same_place(one: str, other: str) -> bool:
    return RepositoryURL.parse(one, allow_local=True).text == RepositoryURL.parse(other, allow_local=True).text
