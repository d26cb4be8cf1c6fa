"""The PolicyGate controllers.

instances   evaluates gate instances, the gates that a Bundle meets
templates   validates gate templates, and keeps freezes closed
events      the Events and the condition about the answer of a gate
"""

from kardinal_controller.gates.instances import GateReconciler
from kardinal_controller.gates.templates import TemplateReconciler

__all__ = ["GateReconciler", "TemplateReconciler"]
