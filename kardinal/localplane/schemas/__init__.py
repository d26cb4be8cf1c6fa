"""What one schema says about one object: pruning, defaults, validation, CEL rules.

    validator                           one object against everything its schema says
    structural, compile                 the schema as a CRD carries it, compiled and refused
    nodes, checks, junctors             what it is compiled to
    rules, rule, values, types             `x-kubernetes-validations`
    causes                              field paths and the sentences of a refusal

Knows no kind: only a schema and a document.
"""

from kardinal.localplane.schemas.validator import Validator, compile_validator

__all__ = ["Validator", "compile_validator"]
