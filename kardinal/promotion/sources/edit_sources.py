"""Open the sources that the edits of a promotion read besides the files of the environment, once per run.

An edit does no I/O, so the commits of configurations and inputs are read here. The configuration that an environment
has already is read every time from the trailers on its branch, or from the record on a rendered branch; so no state is
kept.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kardinal.git.errors import BranchNotFound
from kardinal.git.history import FIND_DEPTH
from kardinal.git.names import branch_ref, tag_ref
from kardinal.git.repository import Repository
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.steps.branch_layout import BranchState, read_state
from kardinal.promotion.steps.config_history import landed_commits, moves
from kardinal.promotion.steps.config_replay import Replay, check_brought, replays_of
from kardinal.promotion.steps.config_source import ConfigMergeConfig, ConfigSource, config_of, sources_of
from kardinal.promotion.steps.declaration import PlannedStep, RenderSource, Surroundings
from kardinal.promotion.steps.git_input import InputSource, input_of
from kardinal.rendering.renderer import Renderer
from kardinal.tree.differences import FileChange
from kardinal.tree.edit import Tree

__all__ = ["Address", "EditSources", "find_commit"]


@dataclass(frozen=True, slots=True)
class Address:
    """A repository that is only read: its URL, the Secret for it, and the field of the resource that names the Secret.

    `refs` are the references to fetch, for example `refs/heads/main`, and `depth` is the number of commits of their
    history; None fetches the whole history.
    """

    url: str
    secret: str | None
    field: str
    refs: tuple[str, ...] = ()
    depth: int | None = None


Opener = Callable[[Address], Awaitable[Repository]]


class EditSources:
    """The sources of one promotion. `opener` opens the repository of an address."""

    def __init__(self, step: PromotionStep, bundle: Bundle, opener: Opener) -> None:
        self._step = step
        self._bundle = bundle
        self._opener = opener
        self._source: RenderSource | None = None
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
        """Read the sources that the edits of `steps` need and that were not read before.

        `source` is the commit to render from; `inputs` maps the name of each input to its commit.
        """
        spec = self._step.spec
        if source is not None and self._source is None:
            self._source = RenderSource(source, await (await repository()).source(spec.git.branch, source))
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
        """Return all sources that were opened so far, in the form that an edit takes."""
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
        """Read the configuration commits that bring the source up to date with the promotion, for a rendered branch.

        They are read once more when the expressions in the config of the merging step have been evaluated.
        """
        config = config_of(steps)
        if self._read_for == (config,):
            return
        state = await _read_record(await own(), branch)
        check_brought(steps, state)
        replays = replays_of(self._step, self._bundle, config, state.config)
        if replays:
            repository = await self._opener(_configuration(replays[0].source))
            for replay, changes in (await _read_replays(repository, replays)).items():
                self._differences[replay] = changes
        self._read_for = (config,)

    async def _open_input(self, planned: PlannedStep, commit: str) -> Callable[[Tree], Tree]:
        name = planned.spec.output_name
        with _about(name):
            source = input_of(self._step.spec.git, planned.config)
            repository = await self._opener(_address(source))
            return await repository.input(commit, name=name, branch=source.branch, tag=source.tag)


async def find_commit(step: PromotionStep, planned: PlannedStep, opener: Opener) -> tuple[InputSource, str]:
    """Return the source of an input step, and the commit that its branch or tag names now."""
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
    """Name the input in errors about its repository, because the fields they name are in another place there."""
    try:
        yield
    except KardinalError as error:
        error.field = f"input {name}"
        raise


async def _read_record(repository: Repository, branch: str) -> BranchState:
    """Return the current record on an environment's own branch; an empty record if the branch does not exist."""
    try:
        head = await repository.head(branch)
    except BranchNotFound:
        return BranchState()
    return await repository.examine(head.commit, read_state)


async def _read_replays(
    repository: Repository, replays: Iterable[Replay]
) -> dict[Replay, Sequence[Sequence[FileChange]]]:
    """Return the file changes of each of `replays`, which are commits of `repository`."""
    places: dict[tuple[str, str], list[Replay]] = {}
    for replay in replays:
        places.setdefault((replay.source.branch, replay.source.directory), []).append(replay)
    found: dict[Replay, Sequence[Sequence[FileChange]]] = {}
    for (branch, directory), wanted in places.items():
        read = await repository.differences(branch, [replay.move for replay in wanted], directory)
        found |= {replay: (changes,) for replay, changes in zip(wanted, read, strict=True)}
    return found
