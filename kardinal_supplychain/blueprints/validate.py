"""Find what is wrong with a blueprint, beyond what its schema says.

`blueprint_problems` are of a blueprint that cannot be realized: it is not Ready, with the first of them as the reason.
`blueprint_warnings` are of one that works, but hardly as its author meant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from kardinal.models.base import Model
from kardinal.objects.suggestions import nearest
from kardinal_supplychain.api.blueprints import (
    ClusterDelivery,
    ClusterSupplyChain,
    DeliveryResource,
    SupplyChainResource,
)
from kardinal_supplychain.api.fields import BlueprintParam, FieldRequirement, LabelRequirement
from kardinal_supplychain.api.kinds import (
    CLUSTER_CONFIG_TEMPLATE,
    CLUSTER_DEPLOYMENT_TEMPLATE,
    CLUSTER_IMAGE_TEMPLATE,
    CLUSTER_SOURCE_TEMPLATE,
    CLUSTER_TEMPLATE,
    DELIVERABLE,
    WORKLOAD,
)
from kardinal_supplychain.api.owners import DeliverableSpec, OwnerSpec, WorkloadSpec
from kardinal_supplychain.blueprints.compile import BlueprintCycle, InputType, inputs_of, stamping_order
from kardinal_supplychain.blueprints.options import option_name
from kardinal_supplychain.blueprints.select import OwnerSelector
from kardinal_supplychain.jsonpath import PathError, parse_path
from kardinal_supplychain.problems import SupplyChainProblem

__all__ = ["blueprint_problems", "blueprint_warnings"]

Blueprint = ClusterSupplyChain | ClusterDelivery
AnyResource = SupplyChainResource | DeliveryResource

_SOURCES = (CLUSTER_SOURCE_TEMPLATE.kind, CLUSTER_DEPLOYMENT_TEMPLATE.kind)
_PRODUCERS: Final[Mapping[InputType, tuple[str, ...]]] = {
    "sources": _SOURCES,
    "images": (CLUSTER_IMAGE_TEMPLATE.kind,),
    "configs": (CLUSTER_CONFIG_TEMPLATE.kind,),
    "deployment": _SOURCES,
}
"""The kinds of templates whose output an input of each type takes."""

_PASSED: Final[Mapping[str, InputType]] = {
    CLUSTER_SOURCE_TEMPLATE.kind: "sources",
    CLUSTER_IMAGE_TEMPLATE.kind: "images",
    CLUSTER_CONFIG_TEMPLATE.kind: "configs",
    CLUSTER_DEPLOYMENT_TEMPLATE.kind: "deployment",
}
"""The type of input that an option of each kind of template can pass through."""


def blueprint_problems(blueprint: Blueprint) -> Iterator[SupplyChainProblem]:
    """Yield why a blueprint cannot be realized."""
    spec = blueprint.spec
    owner_kind, owner_spec = _owner_of(blueprint)
    if OwnerSelector.of_blueprint(spec).size == 0:
        yield SupplyChainProblem(
            "spec.selector",
            "it selects nothing",
            "write at least one of selector, selectorMatchExpressions and selectorMatchFields",
        )
    yield from _labels(spec.selector_match_expressions, "spec.selectorMatchExpressions")
    yield from _fields(spec.selector_match_fields, "spec.selectorMatchFields", owner_kind, owner_spec)
    yield from _params(spec.params, "spec.params")
    resources: Sequence[AnyResource] = spec.resources
    yield from _twice([resource.name for resource in resources], "spec.resources", "resource")
    kinds = {resource.name: resource.template_ref.kind for resource in resources}
    for index, resource in enumerate(resources):
        path = f"spec.resources[{index}]"
        yield from _params(resource.params, f"{path}.params")
        yield from _inputs(resource, path, kinds)
        yield from _options(resource, path, owner_kind, owner_spec)
    try:
        stamping_order(resources)
    except BlueprintCycle as cycle:
        at = next(index for index, resource in enumerate(resources) if resource.name in cycle.names)
        yield SupplyChainProblem(
            f"spec.resources[{at}]", cycle.message, "take an output of another resource in one of them"
        )


def blueprint_warnings(blueprint: Blueprint) -> Iterator[SupplyChainProblem]:
    """Yield what is accepted, and does not do what it looks like."""
    resources: Sequence[AnyResource] = blueprint.spec.resources
    for index, resource in enumerate(resources):
        path = f"spec.resources[{index}]"
        reference = resource.template_ref
        for number, option in enumerate(reference.options or ()):
            if OwnerSelector.of_option(option.selector).size == 0:
                yield SupplyChainProblem(
                    f"{path}.templateRef.options[{number}].selector",
                    f"option {option_name(option)} is never chosen, because its selector is empty",
                    "write a requirement that the owners for it meet",
                )
        kind = resource.template_ref.kind
        if isinstance(resource, DeliveryResource) and resource.deployment and kind == CLUSTER_TEMPLATE.kind:
            yield SupplyChainProblem(
                f"{path}.deployment",
                "a ClusterTemplate does not wait for a deployment to be validated",
                "use a ClusterDeploymentTemplate",
            )


def _owner_of(blueprint: Blueprint) -> tuple[str, type[OwnerSpec]]:
    if isinstance(blueprint, ClusterSupplyChain):
        return WORKLOAD.kind, WorkloadSpec
    return DELIVERABLE.kind, DeliverableSpec


def _labels(requirements: Iterable[LabelRequirement], path: str) -> Iterator[SupplyChainProblem]:
    for index, requirement in enumerate(requirements):
        yield from _values(requirement, f"{path}[{index}]")


def _fields(
    requirements: Iterable[FieldRequirement], path: str, owner: str, spec: type[OwnerSpec]
) -> Iterator[SupplyChainProblem]:
    for index, requirement in enumerate(requirements):
        place = f"{path}[{index}]"
        yield from _values(requirement, place)
        try:
            fields = parse_path(requirement.key).fields
        except PathError as error:
            yield SupplyChainProblem(f"{place}.key", str(error))
            continue
        yield from _of_owner(fields, f"{place}.key", owner, spec)


def _values(requirement: LabelRequirement | FieldRequirement, path: str) -> Iterator[SupplyChainProblem]:
    needs_values = requirement.operator in ("In", "NotIn")
    if needs_values and not requirement.values:
        yield SupplyChainProblem(f"{path}.values", f"{requirement.operator} needs values")
    if not needs_values and requirement.values:
        yield SupplyChainProblem(f"{path}.values", f"{requirement.operator} takes no values", "leave them out")


def _of_owner(fields: Sequence[str], path: str, owner: str, spec: type[OwnerSpec]) -> Iterator[SupplyChainProblem]:
    """Yield a problem if a path begins with fields that an owner of this kind does not have."""
    prefix = owner.lower()
    own = fields[1:] if fields[:1] == (prefix,) else fields
    if not own:
        return
    if own[0] == "spec":
        yield from _of_model(own[1:], path, owner, spec, "spec")
    elif own[0] not in ("metadata", "apiVersion", "kind"):
        known = ("spec", "metadata", prefix)
        near = nearest(own[0], known)
        remedy = f"did you mean {near}?" if near else f"begin with {prefix}.spec or {prefix}.metadata"
        yield SupplyChainProblem(path, f"{own[0]} is not read of a {owner}", remedy)


def _of_model(
    fields: Sequence[str], path: str, owner: str, model: type[Model], before: str
) -> Iterator[SupplyChainProblem]:
    if not fields:
        return
    known = {definition.alias or name: definition for name, definition in model.model_fields.items()}
    definition = known.get(fields[0])
    if definition is None:
        near = nearest(fields[0], known)
        remedy = f"did you mean {near}?" if near else f"known are {', '.join(known)}"
        yield SupplyChainProblem(path, f"a {owner} has no {before}.{fields[0]}", remedy)
        return
    inner = _model_in(definition.annotation)
    if inner is not None:
        yield from _of_model(fields[1:], path, owner, inner, f"{before}.{fields[0]}")


def _model_in(annotation: object) -> type[Model] | None:
    """Return the model of a field that holds one; None of a list, a map or a scalar."""
    candidates = (annotation, *getattr(annotation, "__args__", ()))
    return next((each for each in candidates if isinstance(each, type) and issubclass(each, Model)), None)


def _params(params: Iterable[BlueprintParam], path: str) -> Iterator[SupplyChainProblem]:
    params = tuple(params)
    for index, param in enumerate(params):
        if len({"value", "default"} & param.model_fields_set) != 1:
            yield SupplyChainProblem(f"{path}[{index}]", f"param {param.name} needs exactly one of value and default")
    yield from _twice([param.name for param in params], path, "param")


def _twice(names: Sequence[str], path: str, what: str) -> Iterator[SupplyChainProblem]:
    count = Counter(names)
    for index, name in enumerate(names):
        if count[name] > 1 and name in names[:index]:
            yield SupplyChainProblem(
                f"{path}[{index}].name", f"there is another {what} {name}", "give it a name of its own"
            )


def _inputs(resource: AnyResource, path: str, kinds: Mapping[str, str]) -> Iterator[SupplyChainProblem]:
    edges = tuple(inputs_of(resource))
    for type_ in _PRODUCERS:
        yield from _twice([edge.name for edge in edges if edge.type == type_], f"{path}.{type_}", "input")
    for edge in edges:
        place = f"{path}.{edge.path}.resource"
        if edge.producer == resource.name:
            yield SupplyChainProblem(place, f"resource {resource.name} takes its own output")
        elif edge.producer not in kinds:
            near = nearest(edge.producer, kinds)
            remedy = f"did you mean {near}?" if near else f"resources are {', '.join(kinds)}"
            yield SupplyChainProblem(place, f"there is no resource {edge.producer}", remedy)
        elif kinds[edge.producer] not in _PRODUCERS[edge.type]:
            yield SupplyChainProblem(
                place,
                f"resource {edge.producer} is of a {kinds[edge.producer]}",
                f"{edge.type} takes the output of a {' or '.join(_PRODUCERS[edge.type])}",
            )
    if resource.template_ref.kind == CLUSTER_DEPLOYMENT_TEMPLATE.kind and not any(
        edge.type == "deployment" for edge in edges
    ):
        yield SupplyChainProblem(
            f"{path}.deployment",
            "a ClusterDeploymentTemplate passes on its input deployment, and there is none",
            "name the resource that it deploys",
        )


def _options(resource: AnyResource, path: str, owner: str, spec: type[OwnerSpec]) -> Iterator[SupplyChainProblem]:
    type_ = _PASSED.get(resource.template_ref.kind)
    names = [edge.name for edge in inputs_of(resource) if edge.type == type_]
    for index, option in enumerate(resource.template_ref.options or ()):
        place = f"{path}.templateRef.options[{index}]"
        if option.pass_through is not None and option.pass_through not in names:
            yield SupplyChainProblem(
                f"{place}.passThrough",
                f"there is no input {option.pass_through} whose value could be the output",
                f"name one of {type_}: {', '.join(names)}" if names else f"a {resource.template_ref.kind} has none",
            )
        yield from _labels(option.selector.match_expressions, f"{place}.selector.matchExpressions")
        yield from _fields(option.selector.match_fields, f"{place}.selector.matchFields", owner, spec)
