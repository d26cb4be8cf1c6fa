"""Open the sources that the edits of a promotion read besides the environment's own files, once in a run.

Commits of configurations are read here, because an edit does no I/O. What the environment has of them is read from the
trailers on its branch every time, so nothing of it has to be remembered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from kardinal.api import Bundle, PromotionStep
from kardinal.git import FIND_DEPTH
from kardinal.steps.config_history import FileChange, landed_commits, moves
from kardinal.steps.config_merge import ConfigSource, sources_of
from kardinal.steps.declaration import PlannedStep, Source, Surroundings
from kardinal.steps.rendering import Renderer
from kardinal_agent.remotes import Remote, Remotes

__all__ = ["Sources"]


class Sources:
    """The sources of one promotion during one run; `release` gives back what they took of the shares of hosts."""

    def __init__(self, step: PromotionStep, bundle: Bundle, remotes: Remotes) -> None:
        self._step = step
        self._bundle = bundle
        self._remotes = remotes
        self._releases: list[Callable[[], None]] = []
        self._source: Source | None = None
        self._differences: dict[ConfigSource, Sequence[Sequence[FileChange]]] = {}

    async def open(
        self, steps: Sequence[PlannedStep], remote: Callable[[], Awaitable[Remote]], *, source: str | None
    ) -> None:
        """Read what the edits of `steps` need and was not read yet; `source` is the commit that is rendered."""
        if source is not None and self._source is None:
            beside = await (await remote()).repository.source(self._step.spec.git.branch, source)
            self._source = Source(source, beside)
        for wanted in sources_of(self._step, self._bundle, steps):
            if wanted not in self._differences:
                self._differences[wanted] = await self._read(wanted, await remote())

    def surroundings(self, *, renderer: Renderer) -> Surroundings:
        return Surroundings(renderer=renderer, differences=self._differences, source=self._source)

    def release(self) -> None:
        for release in self._releases:
            release()

    async def _read(self, source: ConfigSource, remote: Remote) -> Sequence[Sequence[FileChange]]:
        spec = self._step.spec
        commits = await remote.repository.log(spec.git.branch, FIND_DEPTH)
        landed = landed_commits((commit.trailers for commit in commits), repository=source.repository, path=spec.path)
        repository, release = await self._remotes.open_source(self._step, source.repository, source.secret)
        self._releases.append(release)
        wanted = moves(source.commit, landed, source.strategy)
        return await repository.differences(source.branch, wanted, source.directory)
