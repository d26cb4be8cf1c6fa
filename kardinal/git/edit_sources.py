"""Open what the edits of a promotion read besides the environment's own files, once in a run.

Commits of configurations and of inputs are read here, because an edit does no I/O. What the environment has of a
configuration is read from the trailers on its branch every time, or from the record of a branch that is rendered, so
nothing of it has to be remembered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kardinal.api import Bundle, PromotionStep
from kardinal.git.configurations import read_record, read_replays
from kardinal.git.history import FIND_DEPTH
from kardinal.git.names import branch_ref, tag_ref
from kardinal.git.repository import Repository
from kardinal.objects.errors import KardinalError
from kardinal.steps.config_history import FileChange, landed_commits, moves
from kardinal.steps.config_replay import Replay, check_brought, replays_of
from kardinal.steps.config_source import ConfigMergeConfig, ConfigSource, config_of, sources_of
from kardinal.steps.declaration import PlannedStep, Source, Surroundings
from kardinal.steps.edit import Tree
from kardinal.steps.git_input import InputSource, input_of
from kardinal.steps.rendering import Renderer

__all__ = ["Address", "EditSources", "find_commit"]


@dataclass(frozen=True, slots=True)
class Address:
    """A repository that is only read: its URL, a Secret for it, and the field that names this Secret.

    `refs` are the references that are read, and `depth` how many commits of their history; None stands for all.
    """

    url: str
    secret: str | None
    field: str
    refs: tuple[str, ...] = ()
    depth: int | None = None


Opener = Callable[[Address], Awaitable[Repository]]


class EditSources:
    """The sources of one promotion; `opener` returns their repositories."""

    def __init__(self, step: PromotionStep, bundle: Bundle, opener: Opener) -> None:
        self._step = step
        self._bundle = bundle
        self._opener = opener
        self._source: Source | None = None
        self._differences: dict[ConfigSource | Replay, Sequence[Sequence[FileChange]]] = {}
        self._read_for: tuple[ConfigMergeConfig | None] | None = None
        self._inputs: dict[str, Callable[[Tree], Tree]] = {}

    async def open(
        self,
        steps: Sequence[PlannedStep],
        repository: Callable[[], Awaitable[Repository]],
        *,
        source: str | None,
        inputs: Mapping[str, str],
    ) -> None:
        """Read what the edits of `steps` need and was not read yet.

        `source` is the commit that is rendered, `inputs` are those of the inputs by name.
        """
        spec = self._step.spec
        if source is not None and self._source is None:
            self._source = Source(source, await (await repository()).source(spec.git.branch, source))
        if spec.branch is not None:
            await self._read_recorded(spec.branch, steps, repository)
        else:
            for wanted in sources_of(self._step, self._bundle, steps):
                if wanted not in self._differences:
                    self._differences[wanted] = await self._read(wanted, await repository())
        for planned in steps:
            name = planned.spec.output_name
            if name in inputs and name not in self._inputs:
                self._inputs[name] = await self._open_input(planned, inputs[name])

    def surroundings(self, *, renderer: Renderer) -> Surroundings:
        """Return what was opened so far, for an edit."""
        return Surroundings(inputs=self._inputs, renderer=renderer, differences=self._differences, source=self._source)

    async def _read(self, source: ConfigSource, own: Repository) -> Sequence[Sequence[FileChange]]:
        spec = self._step.spec
        commits = await own.log(spec.git.branch, FIND_DEPTH)
        landed = landed_commits((commit.trailers for commit in commits), repository=source.repository, path=spec.path)
        repository = await self._opener(_configuration(source))
        wanted = moves(source.commit, landed, source.strategy)
        return await repository.differences(source.branch, wanted, source.directory)

    async def _read_recorded(
        self, branch: str, steps: Sequence[PlannedStep], own: Callable[[], Awaitable[Repository]]
    ) -> None:
        """Read what brings the source to the configuration that an environment's own branch has after the promotion.

        It is read once more when the expressions in the config of the step that merges have their values.
        """
        config = config_of(steps)
        if self._read_for == (config,):
            return
        state = await read_record(await own(), branch)
        check_brought(steps, state)
        replays = replays_of(self._step, self._bundle, config, state.config)
        if replays:
            repository = await self._opener(_configuration(replays[0].source))
            for replay, changes in (await read_replays(repository, replays)).items():
                self._differences[replay] = changes
        self._read_for = (config,)

    async def _open_input(self, planned: PlannedStep, commit: str) -> Callable[[Tree], Tree]:
        name = planned.spec.output_name
        with _about(name):
            source = input_of(self._step.spec.git, planned.config)
            repository = await self._opener(_address(source))
            return await repository.input(commit, name=name, branch=source.branch, tag=source.tag)


async def find_commit(step: PromotionStep, planned: PlannedStep, opener: Opener) -> tuple[InputSource, str]:
    """Return what an input names, and the commit that this is now."""
    with _about(planned.spec.output_name):
        source = input_of(step.spec.git, planned.config)
        repository = await opener(_address(source))
        if source.tag is not None:
            return source, await repository.tagged(source.tag)
        branch = source.branch or ""
        if source.commit is not None:
            await repository.require_commit(branch, source.commit)
            return source, source.commit
        return source, (await repository.head(branch)).commit


def _configuration(source: ConfigSource) -> Address:
    return Address(source.repository, source.secret, "update.config.secretRef", refs=(branch_ref(source.branch),))


def _address(source: InputSource) -> Address:
    ref = tag_ref(source.tag) if source.tag else branch_ref(source.branch or "")
    depth = None if source.commit else 1
    return Address(source.repository, source.secret, "config.secretRef", refs=(ref,), depth=depth)


@contextmanager
def _about(name: str) -> Iterator[None]:
    """Make errors about a repository those of an input: the fields they name are of another one."""
    try:
        yield
    except KardinalError as error:
        error.field = f"input {name}"
        raise
