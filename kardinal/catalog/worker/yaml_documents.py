"""Load the YAML of components, charts and manifests: YAML 1.1, as PyYAML reads it.

The process bounds memory and time; the C composer, however, recurses without a limit and would end the process.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from kardinal.bounded.loader import BoundedLoader
from kardinal.catalog.errors import CatalogError

__all__ = ["load_documents"]

_MAX_DEPTH = 1_000
_OPENING = re.compile(r"[\[{]")


def load_documents(text: str, file: str) -> list[Any]:
    """Return the values of all documents. `file` is named in the `CatalogError` for what is not YAML."""
    try:
        _check_depth(text, file)
        return list(yaml.load_all(text, Loader=BoundedLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" in line {mark.line + 1}" if mark else ""
        problem = f"{file} is not YAML: {error.problem or error.context}{place}"
    except yaml.YAMLError:
        problem = f"{file} is not YAML: it has a character that YAML does not allow"
    raise CatalogError("render", problem, remedy="Correct the file, or the template that writes it")


def _check_depth(text: str, file: str) -> None:
    """Raise `CatalogError` for deep nesting; only a text that could be that deep is parsed for it.

    A level needs a bracket, or begins one column further right at least.
    """
    longest = max(map(len, text.splitlines()), default=0)
    if longest + len(_OPENING.findall(text)) < _MAX_DEPTH:
        return
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise CatalogError(
                "limit", f"{file} is nested deeper than {_MAX_DEPTH:,} levels", remedy="Write it with fewer levels"
            )
