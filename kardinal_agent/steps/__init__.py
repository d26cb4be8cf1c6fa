"""The effects of the steps, registered under the names of their declarations."""

from collections.abc import Mapping
from typing import Final

from kardinal.steps import builtin
from kardinal.steps.declaration import Role
from kardinal_agent.steps.base import Announcement, Done, Step, StepContext, StepResult, Subscribe, Waiting
from kardinal_agent.steps.edit_files import EditFiles
from kardinal_agent.steps.git_clone import GitClone
from kardinal_agent.steps.git_commit import GitCommit
from kardinal_agent.steps.git_push import GitPush
from kardinal_agent.steps.health_check import HealthCheck
from kardinal_agent.steps.open_pr import PULL_REQUEST_OPENED, OpenPullRequest
from kardinal_agent.steps.wait_for_merge import WaitForMerge

__all__ = [
    "PULL_REQUEST_OPENED",
    "STEPS",
    "Announcement",
    "Done",
    "Step",
    "StepContext",
    "StepResult",
    "Subscribe",
    "Waiting",
]

STEPS: Final[Mapping[str, Step]] = {
    **{declaration.name: EditFiles() for declaration in builtin.declared(Role.EDIT)},
    builtin.GIT_CLONE.name: GitClone(),
    builtin.GIT_COMMIT.name: GitCommit(),
    builtin.GIT_PUSH.name: GitPush(),
    builtin.OPEN_PR.name: OpenPullRequest(),
    builtin.WAIT_FOR_MERGE.name: WaitForMerge(),
    builtin.HEALTH_CHECK.name: HealthCheck(),
}
"""Every step of `kardinal.steps.builtin`; those that only change files share their effect."""
