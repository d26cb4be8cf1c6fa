"""`kardinal diff`: the differences between two Bundles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kardinal.cli.checkout import list_commits
from kardinal.cli.errors import CommandError
from kardinal.cli.output import one_line, print_table, print_value, say
from kardinal.cli.session import Session, cluster_command, output_option
from kardinal.kube import NotFound
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.image import bundle_title
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.views.bundles import pipeline_of
from kardinal.promotion.views.differences import CommitRange, Difference, commit_ranges, differences
from kardinal.promotion.views.promotions import version_before

__all__ = ["diff"]

_LISTED = 50
"""The maximum number of commits that are listed; the newest are."""


@click.command()
@click.argument("first")
@click.argument("second", required=False)
@click.option(
    "--env", "environment", metavar="ENVIRONMENT", help="Compare with what ran there before, or else runs there now."
)
@click.option(
    "--checkout",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A clone of the source repository, in which the commits between are listed.",
)
@output_option
@cluster_command
async def diff(
    session: Session, *, first: str, second: str | None, environment: str | None, checkout: Path | None, output: str
) -> None:
    """Show the artifacts, the provenance and the commits in which two Bundles differ.

    `kardinal diff A B` compares two Bundles, and `kardinal diff B --env prod` what B brings, or has brought, to prod.
    """
    if (second is None) == (environment is None):
        raise click.UsageError("name two Bundles, or one and an environment: kardinal diff BUNDLE --env ENVIRONMENT")
    if second is not None:
        before = await _bundle(session, first)
        after = await _bundle(session, second)
    else:
        after = await _bundle(session, first)
        before = await _before(session, after, environment or "")
    found = differences(before, after)
    ranges = list(commit_ranges(before, after))
    listed = [await _commits(checkout, each) for each in ranges] if checkout is not None else [[] for _ in ranges]
    if output != "table":
        print_value(_document(before, after, found, zip(ranges, listed, strict=True)), output)
        return
    print_table(
        ["KIND", "NAME", before.metadata.name, after.metadata.name],
        [[each.kind, *(one_line(text) or "-" for text in (each.name, each.before, each.after))] for each in found],
        empty=f"{before.metadata.name} and {after.metadata.name} bring the same.",
        prose=(before.metadata.name, after.metadata.name),
    )
    for each, commits in zip(ranges, listed, strict=True):
        _print_commits(each, commits, listed=checkout is not None)


async def _bundle(session: Session, name: str) -> Bundle:
    try:
        return Bundle.model_validate(await session.client.get(BUNDLE, name, session.namespace))
    except NotFound as error:
        raise CommandError(
            f"no Bundle {name} in namespace {session.namespace}", remedy="List them: kubectl get bundles"
        ) from error


async def _before(session: Session, bundle: Bundle, environment: str) -> Bundle:
    """Return the Bundle that ran in an environment before `bundle`. Raises `CommandError` if there was none."""
    pipeline = pipeline_of(bundle)
    found = version_before(await session.bundles(pipeline), bundle, environment)
    if found is None:
        raise CommandError(
            f"no other Bundle of Pipeline {pipeline} was Verified in {environment} before",
            remedy=f"See what ran where: kardinal history {pipeline}",
        )
    return found.bundle


async def _commits(checkout: Path, between: CommitRange) -> list[str]:
    """Return a line for each commit, newest first: `1f3a9b2 Fix the cart (Ada)`."""
    found = await list_commits(checkout, between.before, between.after, limit=_LISTED)
    return [one_line(f"{commit.id} {commit.subject} ({commit.author})") for commit in found]


def _print_commits(between: CommitRange, commits: Sequence[str], *, listed: bool) -> None:
    say(f"\nCOMMITS {between.before[:12]}..{between.after[:12]} {one_line(between.repository)}".rstrip())
    if between.url:
        say(f"  {between.url}")
    for line in commits:
        say(f"  {line}")
    if listed and not commits:
        say("  none in this clone: are both commits fetched, and is the second one newer?")
    if not listed and not between.url:
        say(f"  In a clone: git log --oneline {between.before}..{between.after}, or pass --checkout DIRECTORY")


def _document(before: Bundle, after: Bundle, found: Sequence[Difference], ranges: Any) -> dict[str, Any]:
    return {
        "from": {"bundle": before.metadata.name, "version": bundle_title(before.spec.artifacts)},
        "to": {"bundle": after.metadata.name, "version": bundle_title(after.spec.artifacts)},
        "differences": [
            {"kind": each.kind, "name": each.name, "from": each.before or None, "to": each.after or None}
            for each in found
        ],
        "commits": [
            {
                "repository": each.repository or None,
                "from": each.before,
                "to": each.after,
                "url": each.url or None,
                "list": commits,
            }
            for each, commits in ranges
        ],
    }
