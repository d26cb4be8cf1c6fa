"""The PromotionStep controller: a pure state machine with its effects at the edge."""

from kardinal_agent.promotion.attempt import Attempt, Tools
from kardinal_agent.promotion.reconciler import PromotionReconciler, sources

__all__ = ["Attempt", "PromotionReconciler", "Tools", "sources"]
