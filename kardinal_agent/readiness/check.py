"""Check whether a Pipeline can promote to its repository: it answers, may be written to, has every path and input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from kardinal.git import BranchNotFound, Repository
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.sources.edit_sources import Address, find_commit
from kardinal.promotion.steps.config import Unresolved
from kardinal.promotion.steps.declaration import PlannedStep, Role
from kardinal.promotion.steps.git_input import InputSource, input_of
from kardinal.tree.edit import EditError, Tree
from kardinal_agent.remotes import Remotes

__all__ = ["PathsMissing", "check_inputs", "check_repository"]

_SHOWN = 3
"""The most environments whose problem is named; of further ones only the number is shown."""


class PathsMissing(KardinalError):
    """The repository lacks files or directories that steps of the Pipeline need."""


Promotions = Sequence[tuple[PromotionStep, Sequence[PlannedStep]]]


async def check_repository(repository: Repository, promotions: Promotions) -> None:
    """Raise the first problem that would keep a promotion from landing; all `promotions` write to this repository."""
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
            # The branch of an environment with layout `branch` is created by its first promotion.
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


_LOOKED_AT: Final = 16
"""The most inputs of a Pipeline that are checked; those of further environments are mostly the same."""


async def check_inputs(remotes: Remotes, promotions: Promotions) -> None:
    """Raise the first problem with an input; inputs with expressions are skipped, because their values are unknown."""
    found: dict[InputSource, tuple[PromotionStep, PlannedStep]] = {}
    for step, sequence in promotions:
        for planned in sequence:
            if planned.declaration.role is Role.INPUT and not isinstance(planned.config, Unresolved):
                found.setdefault(input_of(step.spec.git, planned.config), (step, planned))
    for step, planned in list(found.values())[:_LOOKED_AT]:
        await _check_input(remotes, step, planned)


async def _check_input(remotes: Remotes, step: PromotionStep, planned: PlannedStep) -> None:
    releases: list[Callable[[], None]] = []

    async def opener(address: Address) -> Repository:
        repository, host = await remotes.open_source(step, address)
        if host:
            releases.append(remotes.share_of(host, step))
        return repository

    try:
        await find_commit(step, planned, opener)
    finally:
        for release in releases:
            release()
