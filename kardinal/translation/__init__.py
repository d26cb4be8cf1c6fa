"""Translation: a Pipeline, a Bundle and the gate templates become a Graph. Pure.

environment_order, route     the order of the environments, and the part of it that a Bundle takes
validation, repository       what this version cannot execute, with its field path
skip                         whether an environment may be left out
nodes, translate             the nodes of the Graph
topology                     environments, gates and edges of an existing Graph
"""

from kardinal.translation.errors import GraphNameTaken, InvalidSpec, Problem, PromotionError, SkipDenied
from kardinal.translation.repository import Features
from kardinal.translation.translate import extend_graph, translate, validate

__all__ = [
    "Features",
    "GraphNameTaken",
    "InvalidSpec",
    "Problem",
    "PromotionError",
    "SkipDenied",
    "extend_graph",
    "translate",
    "validate",
]
