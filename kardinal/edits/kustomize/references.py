"""The references of a kustomization: paths inside the repository, and URLs.

kustomize takes many fields as file names, and downloads every reference that looks like a URL, also in the files of a
generator. So a URL in any field except plain text fields counts as a download.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from kardinal.edits.kustomize.manifests import Mapping, Unread, Value, sequence, text_of

__all__ = ["inside", "is_remote", "local_path", "misspelt_field", "remote_references", "uses_helm"]

_REMOTE = re.compile(r"(?:git::)?(?:[a-z][a-z0-9+.-]*://|[^/@\s]+@[^/\s]|(?:[^/\s]*\.)?github\.com[:/])", re.IGNORECASE)
_URL = re.compile(r"(?<![a-z0-9+.-])[0-9+.-]*+[a-z][a-z0-9+.-]*+://", re.IGNORECASE)
_TEXT = frozenset(
    (
        "apiVersion",
        "kind",
        "metadata",
        "commonLabels",
        "labels",
        "commonAnnotations",
        "images",
        "imageTags",
        "replicas",
        "namespace",
        "namePrefix",
        "nameSuffix",
        "buildMetadata",
        "sortOptions",
        "vars",
        "generatorOptions",
        "literals",
        "options",
        "patch",
        "patchesStrategicMerge",
        "valuesInline",
    )
)
"""Fields that kustomize never takes as file names.

In `patchesStrategicMerge`, a text without line breaks can be one.
"""
_BASES = ("resources", "bases", "components")
_FIELDS = _TEXT | {
    *_BASES,
    "patches",
    "patchesJson6902",
    "crds",
    "openapi",
    "configMapGenerator",
    "secretGenerator",
    "helmGlobals",
    "helmCharts",
    "helmChartInflationGenerator",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "replacements",
}
_FOLDED = {name.casefold(): name for name in _FIELDS}


def is_remote(reference: str) -> bool:
    """Return whether kustomize would download an entry of `resources`."""
    return _REMOTE.match(reference) is not None


def local_path(directory: str, reference: str) -> str:
    """Return the path in the repository to which `reference`, in a kustomization in `directory`, leads."""
    if not reference or reference.startswith("/") or "\\" in reference or "\0" in reference:
        raise Unread(f"{reference[:80]!r} is not a relative path")
    path = posixpath.normpath(posixpath.join(directory, reference))
    if path == ".." or path.startswith("../"):
        raise Unread(f"{reference[:80]!r} leaves the repository")
    return "" if path == "." else path


def inside(directory: str, reference: str) -> str:
    """Return the path of a referenced file; raises `Unread` if it is outside of the directory of the kustomization."""
    path = local_path(directory, reference)
    if directory and path != directory and not path.startswith(f"{directory}/"):
        raise Unread(f"{reference[:80]!r} is a file outside of {directory}, which kustomize refuses")
    return path


def remote_references(kustomization: Mapping) -> Iterator[str]:
    """Yield the references that kustomize would download for a kustomization."""
    for field in _BASES:
        for entry in sequence(kustomization.get(field)):
            if is_remote(text_of(entry)):
                yield text_of(entry)
    for field, value in kustomization.items():
        if field in _BASES:
            continue
        if field == "patchesStrategicMerge":
            yield from (text for text in _scalars(value) if "\n" not in text and _URL.search(text))
        elif field not in _TEXT:
            yield from (text for text in _scalars(value) if _URL.search(text) or text.startswith("git@"))


def misspelt_field(kustomization: Mapping) -> str | None:
    """Return a field whose name differs from a kustomize field only in case; kustomize treats both as the same."""
    return next((name for name in kustomization if name not in _FIELDS and name.casefold() in _FOLDED), None)


def uses_helm(kustomization: Mapping) -> bool:
    """Return whether the kustomization inflates Helm charts."""
    return bool(kustomization.get("helmCharts") or kustomization.get("helmChartInflationGenerator"))


def _scalars(value: Value) -> Iterator[str]:
    pending: list[Value] = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            pending += one
        elif isinstance(one, dict):
            pending += (item for key, item in one.items() if key not in _TEXT)
