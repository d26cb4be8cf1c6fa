"""The sources of one compilation: every repository, chart and file that it reads goes through a `Fetcher`.

A tenant's inventory names the URLs, so they are bound by `spec.sources` of its CatalogTenant: prefixes of URLs that the
platform team has written. Without them, only the folders of the repositories that the tenant names itself may be used:
`https://git.example.com/acme/` for `https://git.example.com/acme/global.git`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kardinal.catalog.contracts import CatalogSources, SourceTree
from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.lock import Locks
from kardinal.catalog.values import Cluster, SourceKind, SourceVersion
from kardinal.tree.repository_url import InvalidRepositoryURL, repository_key, ssh_spelling

__all__ = ["FetchedTree", "Fetcher", "at_once"]

T = TypeVar("T")

_SHOWN_DIGITS = 8


@dataclass(frozen=True, slots=True)
class FetchedTree:
    """The tree of a commit, and its name in errors: `component nginx@1f2e3d4c`."""

    commit: str
    tree: SourceTree
    title: str

    @property
    def directory(self) -> Path:
        return self.tree.directory


class Fetcher:
    """Fetches what a cluster's hierarchy names, each source at one version, and records the versions."""

    def __init__(self, sources: CatalogSources, locks: Locks, cluster: Cluster) -> None:
        self._sources = sources
        self._locks = locks
        self._allowed = AllowedSources(cluster)
        self._versions: dict[tuple[str, str], SourceVersion] = {}
        self._resolving: dict[tuple[str, str], asyncio.Task[str]] = {}
        self.notices: dict[str, None] = {}
        """Sentences for the user, each once, in their order."""

    @property
    def versions(self) -> tuple[SourceVersion, ...]:
        """The versions of all sources that were fetched, sorted."""
        return tuple(sorted(self._versions.values()))

    def check(self, url: str, where: Where) -> None:
        """Raise `CatalogError` if the tenant may not use a URL."""
        self._allowed.check(url, where)

    async def fetch(
        self, kind: SourceKind, name: str, url: str, requested: str, *, where: Where, chosen: bool = False
    ) -> FetchedTree:
        """Return the tree of a repository at a version; empty is the default branch.

        `chosen`: the URL stands in the documents of the cluster, so that nothing binds it.
        """
        if not chosen:
            self.check(url, where)
        title = f"{kind} {name}" if name != kind else kind
        known = self._locks.find(kind, name, url, requested)
        try:
            if known is None or known == self._locks.pinned(url):
                commit = await self._resolve(url, known or requested)
            else:
                commit = known
            tree = await self._sources.tree(url, commit, "")
        except CatalogError as error:
            raise CatalogError(
                error.kind,
                f"while fetching {title}: {error.message}",
                where=where,
                remedy=error.remedy,
                transient=error.transient,
            ) from None
        if not requested and not chosen:
            self.notices[f"{title} has no version: its default branch counts, at {commit[:_SHOWN_DIGITS]}"] = None
        version = SourceVersion(kind=kind, name=name, url=url, requested=requested, resolved=commit)
        self._versions[kind, name] = version
        return FetchedTree(commit, tree, f"{title}@{commit[:_SHOWN_DIGITS]}")

    async def download(self, kind: SourceKind, name: str, url: str, requested: str, *, where: Where) -> Path:
        """Return the place of a file by its URL, at the digest that is locked."""
        self.check(url, where)
        known = self._locks.find(kind, name, url, requested) or ""
        digest, place = await self._sources.download(url, known)
        self._versions[kind, name] = SourceVersion(kind=kind, name=name, url=url, requested=requested, resolved=digest)
        return place

    async def _resolve(self, url: str, version: str) -> str:
        """Return the commit of a version; each URL and version is resolved once."""
        if (url, version) not in self._resolving:
            self._resolving[url, version] = asyncio.create_task(self._ask(url, version), name="resolve a version")
        return await asyncio.shield(self._resolving[url, version])

    async def _ask(self, url: str, version: str) -> str:
        return (await self._sources.resolve(url, version)).commit


class AllowedSources:
    """The prefixes of URLs that a tenant's hierarchy may name."""

    def __init__(self, cluster: Cluster) -> None:
        tenant = cluster.tenant
        self._tenant = tenant.name
        given = tenant.sources or _folders(cluster)
        self._prefixes = [_place(prefix) for prefix in given]
        self._named = given

    def check(self, url: str, where: Where) -> None:
        """Raise `CatalogError` of kind `refused` for a URL that no prefix allows."""
        try:
            scheme, key = _place(url)
        except InvalidRepositoryURL as error:
            raise CatalogError("invalid", error.message, where=where) from None
        for allowed, prefix in self._prefixes:
            if scheme == allowed and (key == prefix or key.startswith(f"{prefix}/")):
                return
        raise CatalogError(
            "refused",
            f"tenant {self._tenant} may not use {url}; it may use {', '.join(self._named)}",
            where=where,
            remedy=f"Add to spec.sources of CatalogTenant {self._tenant}: {_folder(url)}",
        )


async def at_once(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Return the results of calls that run at the same time, in their order.

    All of them end before the first error is raised, with the number of the others: which call fails first is chance.
    """
    results: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if not errors:
        return results
    for error in errors:
        if not isinstance(error, CatalogError):
            raise error
    first = errors[0]
    if len(errors) > 1 and isinstance(first, CatalogError):
        others = f"{first.message} (and {len(errors) - 1} more errors)"
        raise CatalogError(first.kind, others, remedy=first.remedy, transient=first.transient) from first
    raise first


def _folders(cluster: Cluster) -> tuple[str, ...]:
    tenant = cluster.tenant
    repositories = (tenant.global_, tenant.inventory, cluster.global_, cluster.inventory)
    folders = [_folder(repository.url) for repository in repositories if repository is not None]
    base = [tenant.component_base_url] if tenant.component_base_url else []
    return tuple(dict.fromkeys([*folders, *base]))


def _folder(url: str) -> str:
    return ssh_spelling(url).rstrip("/").rpartition("/")[0] + "/"


def _place(url: str) -> tuple[str, str]:
    """Return scheme and place of a URL or of a prefix of URLs, in one spelling each."""
    spelled = ssh_spelling(url)
    scheme = urlsplit(spelled).scheme.lower() or "file"
    if scheme == "oci":
        spelled = f"https{spelled[3:]}"
    # A prefix such as `https://git.example.com/` names no repository, and so has no key of its own.
    return scheme, repository_key(f"{spelled.rstrip('/')}/_").removesuffix("/_")
