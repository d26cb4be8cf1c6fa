"""Open the repositories that the edits of a promotion read, for one run, with one share of each host."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from kardinal.git import Repository
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.sources.edit_sources import Address, EditSources
from kardinal.promotion.steps.declaration import PlannedStep, Role, Surroundings
from kardinal.promotion.steps.facts import facts_of
from kardinal.promotion.steps.git_input import noted_commits
from kardinal.rendering.renderer import Renderer
from kardinal_agent.remotes import Remote, Remotes

__all__ = ["Sources"]

_WITHOUT_EDITS: Final = frozenset([Role.OPEN, Role.INPUT, Role.COMMIT, Role.PROVE])
"""Roles whose steps run no edit, so that a source that does not answer does not affect them."""


class Sources:
    """The sources of one promotion during one run; `release` returns the shares of hosts and the mirrors."""

    def __init__(
        self, step: PromotionStep, bundle: Bundle, remotes: Remotes, *, remote: Callable[[], Awaitable[Remote]]
    ) -> None:
        self._step = step
        self._remotes = remotes
        self._remote = remote
        self._sources = EditSources(step, bundle, self.repository)
        self._shares: dict[str, Callable[[], None]] = {}
        self._holds: dict[Repository, Callable[[], None]] = {}

    async def open(self, steps: Sequence[PlannedStep], index: int, status: PromotionStepStatus) -> None:
        """Read those sources that the step at `index` needs and that this run has not read yet."""

        async def own() -> Repository:
            return (await self._remote()).repository

        if steps[index].declaration.role not in _WITHOUT_EDITS:
            inputs = noted_commits(steps, status.outputs or {})
            await self._sources.open(steps, own, source=facts_of(status, steps).source_commit, inputs=inputs)

    async def repository(self, address: Address) -> Repository:
        """Return a repository that edits read; take a share of its host first."""
        repository, host = await self._remotes.open_source(self._step, address)
        if host and host == self._remotes.host_of(self._step):
            await self._remote()
        elif host and host not in self._shares:
            self._shares[host] = self._remotes.share_of(host, self._step)
        if repository not in self._holds:
            self._holds[repository] = repository.hold()
        return repository

    def surroundings(self, *, renderer: Renderer) -> Surroundings:
        return self._sources.surroundings(renderer=renderer)

    def release(self) -> None:
        for release in (*self._shares.values(), *self._holds.values()):
            release()
