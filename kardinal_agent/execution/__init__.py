"""The PromotionStep controller: a pure decision, with its effects and its messages beside it."""

from kardinal_agent.execution.attempt import Attempt, Tools
from kardinal_agent.execution.reconciler import PromotionReconciler, sources

__all__ = ["Attempt", "PromotionReconciler", "Tools", "sources"]
