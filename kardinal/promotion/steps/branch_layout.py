"""Layout `branch`: each environment has its own branch, which holds the rendered form of a source directory.

Every promotion renders the source anew, which would undo the versions that earlier Bundles have set. So the artifacts
are recorded on the environment's branch, in `.kardinal/state.yaml`, and set again before the new ones. The record is
data of that branch: everyone who may push to it could also write the manifests beside it. It contains only images,
charts and commits, and changes no other branch. A record that kardinal cannot have written fails the promotion. Commits
are always read from the repository that the Pipeline takes configuration from, whatever the record says.

The output replaces all files on the branch, except those whose first path segment starts with a dot and CODEOWNERS,
because these tell the host how to treat the branch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field, ValidationError

from kardinal.models.base import Model
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import ArtifactKind, Artifacts, Chart, Image
from kardinal.promotion.api.chart import chart_problems
from kardinal.promotion.api.image import image_problems
from kardinal.promotion.steps.config_history import RecordedCommit
from kardinal.tree.edit import CHANGES_LIMIT, Changes, EditError, Tree, split_path

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
"""Written as JSON, which is also YAML and has no aliases."""

COMMITS_LIMIT = 200
"""The largest number of configuration commits in a record; each promotion applies all of them."""

_STATE_LIMIT = 256 << 10
"""The maximum size of the record in bytes."""


class BranchState(Model):
    """The artifacts that an environment has, and the source commit from which it was last rendered."""

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
        return f"{json.dumps(self.to_json(), indent=2)}\n".encode()


def read_state(tree: Tree) -> BranchState:
    """Return the record on an environment's branch, or an empty one if there is none; raises `EditError`."""
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
    """Return `bundle` with the recorded images and charts added.

    With `own`, its own versions replace the recorded ones; without it, only the recorded ones are returned.

    The commit of its configuration is kept, because the record lists commits separately.
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
    """Return the changes that replace the environment's branch by `files` of `output` and the record of `state`."""
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
    """Return whether a file on an environment's branch is kept, because it is not part of the output."""
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
