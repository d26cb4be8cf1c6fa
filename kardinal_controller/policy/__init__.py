"""Gates: what their expressions see, what they answer, and when that is looked at again (DD 5.2).

attributes, context           what an expression may read, and what it reads
evaluate, transition          the answer, its reason, and when time turns it: pure
freshness, decision           what of it is written, and when to look again: pure
gates                         which templates hold for which Pipeline
instances, templates          the reconcilers
"""

from kardinal_controller.policy.context import Context, Soak, upstream_soak
from kardinal_controller.policy.decision import Decision, decide
from kardinal_controller.policy.evaluate import Answer, evaluate, fault
from kardinal_controller.policy.gates import GateTemplate, collect
from kardinal_controller.policy.instances import GateReconciler
from kardinal_controller.policy.templates import TemplateReconciler
from kardinal_controller.policy.transition import next_transition

__all__ = [
    "Answer",
    "Context",
    "Decision",
    "GateReconciler",
    "GateTemplate",
    "Soak",
    "TemplateReconciler",
    "collect",
    "decide",
    "evaluate",
    "fault",
    "next_transition",
    "upstream_soak",
]
