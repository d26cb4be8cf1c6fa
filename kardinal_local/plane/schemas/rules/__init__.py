"""Compile the CEL rules of schemas (`x-kubernetes-validations`), and evaluate them on objects.

inspection, checker, celtypes, signatures   whether a rule can be compiled, as a cluster's compiler sees it
declarations                                what an expression sees of a schema
tree, rule                                  the rules of a schema, run over an object
library                                     the functions Kubernetes adds to the language
quantities, addresses, versions, namedformats
"""

from kardinal_local.plane.schemas.rules.inspection import rule_causes
from kardinal_local.plane.schemas.rules.tree import Judgement, Rules, compile_rules

__all__ = ["Judgement", "Rules", "compile_rules", "rule_causes"]
