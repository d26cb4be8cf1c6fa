"""Layout `branch`: an environment has a branch of its own, which holds what its directory on another one renders to.

Each promotion renders from the source anew, so what earlier Bundles have set there would be undone. It is therefore
recorded on the environment's branch, and set again first. The record is data of that branch: who may push to it could
as well write the manifests beside it. It has images, charts and commits and nothing else, no other branch is changed by
it, and one that kardinal cannot have written ends the promotion. Commits are read from the repository that the Pipeline
takes configuration from, whatever the record says.

The output replaces everything on the branch but names in its root that start with a dot, and CODEOWNERS: they say how a
host treats the branch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field, ValidationError

from kardinal.api import Bundle
from kardinal.api.base import Model
from kardinal.api.bundle import ArtifactKind, Artifacts, Chart, Image
from kardinal.api.chart import chart_problems
from kardinal.api.image import ImageReference, ImageReferenceError, image_problems
from kardinal.steps.config_history import RecordedCommit
from kardinal.steps.edit import CHANGES_LIMIT, Changes, EditError, Tree, split_path

__all__ = [
    "COMMITS_LIMIT",
    "STATE_PATH",
    "BranchState",
    "branch_changes",
    "files_of",
    "read_state",
    "with_artifacts",
]

STATE_PATH = ".kardinal/state.yaml"
"""Written as JSON, which is YAML as well and has no aliases."""

COMMITS_LIMIT = 200
"""Commits of a configuration that a record has: each promotion brings all of them."""

_STATE_LIMIT = 256 << 10
"""Bytes of the record that are read."""


class BranchState(Model):
    """The artifacts that an environment has, and the source that they were last rendered from."""

    images: Annotated[tuple[Image, ...], Field(max_length=64)] = ()
    charts: Annotated[tuple[Chart, ...], Field(max_length=64)] = ()
    config: Annotated[tuple[RecordedCommit, ...], Field(max_length=COMMITS_LIMIT)] = ()
    """Commits of a configuration, in the order in which they landed."""
    source: Annotated[str, Field(max_length=64)] = ""

    @property
    def kinds(self) -> tuple[ArtifactKind, ...]:
        """Return the kinds of artifacts that are recorded."""
        kinds = Artifacts(images=self.images, charts=self.charts).kinds
        return (*kinds, "gitCommit") if self.config else kinds

    def written(self) -> bytes:
        document = self.to_json()
        if not self.config:
            del document["config"]  # as branches have it that were rendered before there was one
        return f"{json.dumps(document, indent=2)}\n".encode()


def read_state(tree: Tree) -> BranchState:
    """Return the record on an environment's branch, empty where there is none; raises `EditError`."""
    size = tree.size(STATE_PATH)
    if size is None:
        return BranchState()
    try:
        if size > _STATE_LIMIT:
            raise ValueError(STATE_PATH)
        state = BranchState.model_validate(json.loads(tree.read(STATE_PATH) or b""))
        artifacts = Artifacts(images=state.images)
    except (ValueError, ValidationError, RecursionError):
        raise _not_ours() from None
    if next(image_problems(artifacts), None) or next(chart_problems(state.charts), None):
        raise _not_ours()
    return state


def with_artifacts(bundle: Bundle, state: BranchState, *, own: bool = True) -> Bundle:
    """Return a Bundle with the images and charts of an environment, and with its `own`, which take their place.

    The commit of its configuration stays, because the record has commits by themselves.
    """
    brought = bundle.spec.artifacts if own else Artifacts()
    names = {_repository(image) for image in brought.images} | {image.name for image in brought.images if image.name}
    charts = {(chart.repository, chart.name) for chart in brought.charts}
    artifacts = Artifacts(
        images=(*(one for one in state.images if not {_repository(one), one.name} & names), *brought.images),
        charts=(*(one for one in state.charts if (one.repository, one.name) not in charts), *brought.charts),
        git_commit=bundle.spec.artifacts.git_commit,
    )
    return bundle.model_copy(update={"spec": bundle.spec.model_copy(update={"artifacts": artifacts})})


def branch_changes(tree: Tree, output: Tree, files: Iterable[str], state: BranchState) -> Changes:
    """Return what makes an environment's branch hold `files` of `output`, and the record, and nothing else."""
    changes: dict[str, bytes | None] = {path: None for path in _files(tree, "") if not _kept(path)}
    for count, path in enumerate(files):
        if count >= CHANGES_LIMIT:
            raise EditError(path, f"a rendered branch has at most {CHANGES_LIMIT:,} files")
        if _kept(path):
            continue
        if tree.identify(path) == output.identify(path):
            changes.pop(path, None)
        else:
            changes[path] = output.read(path)
    if (written := state.written()) != tree.read(STATE_PATH):
        changes[STATE_PATH] = written
    return changes


def _kept(path: str) -> bool:
    """Return whether a file on an environment's branch is none of the output."""
    first = split_path(path)[0]
    return first.startswith(".") or path == "CODEOWNERS"


def files_of(tree: Tree) -> Iterator[str]:
    """Yield the paths of all files of a tree."""
    yield from _files(tree, "")


def _files(tree: Tree, directory: str) -> Iterator[str]:
    for name in tree.entries(directory):
        path = f"{directory}/{name}" if directory else name
        if not directory and _kept(path):
            continue
        if tree.is_dir(path):
            yield from _files(tree, path)
        else:
            yield path


def _repository(image: Image) -> str:
    try:
        return ImageReference.parse(image.reference).canonical
    except ImageReferenceError:
        return image.reference


def _not_ours() -> EditError:
    return EditError(
        STATE_PATH,
        "is not what kardinal wrote",
        remedy="Restore it from the history of the branch, or delete it: nothing but the next Bundle is set then",
    )
