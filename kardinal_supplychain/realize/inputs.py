"""The inputs of a resource: which outputs of others it takes, and their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kardinal_supplychain.api.blueprints import BlueprintResource, DeliveryResource, SupplyChainResource
from kardinal_supplychain.blueprints.compile import InputEdge, inputs_of
from kardinal_supplychain.realize.context import InputValues, SourceValue
from kardinal_supplychain.realize.outputs import Outputs

__all__ = ["OUTPUTS_OF", "AnyResource", "edges_passed_through", "input_values", "missing_outputs", "outputs_taken"]

AnyResource = SupplyChainResource | DeliveryResource

OUTPUTS_OF: Mapping[str, tuple[str, ...]] = {
    "ClusterSourceTemplate": ("url", "revision"),
    "ClusterDeploymentTemplate": ("url", "revision"),
    "ClusterImageTemplate": ("image",),
    "ClusterConfigTemplate": ("config",),
    "ClusterTemplate": (),
}
"""The names of the outputs of each kind of template."""


def outputs_taken(edge: InputEdge) -> tuple[str, ...]:
    """Return the names of the outputs that an input takes."""
    return {"images": ("image",), "configs": ("config",)}.get(edge.type, ("url", "revision"))


def missing_outputs(resource: BlueprintResource, known: Mapping[str, Outputs]) -> Iterator[tuple[str, str]]:
    """Yield producer and name of each output that a resource takes and that has no value; `known` is by producer."""
    for edge in inputs_of(resource):
        values = known.get(edge.producer, {})
        yield from ((edge.producer, name) for name in outputs_taken(edge) if name not in values)


def input_values(resource: BlueprintResource, known: Mapping[str, Outputs]) -> InputValues:
    """Return the values of the inputs of a resource, none of which is missing."""
    values: dict[str, dict[str, Any]] = {"sources": {}, "images": {}, "configs": {}, "deployment": {}}
    for edge in inputs_of(resource):
        taken = [known[edge.producer][name] for name in outputs_taken(edge)]
        values[edge.type][edge.name] = SourceValue(*taken) if len(taken) == 2 else taken[0]
    deployment: SourceValue | None = values["deployment"].get("deployment")
    return InputValues(
        sources=values["sources"], images=values["images"], configs=values["configs"], deployment=deployment
    )


def edges_passed_through(resource: AnyResource, name: str) -> list[InputEdge]:
    """Return the inputs that an option with `passThrough: NAME` passes on: one, in a blueprint without problems."""
    outputs = OUTPUTS_OF[resource.template_ref.kind]
    return [edge for edge in inputs_of(resource) if edge.name == name and outputs_taken(edge) == outputs]
