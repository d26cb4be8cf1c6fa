"""The custom resources: the only definition of their fields, and the rules for generated names."""

from kardinal.api.base import (
    Condition,
    Model,
    ObjectMeta,
    OwnerReference,
    Resource,
    SecretReference,
    Status,
)
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
