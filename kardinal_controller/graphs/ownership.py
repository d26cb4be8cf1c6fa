"""The owners of Graphs: which Graphs are walked, which kinds their nodes may have, and with whose rights they write.

A walk writes objects. So each domain registers, where the program is composed, a `GraphOwner` for the Graphs that it
has made itself or trusts for another reason (Bundles: `kardinal_controller.bundles.graph_owner`); the engine compiles
and walks no other Graph. The deletion of a Graph needs no admission, because it removes only objects that the Graph
owns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from kardinal.kube import Client
from kardinal.objects import GRAPH, JsonObject, ResourceType, controller_of
from kardinal.runtime import Source

__all__ = ["ADMITTED", "UNDECIDED", "Admission", "GraphOwner", "GraphOwners"]


@dataclass(frozen=True, slots=True)
class Admission:
    """The answer about one Graph.

    `undecided`: the question is asked again when one of the `changes` of its owner happens. `message`: for `refused`,
    the reason and the remedy for the author of the Graph. `asked_again`: no event tells when the answer changes.
    """

    state: Literal["admitted", "undecided", "refused"]
    message: str = ""
    asked_again: bool = False


ADMITTED = Admission("admitted")
UNDECIDED = Admission("undecided")


class GraphOwner(Protocol):
    """A kind whose objects have Graphs that are walked, such as Bundle."""

    @property
    def resource(self) -> ResourceType | None:
        """Return the kind of the object that controls such a Graph; None for Graphs that no object controls."""
        ...

    @property
    def kinds(self) -> Collection[ResourceType]:
        """Return the kinds that the nodes of such a Graph may have."""
        ...

    @property
    def makes(self) -> Collection[ResourceType]:
        """Return the reserved kinds that templates of such a Graph may have besides, written as its account."""
        ...

    @property
    def records_specs(self) -> bool:
        """Return whether an admission counts for the present spec only, so that no earlier revision is walked."""
        ...

    def changes(self) -> Sequence[Source]:
        """Return the sources of changes that may change an admission."""
        ...

    async def admission(self, graph: JsonObject) -> Admission:
        """Return whether a Graph is recorded as one that is to be walked."""
        ...

    def identity(self, graph: JsonObject) -> Client:
        """Return the client with whose rights the objects of a Graph are written."""
        ...


class GraphOwners:
    """The owners that are registered with the engine."""

    def __init__(self, owners: Sequence[GraphOwner]) -> None:
        self._owners = {owner.resource: owner for owner in owners}

    @property
    def kinds(self) -> list[ResourceType]:
        """Return every kind that a node of a Graph may have, each once."""
        return list(dict.fromkeys(kind for owner in self._owners.values() for kind in owner.kinds))

    @property
    def read(self) -> list[ResourceType]:
        """Return every kind whose objects are read from the start, each once."""
        makes = (kind for owner in self._owners.values() for kind in owner.makes)
        return list(dict.fromkeys((*self.kinds, *makes)))

    def changes(self) -> list[Source]:
        """Return the sources of changes that may change an admission, of all owners."""
        return [source for owner in self._owners.values() for source in owner.changes()]

    def of(self, graph: JsonObject) -> GraphOwner | None:
        """Return the owner of a Graph; None if no owner is registered for it."""
        found = (owner for resource, owner in self._owners.items() if _is_controlled_by(graph, resource))
        return next(found, None)

    def refusal(self) -> Admission:
        """Return the refusal of a Graph that has no registered owner."""
        names = [resource.kind for resource in self._owners if resource not in (None, GRAPH)]
        walked = " and ".join(f"{name}s" for name in names)
        remedy = f"create a {' or a '.join(names)}, which gets one"
        return Admission("refused", f"only the Graphs of {walked} are walked in this version: {remedy}")


def _is_controlled_by(graph: JsonObject, resource: ResourceType | None) -> bool:
    """Return whether an object of a kind controls a Graph, or with None whether no object does."""
    if resource is not None:
        return controller_of(graph, resource) is not None
    references = graph["metadata"].get("ownerReferences") or ()
    return not any(reference.get("controller") for reference in references)
