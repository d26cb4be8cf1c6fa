"""`config-merge`: bring the commit of a configuration repository into the directory of an environment.

`cherry-pick` applies what the commit changed, file by file and three-way, so what the environment has of its own stays;
`overlay` makes the changed files what they are in the commit. Either takes back what landed after a commit that is
promoted again (`config_history`). A new file is a plain one; links and submodules are refused, and every file that
conflicts is named.

Which repository is merged from is the Pipeline's word. A Bundle says which commit of it: who may create Bundles must
not be able to bring manifests from anywhere, nor have a Secret sent there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from kardinal.api import Bundle, PromotionStep
from kardinal.api.base import RelativePath, SecretReference, Url
from kardinal.api.bundle import GitCommit
from kardinal.api.pipeline import ConfigUpdate, Git, MergeStrategy, Update
from kardinal.api.repository_url import InvalidRepositoryURL, RepositoryURL, repository_key
from kardinal.objects.errors import KardinalError
from kardinal.steps.config_history import FileChange
from kardinal.steps.declaration import EditContext, FileEdit, PlannedStep, Role, StepConfig, StepDeclaration
from kardinal.steps.edit import Changes, EditError, Tree
from kardinal.steps.images import ImageChange
from kardinal.steps.overlay import Overlay
from kardinal.steps.step_paths import below, inside
from kardinal.steps.three_way import merge_text

__all__ = [
    "CONFIG_MERGE",
    "ConfigConflict",
    "ConfigMergeConfig",
    "ConfigSource",
    "SourceRefused",
    "source_of",
    "sources_of",
]

MERGED_LIMIT = 16 << 20
"""Bytes of all files that one promotion merges line by line."""

_SHOWN = 20
"""Files that a conflict names."""


class ConfigConflict(EditError):
    """Files that both the environment and the commit have changed."""


class SourceRefused(KardinalError):
    """A Bundle's commit is of a repository that the Pipeline does not take configuration from."""


class ConfigMergeConfig(StepConfig):
    """The fields of `update.config`; those that are left out are taken from there."""

    strategy: MergeStrategy | None = None
    from_: Annotated[Annotated[RelativePath, AfterValidator(inside)] | None, Field(alias="from")] = None
    repository: Url | None = None
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    secret_ref: SecretReference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """The difference that a `config-merge` needs: of which commit, from where, and with whose credentials.

    `branch` must contain the commit: on some hosts a pull request or a fork puts commits into a repository. `secret` is
    a name in the namespace of the promotion.
    """

    repository: str
    branch: str
    commit: str
    directory: str
    strategy: MergeStrategy
    secret: str | None


def source_of(git: Git, update: Update, commit: GitCommit, config: ConfigMergeConfig) -> ConfigSource:
    """Return what a `config-merge` needs for a commit. Raises `SourceRefused`, `InvalidRepositoryURL`."""
    chosen = _chosen(update, config)
    repository = chosen.repository or git.url
    own = repository_key(repository) == repository_key(git.url)
    if repository_key(commit.repository) != repository_key(repository):
        raise SourceRefused(
            f"the Pipeline takes configuration from {repository}, and the commit is of {commit.repository}",
            remedy="name that repository in update.config of the Pipeline, or promote a commit of this one",
        )
    secret = chosen.secret_ref
    if secret is None and _same_host(repository, git.url):
        secret = git.secret_ref
    return ConfigSource(
        repository=repository,
        branch=chosen.branch or (git.branch if own else "main"),
        commit=commit.sha,
        directory=below(chosen.from_ or commit.path or "", None),
        strategy=chosen.strategy,
        secret=secret.name if secret is not None else None,
    )


def sources_of(step: PromotionStep, bundle: Bundle, steps: Iterable[PlannedStep]) -> list[ConfigSource]:
    """Return what the steps of a sequence need opened for a Bundle. Raises `SourceRefused`, `InvalidRepositoryURL`."""
    commit, spec = bundle.spec.artifacts.git_commit, step.spec
    if commit is None:
        return []
    configs = [planned.config for planned in steps if isinstance(planned.config, ConfigMergeConfig)]
    return [source_of(spec.git, spec.update, commit, config) for config in configs]


def _chosen(update: Update, config: ConfigMergeConfig) -> ConfigUpdate:
    given = config.model_dump(by_alias=True, exclude_none=True)
    return ConfigUpdate.model_validate((update.config or ConfigUpdate()).to_json() | given)


def _same_host(one: str, other: str) -> bool:
    first, second = (RepositoryURL.parse(url, allow_local=True) for url in (one, other))
    return bool(first.host) and first.host == second.host


def _plan(context: EditContext, config: ConfigMergeConfig) -> Changes:
    commit = context.bundle.spec.artifacts.git_commit
    if commit is None:
        return {}
    try:
        source = source_of(context.step.spec.git, context.step.spec.update, commit, config)
    except (SourceRefused, InvalidRepositoryURL) as error:
        raise EditError("config-merge", error.message, remedy=error.remedy) from error
    if source not in context.differences:
        raise EditError("config-merge", f"commit {commit.sha[:12]} of {source.repository} is not read here")
    merge = _Merge(context.tree, context.step.spec.path, source)
    for difference in context.differences[source]:
        merge.take(difference)
    return merge.changes


class _Merge:
    """The files of an environment while commits are merged into them."""

    def __init__(self, tree: Tree, directory: str, source: ConfigSource) -> None:
        self._merged = Overlay(tree)
        self._directory = directory
        self._source = source
        self._bytes = 0

    @property
    def changes(self) -> Changes:
        return self._merged.changes

    def take(self, difference: Sequence[FileChange]) -> None:
        """Apply what differs between two commits; raises `ConfigConflict` with every file that does not fit."""
        conflicts = []
        for change in difference:
            path = f"{self._directory}/{change.path}"
            ours = self._merged.read(path)
            if ours == change.after:
                continue
            if self._source.strategy == "overlay" or ours == change.before:
                self._merged.apply({path: change.after})
            elif ours is None or change.before is None or change.after is None:
                conflicts.append(path)
            elif (merged := self._merge(path, change.before, ours, change.after)) is not None:
                self._merged.apply({path: merged})
            else:
                conflicts.append(path)
        if conflicts:
            raise self._conflict(conflicts)

    def _merge(self, path: str, before: bytes, ours: bytes, after: bytes) -> bytes | None:
        self._bytes += len(before) + len(ours) + len(after)
        if self._bytes > MERGED_LIMIT:
            raise EditError(
                path,
                f"not merged: one promotion merges at most {MERGED_LIMIT:,} bytes line by line",
                remedy="Use strategy: overlay, or promote smaller commits",
            )
        return merge_text(before, ours, after)

    def _conflict(self, paths: list[str]) -> ConfigConflict:
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        others = f" (also {', '.join(paths[1:_SHOWN])}{more})" if len(paths) > 1 else ""
        return ConfigConflict(
            paths[0],
            f"conflicts with commit {self._source.commit[:12]}: the environment has another content there{others}",
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
