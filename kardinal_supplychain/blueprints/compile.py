"""The order in which the resources of a blueprint are stamped: each after those whose outputs it takes.

Among those that could come next, the order of the blueprint decides, so that the same blueprint always gives the same
order. A resource may take an output of one that is written after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from kardinal.objects.errors import KardinalError
from kardinal_supplychain.api.blueprints import BlueprintResource, DeliveryResource, ResourceInput, SupplyChainResource

__all__ = ["BlueprintCycle", "InputEdge", "InputType", "inputs_of", "stamping_order"]

InputType = Literal["sources", "images", "configs", "deployment"]


class BlueprintCycle(KardinalError):
    """Resources that wait for each other; `names` are in the order of the cycle."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"these resources wait for each other: {' -> '.join(names)}")
        self.names = tuple(names)


@dataclass(frozen=True, slots=True)
class InputEdge:
    """One input of a resource; `path` is that of its entry below the resource, such as `sources[0]`."""

    type: InputType
    name: str
    producer: str
    path: str


def inputs_of(resource: BlueprintResource) -> Iterator[InputEdge]:
    """Yield the inputs of a resource: sources, images, configs, deployment."""
    images = resource.images if isinstance(resource, SupplyChainResource) else ()
    lists: Mapping[InputType, Sequence[ResourceInput]] = {
        "sources": resource.sources,
        "images": images,
        "configs": resource.configs,
    }
    for kind, entries in lists.items():
        for index, entry in enumerate(entries):
            yield InputEdge(kind, entry.name, entry.resource, f"{kind}[{index}]")
    if isinstance(resource, DeliveryResource) and resource.deployment is not None:
        yield InputEdge("deployment", "deployment", resource.deployment.resource, "deployment")


def stamping_order(resources: Sequence[BlueprintResource]) -> tuple[str, ...]:
    """Return the names of the resources in the order in which they are stamped. Raises `BlueprintCycle`.

    An input of a resource that does not exist is ignored; `validate` reports it.
    """
    names = [resource.name for resource in resources]
    sorter = TopologicalSorter[str]()
    for resource in resources:
        sorter.add(resource.name, *(edge.producer for edge in inputs_of(resource) if edge.producer in names))
    try:
        sorter.prepare()
    except CycleError as error:
        # graphlib names each resource before the one that it is an input of.
        raise BlueprintCycle(error.args[1]) from None
    order: list[str] = []
    ready: set[str] = set()
    while sorter.is_active():
        ready |= set(sorter.get_ready())
        following = min(ready, key=names.index)
        ready.remove(following)
        order.append(following)
        sorter.done(following)
    return tuple(order)
