"""Collect the files of all instances into one catalog.

Instances share `manifests/`, so that two of them can name one path. There is no winner: that is an error, as are two
paths that one file system holds apart and another one does not.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.values import InstanceFiles

__all__ = ["FILES_LIMIT", "FILE_LIMIT", "TOTAL_LIMIT", "collect"]

FILES_LIMIT = 5_000
"""The most files of a catalog."""
TOTAL_LIMIT = 64 << 20
"""The most bytes of all files of a catalog."""
FILE_LIMIT = 8 << 20
"""The most bytes of a file."""
_MANIFESTS = "manifests"
_REFERENCES = "refs"


def collect(rendered: Iterable[InstanceFiles], references: Mapping[str, bytes] | None = None) -> dict[str, bytes]:
    """Return the files of a catalog by path, sorted: those of instances below `manifests/`, and the references."""
    owners: dict[str, str] = {}
    files: dict[str, bytes] = {}
    for part in rendered:
        for path, content in part.files.items():
            full = f"{_MANIFESTS}/{path}"
            if full in files:
                raise CatalogError(
                    "invalid",
                    f"instances {owners[full]} and {part.instance} both write {path}",
                    remedy="Give one of them another output_path",
                )
            _check_path(path, part.instance)
            if len(content) > FILE_LIMIT:
                message = f"{path} has {len(content):,} bytes; a file may have {FILE_LIMIT:,}"
                raise CatalogError("limit", message, where=Where(instance=part.instance))
            files[full] = content
            owners[full] = part.instance
    for path, content in (references or {}).items():
        files[f"{_REFERENCES}/{path}"] = content
        owners[f"{_REFERENCES}/{path}"] = "the secret references"
    _check_total(files)
    _check_clashes(owners)
    return dict(sorted(files.items()))


def _check_path(path: str, instance: str) -> None:
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or not path.isprintable() or ".git" in map(str.lower, parts):
        where = Where(instance=instance)
        raise CatalogError("refused", f"{path[:200]!r} is no path of a file in a catalog", where=where)


def _check_total(files: Mapping[str, bytes]) -> None:
    if len(files) > FILES_LIMIT:
        raise CatalogError("limit", f"the catalog has {len(files):,} files; it may have {FILES_LIMIT:,}")
    total = sum(map(len, files.values()))
    if total > TOTAL_LIMIT:
        raise CatalogError("limit", f"the catalog has {total:,} bytes; it may have {TOTAL_LIMIT:,}")


def _check_clashes(owners: Mapping[str, str]) -> None:
    """Refuse a path that is file and directory, and paths that differ in case or in the form of a letter alone."""
    spellings: dict[str, str] = {}
    for path in sorted(owners):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            prefix = "/".join(parts[:depth])
            if depth < len(parts) and prefix in owners:
                raise _clash(prefix, path, owners, f"{prefix} is a file, and a directory for {path}")
            folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", prefix).casefold())
            other = spellings.setdefault(folded, prefix)
            if other != prefix:
                raise _clash(other, path, owners, f"{other} and {prefix} are one path on some file systems")


def _clash(one: str, other: str, owners: Mapping[str, str], message: str) -> CatalogError:
    first = next((owner for path, owner in sorted(owners.items()) if path == one or path.startswith(f"{one}/")), "")
    instances = dict.fromkeys([first, owners[other]])
    remedy = f"Written by {' and '.join(instances)}: give one of them another output_path or key"
    return CatalogError("invalid", message, remedy=remedy)
