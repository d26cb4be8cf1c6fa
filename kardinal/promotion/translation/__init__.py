"""Translation: a Pipeline, a Bundle and the gate templates become a Graph. Pure.

environment_order, route,
conditional                  the order of the environments, and the part of it that a Bundle goes through
validation, repository       fields that this version cannot execute, with their paths and remedies
branches, bundle_fit, pins   more checks: own branches, artifacts that no step takes, digests that are missing
skip                         whether a Bundle may skip an environment
soakless                     gates that ask for a soak before an environment without upstreams
nodes, translate             the nodes of the Graph
topology                     environments, gates and edges of an existing Graph
recorded, drift              whether a Graph is as it was written, and how it differs from today's Pipeline
rollback                     which Bundle ran in an environment, and which one a rollback restores
authored                     whether a Graph that a person has written is what translation makes
preview                      the PromotionSteps of a Bundle without a Graph
"""

from kardinal.promotion.translation.errors import GraphNameTaken, InvalidSpec, Problem, PromotionError, SkipDenied
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.translate import extend_graph, translate, validate

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
