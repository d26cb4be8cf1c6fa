"""The built-in steps: add a new step to the table in this module.

A step with code of its own has its own module, such as `kustomize_set_image`; the other steps are declared here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kardinal.promotion.steps.config_merge import CONFIG_MERGE
from kardinal.promotion.steps.copy_files import COPY, DELETE
from kardinal.promotion.steps.declaration import Role, StepDeclaration
from kardinal.promotion.steps.git_input import GIT_INPUT
from kardinal.promotion.steps.helm_set_chart import HELM_SET_CHART
from kardinal.promotion.steps.helm_set_image import HELM_SET_IMAGE
from kardinal.promotion.steps.helm_template import HELM_TEMPLATE
from kardinal.promotion.steps.kustomize_build import KUSTOMIZE_BUILD
from kardinal.promotion.steps.kustomize_set_image import KUSTOMIZE_SET_IMAGE
from kardinal.promotion.steps.replace import REPLACE
from kardinal.promotion.steps.yaml_update import YAML_UPDATE

__all__ = [
    "BUILTIN_STEPS",
    "GIT_CLONE",
    "GIT_COMMIT",
    "GIT_PUSH",
    "HEALTH_CHECK",
    "MERGE_PR",
    "OPEN_PR",
    "WAIT_FOR_MERGE",
]

GIT_CLONE = StepDeclaration(
    name="git-clone",
    about="Opens the branch of the Pipeline's repository, for the edits that follow.",
    role=Role.OPEN,
    outputs={"commit": "base_commit", "source": "source_commit"},
    with_config=GIT_INPUT,
)

GIT_COMMIT = StepDeclaration(
    name="git-commit", about="Makes one commit of everything that the edits before it change.", role=Role.COMMIT
)

GIT_PUSH = StepDeclaration(
    name="git-push",
    about="Pushes the commit: to the target branch, or to a branch of its own where a pull request follows.",
    role=Role.PUSH,
    outside=True,
    permission=True,
    outputs={"changed": "changed", "merged": "merged_commit"},
)

OPEN_PR = StepDeclaration(
    name="open-pr",
    about="Opens a pull request with what is known of the Bundle and its gates.",
    role=Role.PROPOSE,
    outside=True,
    permission=True,
)

WAIT_FOR_MERGE = StepDeclaration(
    name="wait-for-merge",
    about="Waits until a person has merged the pull request.",
    role=Role.AWAIT,
    state="WaitingForMerge",
    outside=True,
    outputs={"mergedBy": "merged_by", "approvedBy": "approved_by"},
)

MERGE_PR = StepDeclaration(
    name="merge-pr",
    about="Merges the pull request as soon as nothing holds the promotion; not where a person has to approve.",
    role=Role.MERGE,
    state="WaitingForMerge",
    outside=True,
    outputs={"mergedBy": "merged_by"},
)
"""The step checks the pull request without permission, and asks for permission just before it merges."""

HEALTH_CHECK = StepDeclaration(
    name="health-check",
    about="Waits until the environment is healthy and runs what was promoted.",
    role=Role.PROVE,
    state="HealthChecking",
)

BUILTIN_STEPS: Final[Mapping[str, StepDeclaration]] = {
    step.name: step
    for step in (
        GIT_CLONE,
        KUSTOMIZE_SET_IMAGE,
        HELM_SET_IMAGE,
        HELM_SET_CHART,
        REPLACE,
        YAML_UPDATE,
        COPY,
        DELETE,
        KUSTOMIZE_BUILD,
        HELM_TEMPLATE,
        CONFIG_MERGE,
        GIT_COMMIT,
        GIT_PUSH,
        OPEN_PR,
        WAIT_FOR_MERGE,
        MERGE_PR,
        HEALTH_CHECK,
    )
}
"""Every step that this version executes, by name."""
