"""The effects of the steps, registered under the names of their declarations."""

from collections.abc import Mapping
from typing import Final

from kardinal.promotion.steps import builtin
from kardinal.promotion.steps.declaration import Role, StepDeclaration
from kardinal.promotion.steps.sequence import StepTable
from kardinal_agent.errors import ConfigurationError
from kardinal_agent.steps.base import Announcement, Done, Step, StepContext, StepResult, Subscribe, Waiting
from kardinal_agent.steps.edit_files import EditFiles
from kardinal_agent.steps.git_clone import GitClone
from kardinal_agent.steps.git_push import GitCommit, GitPush
from kardinal_agent.steps.health_check import HealthCheck
from kardinal_agent.steps.open_pr import PULL_REQUEST_OPENED, OpenPullRequest
from kardinal_agent.steps.wait_for_merge import MERGED_OUT_OF_BAND, WaitForMerge

__all__ = [
    "MERGED_OUT_OF_BAND",
    "PULL_REQUEST_OPENED",
    "Announcement",
    "Done",
    "Step",
    "StepContext",
    "StepResult",
    "Subscribe",
    "Waiting",
    "effects",
]

_EFFECTS: Final[Mapping[str, Step]] = {
    builtin.GIT_CLONE.name: GitClone(),
    builtin.GIT_COMMIT.name: GitCommit(),
    builtin.GIT_PUSH.name: GitPush(),
    builtin.OPEN_PR.name: OpenPullRequest(),
    builtin.WAIT_FOR_MERGE.name: WaitForMerge(),
    builtin.MERGE_PR.name: WaitForMerge(),
    builtin.HEALTH_CHECK.name: HealthCheck(),
}


def effects(table: StepTable) -> dict[str, Step]:
    """Return the effect of every step; those that only change files share one. Raises `ConfigurationError`."""
    return {name: _effect(declaration) for name, declaration in table.items()}


def _effect(declaration: StepDeclaration) -> Step:
    if declaration.role is Role.EDIT:
        return EditFiles()
    if declaration.name in _EFFECTS:
        return _EFFECTS[declaration.name]
    if declaration.effect is None:
        raise ConfigurationError(f"step {declaration.name} neither edits files nor declares an effect")
    made: Step = declaration.effect()
    return made
