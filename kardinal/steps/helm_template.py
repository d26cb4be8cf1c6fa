"""`helm-template`: render a chart of the repository, and write the manifests into the environment's directory.

Charts that it depends on have to be in its `charts/`: nothing is fetched.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from kardinal.api import PromotionStep
from kardinal.api.base import RelativePath
from kardinal.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.steps.edit import Changes, EditError, Tree
from kardinal.steps.rendered import as_files, image_changes
from kardinal.steps.step_paths import below, inside, named

__all__ = ["HELM_TEMPLATE", "HelmTemplateConfig"]

_Name = Annotated[str, Field(min_length=1, max_length=253)]


class HelmTemplateConfig(StepConfig):
    """`chart`: its directory, from the root of the repository. `values`: files below the environment's directory.

    `release` and `namespace` are the Pipeline's and the environment's names unless given; `set` sets single values, as
    text. `out` is the file, or the directory with a file for each object, that is written.
    """

    chart: Annotated[RelativePath, AfterValidator(inside)]
    release: _Name | None = None
    namespace: _Name | None = None
    values: Annotated[tuple[Annotated[RelativePath, AfterValidator(inside)], ...], Field(max_length=32)] = ()
    set: Annotated[dict[str, str], Field(max_length=64)] = Field(default_factory=dict)
    out: Annotated[RelativePath, AfterValidator(named)] = "manifests.yaml"


def _plan(context: EditContext, config: HelmTemplateConfig) -> Changes:
    spec = context.step.spec
    output = context.renderer.helm(
        context.tree,
        config.chart,
        release=config.release or spec.pipeline,
        namespace=config.namespace or spec.environment,
        values=[below(spec.path, name) for name in config.values],
        set_values=config.set,
    )
    return as_files(output, below(spec.path, config.out), context.tree)


def _check(tree: Tree, step: PromotionStep, config: HelmTemplateConfig) -> None:
    missing = [name for name in (below(step.spec.path, value) for value in config.values) if tree.size(name) is None]
    if tree.size(f"{config.chart}/Chart.yaml") is None:
        raise EditError(config.chart, "holds no chart: there is no Chart.yaml")
    if missing:
        raise EditError(missing[0], "no such file in the repository")


HELM_TEMPLATE = StepDeclaration(
    name="helm-template",
    role=Role.EDIT,
    config=HelmTemplateConfig,
    edit=FileEdit(plan=_plan, image_changes=image_changes, check=_check),
)
