"""The PromotionStep controller: a pure state machine with its effects at the edge."""

from kardinal_agent.execution.attempt import Attempt, Tools
from kardinal_agent.execution.reconciler import PromotionReconciler, sources

__all__ = ["Attempt", "PromotionReconciler", "Tools", "sources"]
