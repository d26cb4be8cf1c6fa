"""The built-in steps, registered by name (DD 3.15)."""

from collections.abc import Mapping
from typing import Final

from kardinal_agent.steps.base import Announcement, Done, Outcome, Step, StepContext, Waiting
from kardinal_agent.steps.git_clone import GitClone
from kardinal_agent.steps.git_commit import GitCommit
from kardinal_agent.steps.git_push import GitPush
from kardinal_agent.steps.health_check import HealthCheck
from kardinal_agent.steps.kustomize_set_image import KustomizeSetImage
from kardinal_agent.steps.open_pr import OpenPullRequest
from kardinal_agent.steps.wait_for_merge import WaitForMerge

__all__ = ["STEPS", "Announcement", "Done", "Outcome", "Step", "StepContext", "Waiting"]

STEPS: Final[Mapping[str, Step]] = {
    "git-clone": GitClone(),
    "kustomize-set-image": KustomizeSetImage(),
    "git-commit": GitCommit(),
    "git-push": GitPush(),
    "open-pr": OpenPullRequest(),
    "wait-for-merge": WaitForMerge(),
    "health-check": HealthCheck(),
}
"""Every step this version executes; `kardinal.steps.sequence` knows their inputs."""
