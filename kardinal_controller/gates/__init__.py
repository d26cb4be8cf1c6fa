"""The PolicyGate controllers: one evaluates gate instances, the other validates templates and freezes."""

from kardinal_controller.gates.instances import GateReconciler
from kardinal_controller.gates.templates import TemplateReconciler

__all__ = ["GateReconciler", "TemplateReconciler"]
