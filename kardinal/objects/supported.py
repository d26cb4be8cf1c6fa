"""The choices of resources, steps, Graph nodes and expressions that this version executes.

The resources describe more than is built. An adapter, a delegate, a step or a modifier that is silently ignored ends in
an environment that is Verified without having been, so everything that is not listed here as supported is refused by
name, where its author looks. The tables are plain names, because rooms that know no model read them as well.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "FIELD_VALUES",
    "UNAVAILABLE_ATTRIBUTES",
    "UNAVAILABLE_NODE_KEYS",
]

FIELD_VALUES: Mapping[tuple[str, str], tuple[object, ...]] = {
    ("PipelineSpec", "promotion_policy"): ("supersede", "queue"),
    ("Git", "layout"): ("directory", "branch"),
    ("Git", "merge_method"): (None, "merge", "squash", "rebase"),
    ("Git", "status_on_others"): (False, True),
    ("Update", "strategy"): ("kustomize", "helm", "replace"),
    ("Update", "verify_effect"): ("fail", "warn", "off"),
    ("HealthFlux", "kind"): ("Kustomization", "HelmRelease"),
    ("HealthResource", "kind"): (None, "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"),
    ("Delivery", "delegate"): ("none", "argoRollouts", "flagger"),
    ("Environment", "approval"): ("auto", "pr-review"),
    ("Environment", "on_health_failure"): ("none", "abort", "rollback"),
    ("BundleSpec", "type"): ("image", "config", "mixed"),
    ("IntentRequest", "action"): ("promote", "retry"),
    ("ConfigUpdate", "strategy"): ("cherry-pick", "overlay"),
}
"""(model, attribute) -> the values that are executed; None stands for leaving the field out."""

UNAVAILABLE_NODE_KEYS = frozenset(
    ["patch", "def", "forEach", "finalizes", "lifecycle", "dependsOn", "recheckAfter", "timeout", "onTimeout", "metric"]
)
"""Keys of the Graph dialect that are not built."""

UNAVAILABLE_ATTRIBUTES = frozenset(["metrics", "delegation", "externalApproval", "contracts", "targetDrift"])
"""Roots of attributes that gate expressions cannot read in this version."""
