"""Render all resources of an owner at once, with outputs that are given instead of read from a cluster.

It goes the same way as a controller: the option, the parameters, the inputs, the template. A resource whose input is
not given waits, and those that need it wait, too; a resource that fails leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kardinal.objects import JsonObject
from kardinal.objects.errors import KardinalError
from kardinal_supplychain.api.blueprints import ClusterDelivery, ClusterSupplyChain
from kardinal_supplychain.api.kinds import CLUSTER_DEPLOYMENT_TEMPLATE
from kardinal_supplychain.api.owners import OwnerSpec
from kardinal_supplychain.api.templates import TemplateSpec
from kardinal_supplychain.blueprints.compile import stamping_order
from kardinal_supplychain.blueprints.options import chosen_option
from kardinal_supplychain.blueprints.params import ResolvedParam, resolve_params
from kardinal_supplychain.realize.bundle import is_bundle, stamp_bundle
from kardinal_supplychain.realize.conditions import words_of
from kardinal_supplychain.realize.context import InputValues, template_context
from kardinal_supplychain.realize.inputs import (
    AnyResource,
    edges_passed_through,
    input_values,
    missing_outputs,
    outputs_taken,
)
from kardinal_supplychain.realize.outputs import Outputs
from kardinal_supplychain.realize.stamp import ResourcePlace, render_template, stamp_object
from kardinal_supplychain.realize.templates import TemplateFinder

__all__ = ["RenderedResource", "YttFunction", "render_owner"]

YttFunction = Callable[[str, JsonObject], JsonObject]
"""Return the object that a template of ytt makes of data values. Raises `StampError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedResource:
    """One resource: its object, or the outputs that it waits for (`source.url`), or why it cannot be made.

    `template` is empty, and there is no object, if an option passes an input through.
    """

    name: str
    template_kind: str
    template: str = ""
    passes: str = ""
    params: Mapping[str, ResolvedParam] = field(default_factory=dict)
    object: JsonObject | None = None
    waits_for: tuple[str, ...] = ()
    error: str = ""


def render_owner(
    owner: JsonObject,
    spec: OwnerSpec,
    blueprint: ClusterSupplyChain | ClusterDelivery,
    *,
    find: TemplateFinder,
    outputs: Mapping[str, Outputs],
    ytt: YttFunction,
) -> tuple[RenderedResource, ...]:
    """Return the resources of an owner in the order in which they are stamped.

    `outputs` are given by resource and name. Raises `BlueprintCycle`.
    """
    resources: Sequence[AnyResource] = blueprint.spec.resources
    by_name = {resource.name: resource for resource in resources}
    renderer = _Renderer(owner, spec, blueprint, find=find, outputs=dict(outputs), ytt=ytt)
    return tuple(renderer.rendered(by_name[name]) for name in stamping_order(resources))


class _Renderer:
    def __init__(
        self,
        owner: JsonObject,
        spec: OwnerSpec,
        blueprint: ClusterSupplyChain | ClusterDelivery,
        *,
        find: TemplateFinder,
        outputs: dict[str, Outputs],
        ytt: YttFunction,
    ) -> None:
        self._owner = owner
        self._spec = spec
        self._blueprint = blueprint
        self._find = find
        self._outputs = outputs
        self._ytt = ytt
        self._words = words_of(owner["kind"])

    def rendered(self, resource: AnyResource) -> RenderedResource:
        kind = resource.template_ref.kind
        try:
            option = chosen_option(resource.template_ref, self._owner, place=self._place(resource.name))
        except KardinalError as error:
            return RenderedResource(name=resource.name, template_kind=kind, error=str(error))
        if option is not None and option.pass_through is not None:
            return self._passed(resource, option.pass_through)
        name = (option.name if option is not None else resource.template_ref.name) or ""
        template = self._find(kind, name)
        if template is None:
            missing = f"there is no {kind} {name}"
            return RenderedResource(name=resource.name, template_kind=kind, template=name, error=missing)
        return self._stamped(resource, name, template)

    def _place(self, resource: str) -> str:
        return f"resource [{resource}] in {self._words.blueprint} [{self._blueprint.metadata.name}]"

    def _passed(self, resource: AnyResource, name: str) -> RenderedResource:
        """Make the outputs of an input those of the resource."""
        kind = resource.template_ref.kind
        edges = edges_passed_through(resource, name)
        known = {key: value for edge in edges for key, value in self._outputs.get(edge.producer, {}).items()}
        self._outputs[resource.name] = {**known, **self._outputs.get(resource.name, {})}
        waits_for = tuple(
            f"{edge.producer}.{key}"
            for edge in edges
            for key in outputs_taken(edge)
            if key not in self._outputs[resource.name]
        )
        return RenderedResource(name=resource.name, template_kind=kind, passes=name, waits_for=waits_for)

    def _stamped(self, resource: AnyResource, name: str, template: TemplateSpec) -> RenderedResource:
        kind = resource.template_ref.kind
        params = resolve_params(
            template=template.params,
            blueprint=self._blueprint.spec.params,
            resource=resource.params,
            owner=self._spec.params,
        )
        waits_for = tuple(f"{producer}.{output}" for producer, output in missing_outputs(resource, self._outputs))
        if waits_for:
            return RenderedResource(
                name=resource.name, template_kind=kind, template=name, params=params, waits_for=waits_for
            )
        inputs = input_values(resource, self._outputs)
        place = ResourcePlace(
            blueprint=self._blueprint.metadata.name,
            resource=resource.name,
            template_kind=kind,
            template=name,
            lifecycle=template.lifecycle,
        )
        context = template_context(
            self._owner,
            params={key: param.value for key, param in params.items()},
            inputs=inputs,
            labels=place.labels(self._owner),
        )
        try:
            rendered = self._ytt(template.ytt, context) if template.ytt else render_template(template, context)
            stamped = self._marked(rendered, place, inputs)
        except KardinalError as error:
            return RenderedResource(
                name=resource.name, template_kind=kind, template=name, params=params, error=str(error)
            )
        if kind == CLUSTER_DEPLOYMENT_TEMPLATE.kind and inputs.deployment is not None:
            passed = {"url": inputs.deployment.url, "revision": inputs.deployment.revision}
            self._outputs[resource.name] = {**passed, **self._outputs.get(resource.name, {})}
        return RenderedResource(name=resource.name, template_kind=kind, template=name, params=params, object=stamped)

    def _marked(self, rendered: JsonObject, place: ResourcePlace, inputs: InputValues) -> JsonObject:
        if is_bundle(rendered):
            return stamp_bundle(rendered, owner=self._owner, place=place, inputs=inputs.to_json(), last=None)
        return stamp_object(rendered, owner=self._owner, place=place, inputs=inputs.to_json())
