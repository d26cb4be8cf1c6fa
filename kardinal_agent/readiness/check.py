"""Look whether a repository has what a Pipeline needs: that it answers, may be written to, and has every path."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kardinal.api import PromotionStep
from kardinal.git import BranchNotFound, Repository
from kardinal.objects.errors import KardinalError
from kardinal.steps.declaration import PlannedStep
from kardinal.steps.edit import EditError, Tree

__all__ = ["PathsMissing", "check_repository"]

_SHOWN = 3
"""Environments whose problem is told; of others the number is."""


class PathsMissing(KardinalError):
    """The repository lacks what steps of the Pipeline need."""


Promotions = Sequence[tuple[PromotionStep, Sequence[PlannedStep]]]


async def check_repository(repository: Repository, promotions: Promotions) -> None:
    """Raise the first thing that would keep a promotion from landing; all `promotions` are of this repository."""
    branches = dict.fromkeys(step.spec.git.branch for step, _ in promotions)
    for branch in branches:
        commit = (await repository.head(branch)).commit
        here = [(step, sequence) for step, sequence in promotions if step.spec.git.branch == branch]
        problems = await repository.examine(commit, partial(_problems, promotions=here))
        if problems:
            more = f"; and {len(problems) - _SHOWN} more environments" if len(problems) > _SHOWN else ""
            raise PathsMissing("; ".join(problems[:_SHOWN]) + f"{more}, on branch {branch}")
        await _check_push(repository, [step for step, _ in here])


async def _check_push(repository: Repository, steps: Sequence[PromotionStep]) -> None:
    for target in dict.fromkeys(step.spec.target_branch for step in steps):
        try:
            await repository.check_push(target)
        except BranchNotFound:
            # An environment's own branch is made by its first promotion.
            if all(step.spec.branch != target for step in steps):
                raise


def _problems(tree: Tree, promotions: Promotions) -> list[str]:
    """Return the first problem of each environment."""
    found = []
    for step, sequence in promotions:
        try:
            _check(tree, step, sequence)
        except EditError as error:
            found.append(f"environment {step.spec.environment}: {error}")
    return found


def _check(tree: Tree, step: PromotionStep, sequence: Sequence[PlannedStep]) -> None:
    tree.within(step.spec.path)
    for planned in sequence:
        edit = planned.declaration.edit
        if edit is not None and edit.check is not None:
            edit.check(tree, step, planned.config)
