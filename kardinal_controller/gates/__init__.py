"""The PolicyGate controllers.

instances   evaluates gate instances, the gates that a Bundle meets
promotions  the promotion of an instance, and the protocol of what reads a variable for it
inputs      the variables about environments: upstream, contracts and delegation
templates   validates gate templates, and keeps freezes closed
events      the Events and the condition about the answer of a gate
"""

from kardinal_controller.gates.inputs import ContractInput, DelegationInput, UpstreamInput
from kardinal_controller.gates.instances import GateReconciler
from kardinal_controller.gates.templates import TemplateReconciler

__all__ = ["ContractInput", "DelegationInput", "GateReconciler", "TemplateReconciler", "UpstreamInput"]
