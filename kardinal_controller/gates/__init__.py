"""The PolicyGate reconcilers: instances are evaluated, templates and freezes are validated."""

from kardinal_controller.gates.instances import GateReconciler
from kardinal_controller.gates.templates import TemplateReconciler

__all__ = ["GateReconciler", "TemplateReconciler"]
