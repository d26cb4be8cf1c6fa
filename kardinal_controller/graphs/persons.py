"""Admit Graphs that no object controls: those that a person or a GitOps tool has written.

Such a Graph is walked with the rights of the ServiceAccount that it names, and with no right of the controller.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kardinal.kube import Client
from kardinal.objects import JsonObject, ResourceType
from kardinal.runtime import Source
from kardinal_controller.graphs.accounts import account_of
from kardinal_controller.graphs.ownership import ADMITTED, Admission

__all__ = ["GraphsOfPersons"]


class GraphsOfPersons:
    """The owner, for the engine, of Graphs without a controller."""

    resource: ResourceType | None = None
    kinds: Collection[ResourceType] = ()
    records_specs = False

    def changes(self) -> Sequence[Source]:
        return ()

    async def admission(self, graph: JsonObject) -> Admission:
        """Return whether the Graph names an account; its rights are asked for where they are needed."""
        if account_of(graph) is None:
            remedy = "name a ServiceAccount of this namespace, with whose rights it is walked"
            return Admission("refused", f"spec.serviceAccountName: {remedy}; or create a Bundle, which gets a Graph")
        return ADMITTED

    def identity(self, graph: JsonObject) -> Client:
        """Return nothing: no kind is written with rights of the controller."""
        raise TypeError("a Graph of a person writes as its account alone")
