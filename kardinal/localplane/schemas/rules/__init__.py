"""CEL rules of schemas (`x-kubernetes-validations`): what they may say, and what they say against an object.

inspection, checker, celtypes, signatures   whether a rule can be compiled, as a cluster's compiler sees it
declarations                                what an expression sees of a schema
tree, rule                                  the rules of a schema, run over an object
library                                     the functions Kubernetes adds to the language
quantities, addresses, versions, namedformats

All of it is imported when a name of it is first used, which is at the first definition: with the language it takes half
a second and 25 MB. Whoever has an event loop to keep going calls `load` in a thread before.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kardinal.localplane.schemas.rules.inspection import rule_causes
    from kardinal.localplane.schemas.rules.tree import Judgement, Rules, compile_rules

__all__ = ["Judgement", "Rules", "compile_rules", "load", "rule_causes"]

_HOMES = {"rule_causes": "inspection", "Judgement": "tree", "Rules": "tree", "compile_rules": "tree"}


def load() -> None:
    """Import everything; belongs in a thread."""
    for module in set(_HOMES.values()):
        import_module(f"{__name__}.{module}")


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
