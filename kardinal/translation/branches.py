"""Validate the branches that environments have of their own with layout `branch`.

Everything on such a branch is replaced, so it has no other use: it is not the one that is rendered from, not that of
another environment under another spelling, and none that holds proposals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kardinal.api.pipeline import Environment, Git
from kardinal.policy.binding import clean_branch
from kardinal.steps.config_merge import several_merges
from kardinal.translation.errors import Problem
from kardinal.translation.repository import branch_problems

__all__ = ["own_branch_problems"]


def own_branch_problems(git: Git, environments: Sequence[Environment], *, subject: str) -> Iterator[Problem]:
    """Yield why environments cannot be deployed from the branches that they name."""
    taken = {_folded(git.branch): "spec.git.branch"}
    for index, environment in enumerate(environments):
        field, branch = f"spec.environments[{index}].branch", environment.target_branch(git)
        if git.layout != "branch":
            if environment.branch is not None:
                message = "an environment has a branch of its own with layout: branch alone"
                yield Problem(subject, field, "NotAvailable", message, "set git.layout: branch, or leave it out")
            continue
        yield from branch_problems(branch, subject=subject, field=field)
        folded = _folded(branch)
        other = next((where for name, where in taken.items() if _collide(folded, name)), None)
        if other is not None:
            message = f"{branch} is the branch of {other}, or one of them would be a directory of the other"
            yield Problem(subject, field, "DuplicateBranch", message, "give each environment a branch of its own")
        taken.setdefault(folded, field)
        if twice := several_merges(environment.steps or ()):
            yield Problem(subject, f"spec.environments[{index}].steps", "InvalidSequence", twice, "keep one")


def _folded(branch: str) -> str:
    """Return a branch as it is compared: some file systems do not tell letters by their case."""
    return clean_branch(branch).casefold()


def _collide(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
