"""The PolicyGate controllers.

instances   evaluates gate instances, the gates that a Bundle meets
calendars   the time zones of gates, with the holidays of ConfigMaps
promotions  the promotion of an instance, and the protocol of what reads a variable for it
inputs      the variables about environments: upstream, contracts, delegation and targetDrift
templates   validates gate templates, and keeps freezes closed
events      the Events and the condition about the answer of a gate
"""

from kardinal_controller.gates.calendars import Calendars
from kardinal_controller.gates.inputs import ContractInput, DelegationInput, DriftInput, UpstreamInput
from kardinal_controller.gates.instances import GateReconciler
from kardinal_controller.gates.templates import TemplateReconciler

__all__ = [
    "Calendars",
    "ContractInput",
    "DelegationInput",
    "DriftInput",
    "GateReconciler",
    "TemplateReconciler",
    "UpstreamInput",
]
