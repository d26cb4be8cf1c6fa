"""Keeping `Chart.lock` true when a dependency in `Chart.yaml` gets another version.

`helm dependency build`, which Argo CD runs as well, refuses a chart whose lock was made for other dependencies: the
lock holds a digest of both lists. The digest is computed here as Helm does it, and only if that gives the old one for
the old files, so that a lock of another format is never broken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import yaml

from kardinal.steps.chart_versions import PromotedChart
from kardinal.steps.document_path import DocumentPath, Index, Key
from kardinal.steps.document_text import DocumentFile, Update
from kardinal.steps.document_walk import DocumentError

__all__ = ["relocked"]

_OPTIONAL = ("version", "condition", "tags", "enabled", "import-values", "alias")
_ORDER = ("name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias")
_GO_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def relocked(lock: bytes, *, before: bytes, after: bytes, charts: Sequence[PromotedChart]) -> bytes:
    """Return the lock for the chart `after`; `lock` is the one for `before`. Raises `DocumentError`."""
    file = DocumentFile.parse(lock)
    locked = _loaded(lock)
    if locked.get("digest") != _digest(_dependencies(_loaded(before)), _dependencies(locked)):
        raise DocumentError("does not fit Chart.yaml as it is; run `helm dependency update` and commit the result")
    versions = {chart.name: chart.version for chart in charts}
    found = [
        (position, versions[entry["name"]])
        for position, entry in enumerate(_dependencies(locked))
        if entry.get("name") in versions
    ]
    updates = [
        Update(path=DocumentPath((Key("dependencies"), Index(position), Key("version"))), value=version)
        for position, version in found
    ]
    digest = _digest(_dependencies(_loaded(after)), _dependencies(_loaded(file.edited(updates))))
    return file.edited([*updates, Update(path=DocumentPath((Key("digest"),)), value=digest)])


def _loaded(content: bytes) -> dict[str, Any]:
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content, Loader=yaml.CSafeLoader)):
            # The digest has every value written out, and aliases of aliases become any number of values.
            raise DocumentError("repeats values by aliases, so that its lock cannot be kept true; write them out")
        found = yaml.load(content, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        raise DocumentError("is not YAML that can be read") from error
    return found if isinstance(found, dict) else {}


def _dependencies(chart: dict[str, Any]) -> list[dict[str, Any]]:
    found = chart.get("dependencies")
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _digest(wanted: Sequence[dict[str, Any]], locked: Sequence[dict[str, Any]]) -> str:
    """Return `HashReq` of Helm: the SHA-256 of the JSON that Go writes for both lists."""
    lists = [[_fields(entry) for entry in entries] for entries in (wanted, locked)]
    text = json.dumps(lists, separators=(",", ":"), ensure_ascii=False, default=str)
    for character, escape in _GO_ESCAPES.items():
        text = text.replace(character, escape)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _fields(entry: dict[str, Any]) -> dict[str, Any]:
    present = {"name": "", "repository": ""} | entry
    return {key: _sorted(present[key]) for key in _ORDER if key in present and (key not in _OPTIONAL or present[key])}


def _sorted(value: Any) -> Any:
    """Return a value with the keys of its mappings in the order of their names, as Go writes them."""
    if isinstance(value, dict):
        return {str(key): _sorted(value[key]) for key in sorted(value, key=str)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
