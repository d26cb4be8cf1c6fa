"""The configuration commits of a rendered branch, which every promotion to that branch applies again.

The record on the branch lists the commits, but the Pipeline decides from where they may be read, both now and when they
landed. A record that names another repository, or another directory than `update.config.from`, fails the promotion. So
a user who may push to the branch cannot make kardinal read files from elsewhere and write them there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.bundle import ConfigurationCommit
from kardinal.promotion.steps.branch_layout import COMMITS_LIMIT, STATE_PATH, BranchState
from kardinal.promotion.steps.config_history import RecordedCommit, recorded_moves, stacked
from kardinal.promotion.steps.config_source import ConfigMergeConfig, ConfigSource, SourceRefused, source_of
from kardinal.promotion.steps.declaration import PlannedStep
from kardinal.tree.differences import Move
from kardinal.tree.edit import EditError

__all__ = ["RecordMoved", "Replay", "check_brought", "commits_after", "replays_of"]


class RecordMoved(EditError):
    """The record of a branch has other commits than those that were read; the promotion reads them again."""

    transient = True


@dataclass(frozen=True, slots=True)
class Replay:
    """A recorded commit and the move that applies it.

    It is the key under which the file changes of the move are stored.
    """

    source: ConfigSource
    move: Move


def commits_after(
    step: PromotionStep, bundle: Bundle, config: ConfigMergeConfig | None, recorded: Sequence[RecordedCommit]
) -> tuple[RecordedCommit, ...]:
    """Return the commits that an environment has after `config-merge` has run for a Bundle. Raises `KardinalError`."""
    commit = bundle.spec.artifacts.git_commit
    if config is None or commit is None:
        return tuple(recorded)
    source = source_of(step.spec.git, step.spec.update, commit, config)
    own = RecordedCommit(
        repository=source.repository, commit=source.commit, directory=source.directory, strategy=source.strategy
    )
    after = stacked(recorded, own)
    if len(after) > COMMITS_LIMIT:
        raise EditError(
            STATE_PATH,
            f"has {COMMITS_LIMIT} commits of {source.repository}, and no more are recorded",
            remedy=f"Commit what they bring to {step.spec.git.branch}, and empty `config` in that file",
        )
    return after


def replays_of(
    step: PromotionStep, bundle: Bundle, config: ConfigMergeConfig | None, recorded: Sequence[RecordedCommit]
) -> list[Replay]:
    """Return the moves that apply all configuration commits for a Bundle to a source, in order.

    Raises `KardinalError`.
    """
    if config is None:
        return []
    commits = commits_after(step, bundle, config, recorded)
    return [Replay(_source(step, config, commit), move) for commit, move in recorded_moves(commits)]


def check_brought(steps: Iterable[PlannedStep], state: BranchState) -> None:
    """Raise `EditError` if no step of the sequence sets a recorded kind of artifact: the promotion would undo it."""
    edits = [planned.declaration for planned in steps if planned.declaration.edit is not None]
    for kind in state.kinds if edits else ():
        if not any(edit.takes is None or kind in edit.takes for edit in edits):
            raise EditError(
                STATE_PATH,
                f"records {kind}, and no step of the environment brings them: the promotion would undo them",
                remedy="Add a step that does to its steps in the Pipeline",
            )


def _source(step: PromotionStep, config: ConfigMergeConfig, recorded: RecordedCommit) -> ConfigSource:
    git = step.spec.git
    commit = ConfigurationCommit(repository=recorded.repository, sha=recorded.commit, path=recorded.directory or None)
    try:
        source = source_of(git, step.spec.update, commit, config)
    except SourceRefused as error:
        raise EditError(
            STATE_PATH,
            f"records commit {recorded.commit[:12]}, but {error.message}",
            remedy=f"Take configuration from there, or commit what it brings to {git.branch} and remove it there",
        ) from error
    if source.directory != recorded.directory:
        raise EditError(
            STATE_PATH,
            f"records commit {recorded.commit[:12]} of {recorded.directory or 'the root'}, and the Pipeline takes "
            f"configuration from {source.directory}",
            remedy=f"Take it from there again, or commit what it brings to {git.branch} and remove it there",
        )
    return replace(source, strategy=recorded.strategy)
