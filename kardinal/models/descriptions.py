"""The descriptions of fields that `kubectl explain` prints: the docstrings after the fields of the models.

Python keeps no docstrings of fields, so they are read from the source, and only when CRDs are generated.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from pydantic import BaseModel

__all__ = ["field_descriptions"]


def field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Return the description of each field that has one, by the name of the field, including inherited fields."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, BaseModel) and cls is not BaseModel:
            found |= _of_module(cls.__module__).get(cls.__name__, {})
    return {name: text for name, text in found.items() if name in model.model_fields}


@cache
def _of_module(name: str) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of fields, by class and field."""
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    return {node.name: _of_class(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _of_class(node: ast.ClassDef) -> dict[str, str]:
    found = {}
    for statement, following in pairwise(node.body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=field)), ast.Expr(value=ast.Constant(value=str(text))):
                found[field] = " ".join(inspect.cleandoc(text).split())
    return found
