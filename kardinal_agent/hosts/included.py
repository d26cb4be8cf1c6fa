"""The directories that environments include from elsewhere in their repository: bases and components of kustomizations.

They are read at the head of the environment's branch, by the same reader as `kardinal plan`. A pull request that
changes the list of included directories changes a file in the environment's own directory, so it reaches the
environment anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kardinal.edits.kustomize.kustomization import FILE_NAMES
from kardinal.edits.kustomize.reading import read_kustomization
from kardinal.git import BranchNotFound, Repository
from kardinal.objects import Key
from kardinal.promotion.api import Pipeline
from kardinal.promotion.policy.binding import Place, clean_path, places_of
from kardinal.promotion.steps.step_paths import below
from kardinal.tree.edit import EditError, Tree

__all__ = ["Included", "IncludedDirectories"]

_CONFIG_PATH = "path"
"""The field of a step's `config` with the path of a kustomization below the environment's directory."""


_MAX_REPOSITORIES = 1_000
"""The most repositories that are remembered."""


@dataclass(frozen=True, slots=True)
class Included:
    """The included directories of an environment; `unknown` if there may be more, because one was unreadable."""

    directories: tuple[str, ...] = ()
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    """The included directories of one repository, with the branch heads and directories that they were read from."""

    of: object
    included: Mapping[Place, Included]


class IncludedDirectories:
    """The included directories that one agent has read; they are read again when a branch has moved."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known] = {}

    async def of(self, key: Key, repository: Repository, pipelines: Sequence[Pipeline]) -> Mapping[Place, Included]:
        """Return the included directories of every environment of Pipelines on one repository. Raises `GitError`."""
        paths = {place: names for pipeline in pipelines for place, names in _kustomizations(pipeline)}
        tips = {branch: await _tip(repository, branch) for branch in sorted({place.branch for place in paths})}
        known = self._known.get(key)
        asked = (tips, paths)
        if known is None or known.of != asked:
            included = {place: await _read(repository, tips[place.branch], names) for place, names in paths.items()}
            self._known.pop(key, None)
            known = self._known[key] = _Known(asked, included)
            while len(self._known) > _MAX_REPOSITORIES:
                del self._known[next(iter(self._known))]
        return known.included


def _kustomizations(pipeline: Pipeline) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """Yield each environment with the directories in which its own kustomizations may be."""
    for place, environment in zip(places_of(pipeline), pipeline.spec.environments, strict=True):
        named = [(step.config or {}).get(_CONFIG_PATH) for step in environment.steps or ()]
        overlays = [below(place.path, name) for name in named if isinstance(name, str)]
        yield place, tuple(dict.fromkeys(clean_path(path) for path in (place.path, *overlays)))


async def _tip(repository: Repository, branch: str) -> str | None:
    try:
        return (await repository.head(branch)).commit
    except BranchNotFound:
        return None


async def _read(repository: Repository, commit: str | None, paths: Sequence[str]) -> Included:
    if commit is None:
        return Included()
    return await repository.examine(commit, lambda tree: _taken_in(tree, paths))


def _taken_in(tree: Tree, paths: Sequence[str]) -> Included:
    directories = dict[str, None]()
    unknown = False
    for path in paths:
        try:
            there = any(tree.size(below(path, name)) is not None for name in FILE_NAMES)
        except EditError:  # a link, for instance
            unknown = True
            continue
        if there:
            reading = read_kustomization(tree, path)
            directories.update(dict.fromkeys(map(clean_path, reading.roots)))
            unknown = unknown or bool(reading.unread)
    return Included(tuple(directory for directory in directories if directory not in paths), unknown)
