"""`config-merge`: bring the commit of a configuration repository into the directory of an environment.

`cherry-pick` applies what the commit changed, file by file and three-way, so what the environment has of its own stays;
`overlay` makes the changed files what they are in the commit. Either takes back what landed after a commit that is
promoted again (`config_history`). A new file is a plain one; links and submodules are refused, and every file that
conflicts is named.

With layout `branch` the directory is that of the source, which has none of the commits: all that the branch records are
brought, and that of the Bundle (`config_replay`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kardinal.api.pipeline import StepSpec
from kardinal.api.repository_url import InvalidRepositoryURL
from kardinal.steps.branch_layout import STATE_PATH
from kardinal.steps.config_history import FileChange
from kardinal.steps.config_replay import RecordMoved, replays_of
from kardinal.steps.config_source import ConfigMergeConfig, ConfigSource, SourceRefused, source_of
from kardinal.steps.declaration import EditContext, FileEdit, Role, StepDeclaration
from kardinal.steps.edit import Changes, EditError, Tree
from kardinal.steps.images import ImageChange
from kardinal.steps.overlay import Overlay
from kardinal.steps.three_way import merge_text

__all__ = ["CONFIG_MERGE", "ConfigConflict", "several_merges"]

MERGED_LIMIT = 16 << 20
"""Bytes of all files that one promotion merges line by line."""

_SHOWN = 20
"""Files that a conflict names."""


class ConfigConflict(EditError):
    """Files that both the environment and the commit have changed."""


def _plan(context: EditContext, config: ConfigMergeConfig) -> Changes:
    spec = context.step.spec
    merge = _Merge(context.tree, spec.path, place="the environment" if spec.branch is None else spec.git.branch)
    try:
        for source, difference in _differences(context, config):
            merge.take(source, difference)
    except (SourceRefused, InvalidRepositoryURL) as error:
        raise EditError("config-merge", error.message, remedy=error.remedy) from error
    return merge.changes


def _differences(
    context: EditContext, config: ConfigMergeConfig
) -> Iterator[tuple[ConfigSource, Sequence[FileChange]]]:
    """Yield what differs for each commit, in this order."""
    step, commit, found = context.step, context.bundle.spec.artifacts.git_commit, context.differences
    if step.spec.branch is not None:
        for replay in replays_of(step, context.bundle, config, context.state.config):
            if replay not in found:
                raise RecordMoved(STATE_PATH, "has other commits than when it was read")
            for difference in found[replay]:
                yield replay.source, difference
    elif commit is not None:
        source = source_of(step.spec.git, step.spec.update, commit, config)
        if source not in found:
            raise EditError("config-merge", f"commit {commit.sha[:12]} of {source.repository} is not read here")
        for difference in found[source]:
            yield source, difference


class _Merge:
    """The files of an environment while commits are merged into them."""

    def __init__(self, tree: Tree, directory: str, *, place: str) -> None:
        self._merged = Overlay(tree)
        self._directory = directory
        self._place = place
        self._bytes = 0

    @property
    def changes(self) -> Changes:
        return self._merged.changes

    def take(self, source: ConfigSource, difference: Sequence[FileChange]) -> None:
        """Apply what differs between two commits; raises `ConfigConflict` with every file that does not fit."""
        conflicts = []
        for change in difference:
            path = f"{self._directory}/{change.path}"
            ours = self._merged.read(path)
            if ours == change.after:
                continue
            if source.strategy == "overlay" or ours == change.before:
                self._merged.apply({path: change.after})
            elif ours is None or change.before is None or change.after is None:
                conflicts.append(path)
            elif (merged := self._merge(path, change.before, ours, change.after)) is not None:
                self._merged.apply({path: merged})
            else:
                conflicts.append(path)
        if conflicts:
            raise self._conflict(source, conflicts)

    def _merge(self, path: str, before: bytes, ours: bytes, after: bytes) -> bytes | None:
        self._bytes += len(before) + len(ours) + len(after)
        if self._bytes > MERGED_LIMIT:
            raise EditError(
                path,
                f"not merged: one promotion merges at most {MERGED_LIMIT:,} bytes line by line",
                remedy="Use strategy: overlay, or promote smaller commits",
            )
        return merge_text(before, ours, after)

    def _conflict(self, source: ConfigSource, paths: list[str]) -> ConfigConflict:
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        others = f" (also {', '.join(paths[1:_SHOWN])}{more})" if len(paths) > 1 else ""
        return ConfigConflict(
            paths[0],
            f"conflicts with commit {source.commit[:12]}: {self._place} has another content there{others}",
            remedy="Make the files agree by hand and create a new Bundle, or use strategy: overlay",
        )


def _image_changes(before: bytes | None, after: bytes | None) -> Sequence[ImageChange]:
    """Tell of no image: what a commit changes is told as a diff."""
    return ()


CONFIG_MERGE = StepDeclaration(
    name="config-merge",
    about="Brings the commit of a Bundle into the environment's directory: its changes, or its files.",
    role=Role.EDIT,
    config=ConfigMergeConfig,
    edit=FileEdit(plan=_plan, image_changes=_image_changes),
    takes=frozenset(["gitCommit"]),
)


def several_merges(steps: Iterable[StepSpec]) -> str | None:
    """Return why steps cannot keep the record of a branch: it has the commits of one step that merges."""
    if sum(step.uses == CONFIG_MERGE.name for step in steps) < 2:
        return None
    return (
        f"{CONFIG_MERGE.name} stands in the sequence twice, and a branch of an environment records the commits of one"
    )
