"""Update `Chart.lock` when a dependency in `Chart.yaml` gets another version.

`helm dependency build`, which Argo CD runs as well, refuses a chart whose lock was made for other dependencies: the
lock contains a digest of both lists. The digest is computed here in the same way as in Helm. If it does not reproduce
the old digest from the old files, the edit is refused, so that a lock of another format is never broken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import yaml

from kardinal.bounded.loader import BoundedLoader
from kardinal.edits.helm.chart_versions import PromotedChart
from kardinal.edits.yaml.document_path import DocumentPath, ListIndex, MappingKey
from kardinal.edits.yaml.document_text import DocumentFile, FieldUpdate
from kardinal.edits.yaml.document_walk import DocumentError

__all__ = ["relocked"]

_OPTIONAL = ("version", "condition", "tags", "enabled", "import-values", "alias")
_ORDER = ("name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias")
_GO_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def relocked(lock: bytes, *, before: bytes, after: bytes, charts: Sequence[PromotedChart]) -> bytes:
    """Return `lock` updated from the `Chart.yaml` content `before` to the content `after`. Raises `DocumentError`."""
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
        FieldUpdate(
            path=DocumentPath((MappingKey("dependencies"), ListIndex(position), MappingKey("version"))), value=version
        )
        for position, version in found
    ]
    digest = _digest(_dependencies(_loaded(after)), _dependencies(_loaded(file.edited(updates))))
    return file.edited([*updates, FieldUpdate(path=DocumentPath((MappingKey("digest"),)), value=digest)])


def _loaded(content: bytes) -> dict[str, Any]:
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(content, Loader=yaml.CSafeLoader)):
            # The digest covers the expanded values, and nested aliases can expand to any number of values.
            raise DocumentError("repeats values by aliases, so that its lock cannot be kept true; write them out")
        found = yaml.load(content, Loader=BoundedLoader)  # noqa: S506 - a loader of plain values
    except (yaml.YAMLError, ValueError) as error:
        raise DocumentError("is not YAML that can be read") from error
    return found if isinstance(found, dict) else {}


def _dependencies(chart: dict[str, Any]) -> list[dict[str, Any]]:
    found = chart.get("dependencies")
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _digest(wanted: Sequence[dict[str, Any]], locked: Sequence[dict[str, Any]]) -> str:
    """Return the digest of Helm's `HashReq`: the SHA-256 of the JSON that Go writes for both lists."""
    lists = [[_fields(entry) for entry in entries] for entries in (wanted, locked)]
    text = json.dumps(lists, separators=(",", ":"), ensure_ascii=False, default=str)
    for character, escape in _GO_ESCAPES.items():
        text = text.replace(character, escape)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _fields(entry: dict[str, Any]) -> dict[str, Any]:
    present = {"name": "", "repository": ""} | entry
    return {key: _sorted(present[key]) for key in _ORDER if key in present and (key not in _OPTIONAL or present[key])}


def _sorted(value: Any) -> Any:
    """Return a value with the keys of its mappings sorted by name, in the order in which Go writes them."""
    if isinstance(value, dict):
        return {str(key): _sorted(value[key]) for key in sorted(value, key=str)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
