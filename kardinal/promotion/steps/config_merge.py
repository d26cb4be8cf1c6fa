"""`config-merge`: merge the commit of a configuration repository into the directory of an environment.

The strategy `cherry-pick` applies the changes of the commit, file by file with a three-way merge, so that the
environment's own changes stay. The strategy `overlay` replaces the changed files by those in the commit. If the commit
was promoted before, both remove the commits that landed after it (`config_history`). A new file becomes a plain file;
links and submodules are refused, and the error of a conflict names every conflicting file.

With layout `branch` the directory is that of the source, which has none of these commits. So all commits in the record
of the branch are applied, and then that of the Bundle (`config_replay`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kardinal.edits.images import ImageChange
from kardinal.edits.three_way import merge_text
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.steps.branch_layout import STATE_PATH
from kardinal.promotion.steps.config_replay import RecordMoved, replays_of
from kardinal.promotion.steps.config_source import ConfigMergeConfig, ConfigSource, SourceRefused, source_of
from kardinal.promotion.steps.declaration import EditContext, FileEdit, Role, StepDeclaration
from kardinal.tree.differences import FileChange
from kardinal.tree.edit import Changes, EditError, Tree
from kardinal.tree.overlay import Overlay
from kardinal.tree.repository_url import InvalidRepositoryURL

__all__ = ["CONFIG_MERGE", "ConfigConflict", "several_merges"]

MERGED_LIMIT = 16 << 20
"""The total size, in bytes, of the files that one promotion merges line by line."""

_SHOWN = 20
"""The largest number of files in the message of a conflict."""


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
    """Yield each source with the file changes to apply, in order."""
    step = context.step
    commit = context.bundle.spec.artifacts.git_commit
    found = context.differences
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
        """Apply the file changes between two commits; raises `ConfigConflict` with every conflicting file."""
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
    """Return no image changes, because the pull request shows the changes of a commit as a diff."""
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
    """Return why a sequence cannot keep the record of a branch: the record has room for one merging step only."""
    if sum(step.uses == CONFIG_MERGE.name for step in steps) < 2:
        return None
    return (
        f"{CONFIG_MERGE.name} stands in the sequence twice, and a branch of an environment records the commits of one"
    )
