"""The custom resources of promotion as `ResourceType`: their group, version, kind and plural.

They are not defined beside the models in `kardinal.promotion.api`, so that a command that prints a list, such as
`kardinal get bundles`, need not import the models, which would take a third of its time.
"""

from __future__ import annotations

from kardinal.objects.resource_type import ResourceType

__all__ = [
    "APPROVAL",
    "BUNDLE",
    "METRIC_CHECK",
    "PIPELINE",
    "POLICY_GATE",
    "PROMOTION_STEP",
    "SUBSCRIPTION",
]

APPROVAL = ResourceType("kardinal.io", "v1alpha1", "Approval", "approvals")
BUNDLE = ResourceType("kardinal.io", "v1alpha1", "Bundle", "bundles")
PIPELINE = ResourceType("kardinal.io", "v1alpha1", "Pipeline", "pipelines")
POLICY_GATE = ResourceType("kardinal.io", "v1alpha1", "PolicyGate", "policygates")
PROMOTION_STEP = ResourceType("kardinal.io", "v1alpha1", "PromotionStep", "promotionsteps")
METRIC_CHECK = ResourceType("kardinal.io", "v1alpha1", "MetricCheck", "metricchecks")
SUBSCRIPTION = ResourceType("kardinal.io", "v1alpha1", "Subscription", "subscriptions")
