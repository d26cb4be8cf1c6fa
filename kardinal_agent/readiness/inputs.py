"""Look whether the inputs of a Pipeline are there: that each repository answers and has the branch, tag or commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kardinal.api import PromotionStep
from kardinal.git import Repository
from kardinal.git.edit_sources import Address, find_commit
from kardinal.steps.config import Unresolved
from kardinal.steps.declaration import PlannedStep, Role
from kardinal.steps.git_input import InputSource, input_of
from kardinal_agent.readiness.check import Promotions
from kardinal_agent.remotes import Remotes

__all__ = ["check_inputs"]

_LOOKED_AT: Final = 16
"""Inputs of a Pipeline that are looked at; those of its other environments are mostly the same."""


async def check_inputs(remotes: Remotes, promotions: Promotions) -> None:
    """Raise the first thing that would keep an input from being read; ones with expressions are not known yet."""
    found: dict[InputSource, tuple[PromotionStep, PlannedStep]] = {}
    for step, sequence in promotions:
        for planned in sequence:
            if planned.declaration.role is Role.INPUT and not isinstance(planned.config, Unresolved):
                found.setdefault(input_of(step.spec.git, planned.config), (step, planned))
    for step, planned in list(found.values())[:_LOOKED_AT]:
        await _check(remotes, step, planned)


async def _check(remotes: Remotes, step: PromotionStep, planned: PlannedStep) -> None:
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
