"""`kustomize-build`: render the kustomization of an environment into manifests in its directory.

Then the tool that deploys the environment needs no kustomize, and a reviewer sees the changes to the cluster.
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
from kardinal.promotion.steps.step_paths import below, find_kustomization, inside
from kardinal.tree.edit import Changes, Tree

__all__ = ["KUSTOMIZE_BUILD", "KustomizeBuildConfig"]


class KustomizeBuildConfig(InputConfig):
    """The kustomization, and the file or directory for its manifests."""

    path: Annotated[
        Annotated[RelativePath, AfterValidator(inside)] | None,
        Field(description="The directory of the kustomization; by default the environment's own, or the input's root."),
    ] = None
    out: Annotated[EnvironmentPath, Field(description=OUT)] = "manifests.yaml"


def _plan(context: EditContext, config: KustomizeBuildConfig) -> Changes:
    environment = context.step.spec.path
    if config.input is None:
        tree = context.tree
        path = below(environment, config.path)
    else:
        tree = input_tree(context, config.input)
        path = below("", config.path)
    output = context.renderer.kustomize(tree, path, helm=True, remote=True)
    return as_files(output, below(environment, config.out), context.tree)


def _check(tree: Tree, step: PromotionStep, config: KustomizeBuildConfig) -> None:
    if config.input is None:
        find_kustomization(tree, step.spec.path, config.path)


KUSTOMIZE_BUILD = StepDeclaration(
    name="kustomize-build",
    about="Renders a kustomization with `kustomize`, else `kubectl kustomize`, and writes the manifests.",
    role=Role.EDIT,
    renders=True,
    takes=frozenset(),
    config=KustomizeBuildConfig,
    edit=FileEdit(plan=_plan, image_changes=image_changes, check=_check),
)
