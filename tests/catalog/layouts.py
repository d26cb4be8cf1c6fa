"""Layouts of classes in a directory, and their merge in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.values import Merged, Node
from kardinal.catalog.worker.hierarchy import merge
from kardinal.objects import JsonObject

__all__ = ["failed_merge", "lay_out", "merge_one", "parameters_of"]


def lay_out(root: Path, classes: Mapping[str, str | bytes]) -> Path:
    """Write class files, by their path below `inventory/classes`; return the layout."""
    (root / "inventory/classes").mkdir(parents=True, exist_ok=True)
    for path, content in classes.items():
        file = root / "inventory/classes" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def merge_one(
    root: Path,
    classes: Mapping[str, str | bytes],
    included: Sequence[str],
    parameters: JsonObject | None = None,
    *,
    tolerate_missing: bool = False,
    walk_first: bool = False,
) -> Merged:
    """Return the merge of one node that includes the classes `included`."""
    node = Node(tuple(included), parameters or {})
    merged = merge(lay_out(root, classes), {"n": node}, tolerate_missing=tolerate_missing, walk_first=walk_first)
    return merged["n"]


def parameters_of(root: Path, *classes: str, **parameters: Any) -> JsonObject:
    """Return the merged parameters of a node that includes one class for each text of `classes`, in this order."""
    files = {f"c{number}.yml": f"parameters:\n{text}" for number, text in enumerate(classes)}
    merged = dict(merge_one(root, files, [f"c{number}" for number in range(len(classes))], parameters).parameters)
    del merged["_reclass_"]
    return merged


def failed_merge(
    root: Path,
    classes: Mapping[str, str | bytes],
    included: Sequence[str],
    parameters: JsonObject | None = None,
    *,
    walk_first: bool = False,
) -> CatalogError:
    """Return the error of a merge that fails."""
    with pytest.raises(CatalogError) as failed:
        merge_one(root, classes, included, parameters, walk_first=walk_first)
    return failed.value
