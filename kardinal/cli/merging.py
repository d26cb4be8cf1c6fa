"""Check a merge that a person asks for: against a pause, and for a Bundle that is gone.

The gates of a promotion hold the agent, and not the repository: a person can always merge. Merged by mistake while a
Pipeline is paused, or for a Bundle that was deleted, a change lands of which nothing follows.
"""

from __future__ import annotations

from pathlib import Path

from kardinal.api import BUNDLE, PIPELINE, POLICY_GATE
from kardinal.api.names import LABEL_TYPE, TYPE_FREEZE, freeze_name
from kardinal.api.repository_url import RepositoryURL
from kardinal.cli.errors import CommandError
from kardinal.cli.output import one_line, say
from kardinal.cli.session import Session, connect
from kardinal.kube import KubeError, NotFound
from kardinal.objects import JsonObject
from kardinal.scm import PullRequest

__all__ = ["check_merge"]

_FORCE = "or merge it all the same: --force"


async def check_merge(
    pull: PullRequest, *, url: str, where: tuple[Path | None, str | None, str | None], named: bool
) -> None:
    """Raise `CommandError` where a pull request should not be merged now.

    `where` is the kubeconfig, the context and the namespace. Of a repository that was `named` it is only known what the
    API server says, if one can be reached and has its Pipeline there.
    """
    if pull.state != "open":
        return
    try:
        async with connect(*where) as session:
            if await _has_pipeline(session, pull.pipeline, url):
                await _check(session, pull)
            else:
                _note(f"namespace {session.namespace} has no Pipeline {pull.pipeline} of this repository")
    except KubeError:
        if not named:
            raise
        _note("no API server can be reached")


def _note(reason: str) -> None:
    say(f"Note: {reason}, so that it is not known whether the promotion is paused or gone", err=True)


async def _has_pipeline(session: Session, name: str, url: str) -> bool:
    try:
        stored = await session.client.get(PIPELINE, name, session.namespace) if name else None
    except NotFound:
        return False
    return stored is not None and _same_place(stored["spec"]["git"]["url"], url)


def _same_place(one: str, other: str) -> bool:
    return RepositoryURL.parse(one, allow_local=True).text == RepositoryURL.parse(other, allow_local=True).text


async def _check(session: Session, pull: PullRequest) -> None:
    freeze = await _found(session, freeze_name(pull.pipeline))
    if freeze is not None:
        why = freeze["spec"].get("message") or ""
        raise CommandError(
            f"Pipeline {pull.pipeline} is paused" + (f": {one_line(why)}" if why else ""),
            remedy=f"Let it go on: kardinal resume {pull.pipeline}{session.option}; {_FORCE}",
        )
    try:
        await session.client.get(BUNDLE, pull.bundle, session.namespace)
    except NotFound:
        raise CommandError(
            f"Bundle {pull.bundle} of pull request {pull.number} is gone: nothing would follow its merge",
            remedy=f"Close it: kardinal pr close {pull.number}; {_FORCE}",
        ) from None


async def _found(session: Session, name: str) -> JsonObject | None:
    """Return the gate of a pause; one of that name may be something else."""
    try:
        gate = await session.client.get(POLICY_GATE, name, session.namespace)
    except NotFound:
        return None
    return gate if (gate["metadata"].get("labels") or {}).get(LABEL_TYPE) == TYPE_FREEZE else None
