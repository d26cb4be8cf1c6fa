"""Values of YAML of others: with numbers of a bounded length, and `YAMLError` for every invalid scalar.

PyYAML reads `1:59:59` as a number to the base of 60; a number of that form with 256 KiB takes half a minute, in which
no other thread runs. For an invalid tagged scalar, such as `!!int ''` or `!!bool maybe`, it raises any error of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

__all__ = ["BoundedLoader"]

NUMBER_LIMIT = 64
"""The most characters of a number or a timestamp."""
_SCALARS = ("bool", "int", "float", "timestamp")


class BoundedLoader(yaml.CSafeLoader):
    """A `CSafeLoader` that raises `YAMLError` alone, for documents whose size and nesting are bounded already."""


def _bounded(construct: Callable[[BoundedLoader, yaml.ScalarNode], Any]) -> Callable[[BoundedLoader, yaml.Node], Any]:
    def constructed(loader: BoundedLoader, node: yaml.Node) -> Any:
        problem = f"a number of more than {NUMBER_LIMIT} characters"
        if isinstance(node, yaml.ScalarNode) and len(node.value) <= NUMBER_LIMIT:
            try:
                return construct(loader, node)
            except (ValueError, LookupError, AttributeError, TypeError, OverflowError):
                problem = "a value that is not what its tag says"
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)

    return constructed


for _scalar in _SCALARS:
    _tag = f"tag:yaml.org,2002:{_scalar}"
    BoundedLoader.add_constructor(_tag, _bounded(yaml.CSafeLoader.yaml_constructors[_tag]))
