"""Validate objects against the schema of a CRD, and validate such schemas.

    validator                           one object against everything its schema says
    structural                          the schema compiled: shaping, then judging
    shaping                             pruning and defaults
    judging, checks, formats            keyword by keyword
    combinators                         allOf, anyOf, oneOf, not
    correlation                         which old value belongs to a value of an update
    uniqueness, embedded, scale         sets and keyed lists, objects inside objects, the numbers of a scale
    rules/                              `x-kubernetes-validations`
    definition                          whether a schema may stand in a CRD at all:
    structure, declared, defaults           structural, keyword by keyword, its defaults
    fieldpaths, names                   the small grammars of a CRD
    causes, printing, internal          the sentences of a refusal

Knows no kind: only a schema and a document.

What is offered here is imported when a name of it is first used, which is at the first definition: with the language of
rules it takes half a second and 30 MB. A caller on an event loop calls `load` in a thread before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kardinal_local.plane.schemas.definition import schema_causes, unknown_formats
    from kardinal_local.plane.schemas.validator import Outcome, Validator, compile_validator

__all__ = ["Outcome", "Validator", "compile_validator", "load", "schema_causes", "unknown_formats"]

_MODULES = {
    "definition": "schema_causes unknown_formats",
    "validator": "Outcome Validator compile_validator",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def load() -> None:
    """Import everything; belongs in a thread."""
    for module in _MODULES:
        import_module(f"{__name__}.{module}")


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
