"""Decide whether a blueprint can be realized: all of its templates are there, and nothing in it is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kardinal_supplychain.api.blueprints import (
    ClusterDelivery,
    ClusterSupplyChain,
    TemplateOption,
    TemplateReference,
)
from kardinal_supplychain.blueprints.validate import blueprint_problems
from kardinal_supplychain.problems import SupplyChainProblem
from kardinal_supplychain.realize.conditions import Finding, ready, templates_not_found
from kardinal_supplychain.realize.inputs import AnyResource
from kardinal_supplychain.realize.templates import TemplateFinder, tagged_path_problems

__all__ = ["blueprint_findings", "template_names"]


def blueprint_findings(blueprint: ClusterSupplyChain | ClusterDelivery, find: TemplateFinder) -> tuple[Finding, ...]:
    """Return the conditions TemplatesReady and Ready of a blueprint.

    Ready names the first problem of the blueprint with its field, or of the paths of the outputs of a template.
    """
    resources: Sequence[AnyResource] = blueprint.spec.resources
    missing = [
        resource.name
        for resource in resources
        if any(find(resource.template_ref.kind, name) is None for name in _names(resource.template_ref))
    ]
    templates = templates_not_found(missing) if missing else Finding("TemplatesReady", "True", "Ready")
    problem = next(_problems(blueprint, find), None)
    if problem is None:
        return templates, ready([templates])
    return templates, Finding("Ready", "False", "InvalidBlueprint", str(problem))


def _problems(blueprint: ClusterSupplyChain | ClusterDelivery, find: TemplateFinder) -> Iterator[SupplyChainProblem]:
    yield from blueprint_problems(blueprint)
    resources: Sequence[AnyResource] = blueprint.spec.resources
    for index, resource in enumerate(resources):
        kind = resource.template_ref.kind
        for name in _names(resource.template_ref):
            template = find(kind, name)
            for problem in tagged_path_problems(template) if template is not None else ():
                place = f"spec.resources[{index}].templateRef"
                yield SupplyChainProblem(place, f"{kind} {name}: {problem.field}: {problem.message}", problem.remedy)


def template_names(blueprint: ClusterSupplyChain | ClusterDelivery) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each template that a blueprint names."""
    resources: Sequence[AnyResource] = blueprint.spec.resources
    for resource in resources:
        yield from ((resource.template_ref.kind, name) for name in _names(resource.template_ref))


def _names(reference: TemplateReference) -> Iterator[str]:
    named: Iterable[TemplateReference | TemplateOption] = (reference, *(reference.options or ()))
    yield from (each.name for each in named if each.name is not None)
