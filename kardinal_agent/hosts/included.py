"""The directories that environments take in from elsewhere in their repository: bases and components.

They are read as `kardinal plan` reads them, at the head of the branch: a pull request that changes what is taken in
changes the environment's own directory, which counts anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kardinal.api import Pipeline
from kardinal.git import BranchNotFound, Repository
from kardinal.objects import Key
from kardinal.policy.binding import Place, clean_path, places_of
from kardinal.steps.edit import EditError, Tree
from kardinal.steps.kustomization import FILE_NAMES
from kardinal.steps.kustomize.reading import read_kustomization
from kardinal.steps.step_paths import below

__all__ = ["Included", "IncludedDirectories"]

_CONFIG_PATH = "path"
"""The field of a step's config that names a kustomization below the environment's directory."""


_MAX_REPOSITORIES = 1_000
"""Repositories that are remembered."""


@dataclass(frozen=True, slots=True)
class Included:
    """Directories of a branch that an environment takes in; `unknown`: there may be more, because one is unreadable."""

    directories: tuple[str, ...] = ()
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    """The answer for one repository, with the tips and directories it was read of."""

    of: object
    included: Mapping[Place, Included]


class IncludedDirectories:
    """The memory of one agent about what environments take in; it is read anew when a branch has moved."""

    def __init__(self) -> None:
        self._known: dict[Key, _Known] = {}

    async def of(self, key: Key, repository: Repository, pipelines: Sequence[Pipeline]) -> Mapping[Place, Included]:
        """Return what every environment of the Pipelines of a repository takes in. Raises `GitError`."""
        paths = {place: names for pipeline in pipelines for place, names in _kustomizations(pipeline)}
        tips = {branch: await _tip(repository, branch) for branch in sorted({place.branch for place in paths})}
        known, asked = self._known.get(key), (tips, paths)
        if known is None or known.of != asked:
            included = {place: await _read(repository, tips[place.branch], names) for place, names in paths.items()}
            self._known.pop(key, None)
            known = self._known[key] = _Known(asked, included)
            while len(self._known) > _MAX_REPOSITORIES:
                del self._known[next(iter(self._known))]
        return known.included


def _kustomizations(pipeline: Pipeline) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """Yield each environment with the directories in which a kustomization of its own may be."""
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
    directories, unknown = dict[str, None](), False
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
