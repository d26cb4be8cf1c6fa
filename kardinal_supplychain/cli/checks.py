"""The checks of `kardinal lint` for the kinds of carto.run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kardinal.cli.kinds import Complaints, LintedKind
from kardinal.objects import JsonObject
from kardinal_supplychain.api.blueprints import ClusterDelivery, ClusterSupplyChain
from kardinal_supplychain.api.owners import Deliverable, Workload
from kardinal_supplychain.api.runs import ClusterRunTemplate, RunnableObject
from kardinal_supplychain.api.templates import (
    ClusterConfigTemplate,
    ClusterDeploymentTemplate,
    ClusterImageTemplate,
    ClusterSourceTemplate,
    ClusterTemplate,
)
from kardinal_supplychain.blueprints.validate import blueprint_problems, blueprint_warnings
from kardinal_supplychain.problems import SupplyChainProblem
from kardinal_supplychain.realize.bundle import is_bundle
from kardinal_supplychain.realize.templates import body_problems, template_problems, template_warnings
from kardinal_supplychain.ytt import INSTALL_YTT, find_ytt

__all__ = ["LINTED"]

_LEGACY = {
    "matchLabels": "spec.selector",
    "matchExpressions": "spec.selectorMatchExpressions",
    "matchFields": "spec.selectorMatchFields",
}
"""The field of a blueprint for each part of a selector, as options have it."""

_RUN_ROOTS = ("runnable", "selected", "labels")


def _complaints(find: Callable[[Any], Iterable[SupplyChainProblem]]) -> Callable[[Any], Complaints]:
    return lambda resource: ((problem.field, problem.said) for problem in find(resource))


def _whole_selectors(document: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the parts of a selector that is written like that of an option, which a blueprint does not have."""
    spec = document.get("spec")
    selector = spec.get("selector") if isinstance(spec, dict) else None
    parts = selector if isinstance(selector, dict) else {}
    for part, value in parts.items():
        if part in _LEGACY and not isinstance(value, str):
            yield f"spec.selector.{part}", f"a blueprint has its {part} elsewhere; write them in {_LEGACY[part]}"


def _run_template_problems(template: ClusterRunTemplate) -> Iterator[SupplyChainProblem]:
    if is_bundle(template.spec.template):
        yield SupplyChainProblem("spec.template.kind", "a Runnable makes no Bundle", "stamp it by a ClusterTemplate")
        return
    yield from body_problems(template.spec.template, roots=_RUN_ROOTS)


def _run_template_warnings(template: ClusterRunTemplate) -> Iterator[SupplyChainProblem]:
    if "spec" not in template.spec.template:
        yield SupplyChainProblem("spec.template", "its object has no spec, so that every run is the same")


def _template_warnings(template: Any) -> Iterator[SupplyChainProblem]:
    yield from template_warnings(template.spec)
    if template.spec.ytt is not None and find_ytt() is None:
        yield SupplyChainProblem("spec.ytt", "ytt is not installed here, so it cannot be rendered", INSTALL_YTT)


LINTED = (
    LintedKind(model=Workload),
    LintedKind(model=Deliverable),
    *(
        LintedKind(
            model=model,
            problems=_complaints(blueprint_problems),
            warnings=_complaints(blueprint_warnings),
            misplaced=_whole_selectors,
        )
        for model in (ClusterSupplyChain, ClusterDelivery)
    ),
    *(
        LintedKind(
            model=model,
            problems=_complaints(lambda template: template_problems(template.spec)),
            warnings=_complaints(_template_warnings),
        )
        for model in (
            ClusterSourceTemplate,
            ClusterImageTemplate,
            ClusterConfigTemplate,
            ClusterDeploymentTemplate,
            ClusterTemplate,
        )
    ),
    LintedKind(
        model=ClusterRunTemplate,
        problems=_complaints(_run_template_problems),
        warnings=_complaints(_run_template_warnings),
    ),
    LintedKind(model=RunnableObject),
)
