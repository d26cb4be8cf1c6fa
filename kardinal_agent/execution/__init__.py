"""The controller of PromotionSteps: facts, rules and decision are functions; effects and writing are beside them."""

from kardinal_agent.execution.reconciler import PromotionReconciler
from kardinal_agent.execution.tools import Tools
from kardinal_agent.execution.watches import sources

__all__ = ["PromotionReconciler", "Tools", "sources"]
