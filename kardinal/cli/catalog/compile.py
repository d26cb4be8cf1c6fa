"""`kardinal catalog compile`: compile catalogs into directories, as a promotion would commit them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kardinal.catalog.compile import compile_catalog
from kardinal.catalog.errors import CatalogError
from kardinal.catalog.inventory import find_cluster
from kardinal.catalog.lock import LOCK_FILE, Locks, locked_names, read_lock
from kardinal.catalog.values import Cluster, Compiled, SourceVersion
from kardinal.cli.catalog.directories import DirectoryChanges, diff_catalog, write_catalog
from kardinal.cli.catalog.session import (
    CatalogSession,
    documents_option,
    error_document,
    format_option,
    offline_option,
    open_session,
    run_catalog_command,
)
from kardinal.cli.files import read_file
from kardinal.cli.output import print_value, say

__all__ = ["compile_catalogs"]

_NEVER = Locks().update


@dataclass(frozen=True, slots=True)
class _Result:
    """A cluster with its catalog, or with the reason why it has none."""

    cluster: str
    compiled: Compiled | None = None
    changes: DirectoryChanges | None = None
    diff: str = ""
    error: CatalogError | None = None
    lock: Path | None = None
    """The lock whose versions were kept."""


@click.command("compile")
@click.argument("cluster", required=False)
@click.option("--all", "everything", is_flag=True, help="Compile every CatalogCluster of the files.")
@documents_option
@click.option(
    "--output",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write manifests/, refs/ and the lock into this directory, and keep the rest of it; with --all, into "
    "DIR/CLUSTER. Without it, nothing is written.",
)
@click.option(
    "--lock",
    "lock_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"The lock to compile with; default: {LOCK_FILE} in the directory of --output, or of --diff.",
)
@click.option(
    "--update",
    "updated",
    multiple=True,
    is_flag=False,
    flag_value="",
    metavar="[NAME]",
    help="Resolve the version of this component, package or library again, or all without a name. May be repeated.",
)
@click.option(
    "--diff",
    "compared",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Print the difference from the catalog in this directory; of one cluster.",
)
@offline_option
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=2,
    show_default=True,
    help="Processes to work in.",
)
@format_option
def compile_catalogs(
    *,
    cluster: str | None,
    everything: bool,
    paths: tuple[Path, ...],
    directory: Path | None,
    lock_file: Path | None,
    updated: tuple[str, ...],
    compared: Path | None,
    offline: bool,
    jobs: int,
    output: str,
) -> None:
    """Compile the catalog of a cluster into a directory.

    Repositories are read with your own git, its configuration and credentials. Versions that the lock has are not
    resolved again: without --update, nothing moves but what the hierarchy itself changes.
    """
    if (cluster is None) is not everything:
        raise click.UsageError("name one CLUSTER, or pass --all")
    if everything and lock_file is not None:
        raise click.UsageError("--lock is the lock of one cluster, and can not be used with --all")
    if everything and compared is not None:
        raise click.UsageError("--diff compares one cluster, and can not be used with --all")

    async def run() -> list[_Result]:
        async with open_session(paths, offline=offline, jobs=jobs) as session:
            chosen = list(session.clusters.values()) if cluster is None else [find_cluster(session.clusters, cluster)]
            places = asyncio.Semaphore(jobs)

            async def attempt(one: Cluster) -> _Result:
                place = directory / one.name if directory is not None and everything else directory
                async with places:
                    try:
                        return await _compile(
                            session, one, directory=place, lock_file=lock_file, updated=updated, compared=compared
                        )
                    except CatalogError as error:
                        return _Result(one.name, error=error)

            return await asyncio.gather(*map(attempt, chosen))

    results = run_catalog_command(run, output=output)
    if output == "json":
        print_value({"clusters": [_document(result) for result in results]}, "json")
    else:
        _print(results)
    if any(result.error for result in results):
        raise click.exceptions.Exit(1)


async def _compile(
    session: CatalogSession,
    cluster: Cluster,
    *,
    directory: Path | None,
    lock_file: Path | None,
    updated: tuple[str, ...],
    compared: Path | None,
) -> _Result:
    known = directory or compared
    lock = lock_file or (known / LOCK_FILE if known is not None else None)
    own = await asyncio.to_thread(_read_lock, lock, required=lock_file is not None)
    update = locked_names(name for name in updated if name) if updated else _NEVER
    locks = Locks(own=own, update=update)
    compiled = await compile_catalog(cluster, sources=session.sources, engine=session.engine, locks=locks)
    diff = await asyncio.to_thread(diff_catalog, compared, compiled.files) if compared is not None else ""
    changes = await asyncio.to_thread(write_catalog, directory, compiled.files) if directory is not None else None
    return _Result(cluster.name, compiled, changes, diff=diff, lock=lock if own and not updated else None)


def _read_lock(file: Path | None, *, required: bool) -> tuple[SourceVersion, ...]:
    if file is None or not (required or file.exists()):
        return ()
    return read_lock(read_file(file).encode(), str(file))


def _print(results: list[_Result]) -> None:
    for result in results:
        if result.compiled is None or result.error is not None:
            say(f"{result.cluster}: {result.error}", err=True)
            continue
        if result.diff:
            say(result.diff, nl=False)
        elif result.lock is not None and not result.changes:
            # A user who has just changed a repository wonders why.
            say(
                f"Note: {result.cluster}: the versions are those of {result.lock}; --update resolves them again",
                err=True,
            )
        for notice in result.compiled.notices:
            say(f"Note: {result.cluster}: {notice}", err=True)
        count = len(result.compiled.instances)
        instances = f"{count} instance{'' if count == 1 else 's'}"
        files = len(result.compiled.files) - 1
        changes = f", {result.changes}" if result.changes is not None else ""
        say(f"{result.cluster}: {instances}, {files} file{'' if files == 1 else 's'}{changes}")


def _document(result: _Result) -> dict[str, Any]:
    if result.compiled is None:
        return {"cluster": result.cluster, "error": error_document(result.error) if result.error else None}
    changes = result.changes
    return {
        "cluster": result.cluster,
        "instances": list(result.compiled.instances),
        "files": sorted(result.compiled.files),
        "changes": None if changes is None else changes.document(),
        "diff": result.diff,
        "versions": [
            {
                "kind": version.kind,
                "name": version.name,
                "url": version.url,
                "requested": version.requested,
                "resolved": version.resolved,
            }
            for version in result.compiled.versions
        ],
        "notices": list(result.compiled.notices),
    }
