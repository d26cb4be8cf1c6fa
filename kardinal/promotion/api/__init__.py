"""The custom resources: their models, which are the only definition of their fields, and the generated names.

crds                           the CRDs, generated from the models
pipeline, bundle, promotion_step, policy_gate, approval, graph, metric_check, subscription   one module per kind
health, evidence, bundle_artifacts   parts that several kinds share
names, commands, signature     labels and generated names, commands for people, the signature of the webhook
image, chart, artifacts        versions of artifacts as text, and their validation
supported, overlong            values that are refused or have no effect

A module is imported when one of its names is first used, so a command that needs only names does not load the models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kardinal.promotion.api.approval import Approval
    from kardinal.promotion.api.bundle import Bundle
    from kardinal.promotion.api.conditions import set_condition
    from kardinal.promotion.api.graph import Graph, GraphRevision
    from kardinal.promotion.api.metric_check import MetricCheck
    from kardinal.promotion.api.pipeline import Pipeline
    from kardinal.promotion.api.policy_gate import PolicyGate
    from kardinal.promotion.api.promotion_step import PromotionStep
    from kardinal.promotion.api.subscription import Subscription

__all__ = [
    "Approval",
    "Bundle",
    "Graph",
    "GraphRevision",
    "MetricCheck",
    "Pipeline",
    "PolicyGate",
    "PromotionStep",
    "Subscription",
    "set_condition",
]

_MODULES = {
    "approval": "Approval",
    "bundle": "Bundle",
    "conditions": "set_condition",
    "graph": "Graph GraphRevision",
    "metric_check": "MetricCheck",
    "pipeline": "Pipeline",
    "policy_gate": "PolicyGate",
    "promotion_step": "PromotionStep",
    "subscription": "Subscription",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
