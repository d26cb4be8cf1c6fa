"""From a Bundle to a Graph, and from what came of the Graph back to the Bundle (promotion.md).

availability, repository, route, skip   what can be promoted, and on which way: pure
nodes, translate, legend                the Graph, drawn and read back: pure
progress, scene, status, succession     what follows for the Bundle: pure
graphs, bundles, pipelines, wakes       the reconcilers, and what wakes them
"""

from kardinal_controller.promotion.bundles import BundleReconciler
from kardinal_controller.promotion.errors import GraphNameTaken, InvalidSpec, Problem, PromotionError, SkipDenied
from kardinal_controller.promotion.graphs import GraphKeeper
from kardinal_controller.promotion.pipelines import PipelineReconciler
from kardinal_controller.promotion.repository import Features
from kardinal_controller.promotion.translate import extend_graph, translate, validate
from kardinal_controller.promotion.unavailable import UnavailableKindReconciler

__all__ = [
    "BundleReconciler",
    "Features",
    "GraphKeeper",
    "GraphNameTaken",
    "InvalidSpec",
    "PipelineReconciler",
    "Problem",
    "PromotionError",
    "SkipDenied",
    "UnavailableKindReconciler",
    "extend_graph",
    "translate",
    "validate",
]
