"""The custom resources: the only definition of their fields, and the rules for generated names.

A module is imported when a name of its is first used: a command that needs names alone does not load the models.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kardinal.api.base import Condition, Model, ObjectMeta, OwnerReference, Resource, SecretReference, Status
    from kardinal.api.bundle import BUNDLE, Bundle
    from kardinal.api.conditions import set_condition
    from kardinal.api.duration import DurationError, format_duration, parse_duration
    from kardinal.api.graph import Graph, GraphRevision
    from kardinal.api.metric_check import METRIC_CHECK, MetricCheck
    from kardinal.api.pipeline import PIPELINE, Pipeline
    from kardinal.api.policy_gate import POLICY_GATE, PolicyGate
    from kardinal.api.promotion_step import PROMOTION_STEP, PromotionStep
    from kardinal.api.subscription import SUBSCRIPTION, Subscription

__all__ = [
    "BUNDLE",
    "METRIC_CHECK",
    "PIPELINE",
    "POLICY_GATE",
    "PROMOTION_STEP",
    "SUBSCRIPTION",
    "Bundle",
    "Condition",
    "DurationError",
    "Graph",
    "GraphRevision",
    "MetricCheck",
    "Model",
    "ObjectMeta",
    "OwnerReference",
    "Pipeline",
    "PolicyGate",
    "PromotionStep",
    "Resource",
    "SecretReference",
    "Status",
    "Subscription",
    "format_duration",
    "parse_duration",
    "set_condition",
]

_MODULES = {
    "base": "Condition Model ObjectMeta OwnerReference Resource SecretReference Status",
    "bundle": "BUNDLE Bundle",
    "conditions": "set_condition",
    "duration": "DurationError format_duration parse_duration",
    "graph": "Graph GraphRevision",
    "metric_check": "METRIC_CHECK MetricCheck",
    "pipeline": "PIPELINE Pipeline",
    "policy_gate": "POLICY_GATE PolicyGate",
    "promotion_step": "PROMOTION_STEP PromotionStep",
    "subscription": "SUBSCRIPTION Subscription",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
