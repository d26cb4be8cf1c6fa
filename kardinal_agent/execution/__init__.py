"""The PromotionStep controller: a pure decision, with its effects and its messages beside it."""

from kardinal_agent.execution.attempt import Attempt
from kardinal_agent.execution.reconciler import PromotionReconciler, sources
from kardinal_agent.execution.tools import Tools

__all__ = ["Attempt", "PromotionReconciler", "Tools", "sources"]
