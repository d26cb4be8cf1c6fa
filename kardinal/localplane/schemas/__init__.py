"""What one schema says about one object, and what a server says about a schema.

    validator                           one object against everything its schema says
    structural                          the schema compiled: shaping, then judging
    shaping                             pruning and defaults
    judging, checks, formats, junctors  keyword by keyword
    correlation                         which old value belongs to a value of an update
    twins, embedded, scale              lists without repetitions, objects inside objects, numbers to scale
    rules/                              `x-kubernetes-validations`
    definition                          whether a schema may stand in a CRD at all:
    structure, declared, defaults           structural, keyword by keyword, its defaults
    fieldpaths, names                   the small grammars of a CRD
    causes, printing, internal          the sentences of a refusal

Knows no kind: only a schema and a document.
"""

from kardinal.localplane.schemas.definition import schema_causes, unknown_formats
from kardinal.localplane.schemas.rules import load as load_rules
from kardinal.localplane.schemas.validator import Outcome, Validator, compile_validator

__all__ = [
    "Outcome",
    "Validator",
    "compile_validator",
    "load_rules",
    "schema_causes",
    "unknown_formats",
]
