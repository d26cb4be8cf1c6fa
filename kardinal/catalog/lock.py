"""The lock of a catalog: the commits and digests that the names in its hierarchy stood for.

    version: 1
    sources:
    - kind: component
      name: nginx
      url: https://git.example.com/components/nginx.git
      requested: v1.2
      resolved: 1f2e3d4c…

Nothing moves by itself: a name with the same URL and requested version keeps its commit. A commit comes from the first
of these that has one: a Bundle, which pins a repository; the catalog upstream, so that prod gets the commits that
staging has verified; the own lock; and otherwise from the repository.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import yaml

from kardinal.catalog.documents import read_yaml
from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.values import SourceKind, SourceVersion
from kardinal.tree.repository_url import InvalidRepositoryURL, repository_key

__all__ = ["LOCK_FILE", "Locks", "locked_names", "read_lock", "write_lock"]

LOCK_FILE = "catalog.lock.yaml"
_VERSION = 1
_FIELDS = ("kind", "name", "url", "requested", "resolved")
_RESOLVED = re.compile(r"[0-9a-f]{40}|sha256:[0-9a-f]{64}")


def read_lock(content: bytes, place: str = LOCK_FILE) -> tuple[SourceVersion, ...]:
    """Return the entries of a lock. Raises `CatalogError` for one that was not written by `write_lock`."""
    where = Where(file=place)
    body = read_yaml(content, where)
    if not isinstance(body, dict) or body.get("version") != _VERSION or not isinstance(body.get("sources"), list):
        raise CatalogError("invalid", "it is no lock of a catalog", where=where, remedy=_REMEDY)
    return tuple(_entry(each, where) for each in body["sources"])


_REMEDY = "Restore it from Git, or delete it to have every version resolved again"


def _entry(body: Any, where: Where) -> SourceVersion:
    complete = isinstance(body, dict) and all(isinstance(body.get(field), str) for field in _FIELDS)
    if not complete or body["kind"] not in get_args(SourceKind) or not _RESOLVED.fullmatch(body["resolved"]):
        raise CatalogError("invalid", f"{str(body)[:100]} is no entry of a lock", where=where, remedy=_REMEDY)
    return SourceVersion(**{field: body[field] for field in _FIELDS})


def write_lock(versions: Iterable[SourceVersion]) -> bytes:
    """Return the lock with these entries, sorted."""
    sources = [{field: getattr(entry, field) for field in _FIELDS} for entry in sorted(versions)]
    body = {"version": _VERSION, "sources": sources}
    return yaml.dump(body, Dumper=yaml.SafeDumper, sort_keys=False, allow_unicode=True, width=10_000).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Locks:
    """The commits and digests that are known before a compilation.

    `pins`: commits by the URL of a repository, from a Bundle. `update`: whether the entry of a name in `own` is
    ignored, and the name resolved again.
    """

    own: tuple[SourceVersion, ...] = ()
    upstream: tuple[SourceVersion, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    update: Callable[[str], bool] = lambda name: False

    def pinned(self, url: str) -> str | None:
        """Return the commit at which a Bundle pins a repository."""
        for pinned, commit in self.pins.items():
            if _same_repository(pinned, url):
                return commit
        return None

    def find(self, kind: SourceKind, name: str, url: str, requested: str) -> str | None:
        """Return the commit or digest of a source; None if it has to be resolved."""
        commit = self.pinned(url)
        if commit is not None:
            return commit
        wanted = (kind, name, url, requested)
        own = () if self.update(name) else self.own
        for entry in (*self.upstream, *own):
            if (entry.kind, entry.name, entry.url, entry.requested) == wanted:
                return entry.resolved
        return None


def locked_names(names: Iterable[str]) -> Callable[[str], bool]:
    """Return the `update` of `Locks` for these names; for all, if there are none."""
    chosen = frozenset(names)
    return lambda name: not chosen or name in chosen


def _same_repository(one: str, other: str) -> bool:
    try:
        return repository_key(one) == repository_key(other)
    except InvalidRepositoryURL:
        return False
