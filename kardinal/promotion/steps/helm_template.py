"""`helm-template`: render a chart of the repository or of an input into the environment's directory.

The charts that it depends on must be in its `charts/` directory, because nothing is fetched.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from kardinal.models.base import RelativePath
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.steps.declaration import EditContext, FileEdit, Role, StepDeclaration
from kardinal.promotion.steps.environment_files import EnvironmentPath
from kardinal.promotion.steps.inputs import InputConfig, input_tree
from kardinal.promotion.steps.rendered import OUT, as_files, image_changes
from kardinal.promotion.steps.step_paths import below, inside
from kardinal.tree.edit import Changes, EditError, Tree
from kardinal.tree.overlay import Mounted

__all__ = ["HELM_TEMPLATE", "HelmTemplateConfig"]

_Name = Annotated[str, Field(min_length=1, max_length=253)]


class HelmTemplateConfig(InputConfig):
    """The chart, its values, and the file or directory for its manifests."""

    chart: Annotated[
        Annotated[RelativePath, AfterValidator(inside)],
        Field(description="The directory of the chart, from the root of the repository or of the input."),
    ]
    release: Annotated[_Name | None, Field(description="The name of the release; by default the Pipeline's.")] = None
    namespace: Annotated[_Name | None, Field(description="Its namespace; by default the environment's name.")] = None
    values: Annotated[
        tuple[EnvironmentPath, ...], Field(max_length=32, description="Values files; a later one wins.")
    ] = ()
    set: Annotated[
        dict[str, str], Field(max_length=64, description="Single values by their path such as `image.tag`, as text.")
    ] = Field(default_factory=dict)
    out: Annotated[EnvironmentPath, Field(description=OUT)] = "manifests.yaml"


def _plan(context: EditContext, config: HelmTemplateConfig) -> Changes:
    spec = context.step.spec
    tree = context.tree
    chart = config.chart
    if config.input is not None:
        # This is not a valid file name, so values files are still read from the environment.
        place = f"{config.input}:"
        tree = Mounted(tree, at=place, mounted=input_tree(context, config.input))
        chart = f"{place}/{chart}"
    output = context.renderer.helm(
        tree,
        chart,
        release=config.release or spec.pipeline,
        namespace=config.namespace or spec.environment,
        values=[below(spec.path, name) for name in config.values],
        set_values=config.set,
    )
    return as_files(output, below(spec.path, config.out), context.tree)


def _check(tree: Tree, step: PromotionStep, config: HelmTemplateConfig) -> None:
    missing = [name for name in (below(step.spec.path, value) for value in config.values) if tree.size(name) is None]
    if config.input is None and tree.size(f"{config.chart}/Chart.yaml") is None:
        raise EditError(config.chart, "holds no chart: there is no Chart.yaml")
    if missing:
        raise EditError(missing[0], "no such file in the repository")


HELM_TEMPLATE = StepDeclaration(
    name="helm-template",
    about="Renders a chart of the repository with `helm`, and writes the manifests. Its dependencies must be in it.",
    role=Role.EDIT,
    renders=True,
    takes=frozenset(),
    config=HelmTemplateConfig,
    edit=FileEdit(plan=_plan, image_changes=image_changes, check=_check),
)
