"""The documents, sources and engine of a command, and its errors for people and programs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from kardinal.catalog.engine import CatalogWorkers, WorkerEngine
from kardinal.catalog.errors import CatalogError
from kardinal.catalog.inventory import read_inventory
from kardinal.catalog.kinds import CATALOG_CLUSTER, CATALOG_TENANT
from kardinal.catalog.values import Cluster
from kardinal.cli.catalog.sources import CallerSources, cache_directory, caller_sources
from kardinal.cli.errors import CommandError
from kardinal.cli.files import read_texts
from kardinal.cli.manifests import ManifestError, read_manifests
from kardinal.cli.output import print_value

__all__ = [
    "CatalogSession",
    "documents_option",
    "format_option",
    "offline_option",
    "open_session",
    "run_catalog_command",
]

_KINDS = (CATALOG_TENANT.kind, CATALOG_CLUSTER.kind)

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class CatalogSession:
    """The clusters of the documents, their sources, and the engine."""

    clusters: Mapping[str, Cluster]
    sources: CallerSources
    engine: WorkerEngine


@asynccontextmanager
async def open_session(paths: tuple[Path, ...], *, offline: bool, jobs: int = 2) -> AsyncIterator[CatalogSession]:
    """Yield the session of a command; `paths` are the files and directories of `-f`.

    `jobs`: the most processes that merge and render at the same time.
    """
    clusters = await asyncio.to_thread(_read_clusters, paths)
    workers = CatalogWorkers(jobs=jobs)
    try:
        async with caller_sources(cache_directory(), offline=offline) as sources:
            yield CatalogSession(clusters, sources, WorkerEngine(workers, sources.trees))
    finally:
        await asyncio.to_thread(workers.close)


def run_catalog_command(command: Callable[[], Awaitable[T]], *, output: str) -> T:
    """Return the result of a command; a `CatalogError` becomes exit code 1, and with `-o json` a document."""

    async def run() -> T:
        return await command()

    try:
        return asyncio.run(run())
    except CatalogError as error:
        if output == "json":
            print_value({"error": error_document(error)}, "json")
            raise click.exceptions.Exit(1) from None
        raise CommandError(error.message, remedy=error.remedy) from error
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None


def error_document(error: CatalogError) -> dict[str, Any]:
    """Return an error for programs, with its kind and the parts of its place that are known."""
    where = error.where
    place = {
        "repository": where.repository,
        "file": where.file,
        "line": where.line,
        "instance": where.instance,
        "parameter": where.parameter,
    }
    return {
        "kind": error.kind,
        "message": error.message,
        "remedy": error.remedy,
        "where": {name: value for name, value in place.items() if value},
    }


def documents_option(function: F) -> F:
    """Add the option --file."""
    return click.option(
        "-f",
        "--file",
        "paths",
        type=click.Path(exists=True, path_type=Path, allow_dash=True),
        multiple=True,
        required=True,
        help="A file or directory with CatalogTenants and CatalogClusters, or - for standard input. May be repeated.",
    )(function)


def format_option(function: F) -> F:
    """Add the option --format."""
    return click.option(
        "-o",
        "--format",
        "output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="How to print the result.",
    )(function)


def offline_option(function: F) -> F:
    """Add the option --offline."""
    return click.option(
        "--offline", is_flag=True, help="Fetch nothing: use what an earlier run has fetched, and fail without it."
    )(function)


def _read_clusters(paths: tuple[Path, ...]) -> Mapping[str, Cluster]:
    documents: list[dict[str, Any]] = []
    for place, text in read_texts(paths):
        try:
            documents += [manifest.body for manifest in read_manifests(text) if manifest.kind[1] in _KINDS]
        except ManifestError as error:
            raise CommandError(f"{place}:{error.line}: {error}") from None
    if not documents:
        raise CommandError(f"there is no {CATALOG_CLUSTER.kind} in these files")
    return read_inventory(documents)
