"""The source of configuration commits: the Pipeline names the repository, and the Bundle one of its commits.

A user who may only create Bundles must not be able to bring manifests from any other repository, nor to have a Secret
sent to its host.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from kardinal.models.base import RelativePath, SecretReference, Url
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.bundle import ConfigurationCommit
from kardinal.promotion.api.pipeline import ConfigUpdate, Git, MergeStrategy, Update
from kardinal.promotion.steps.declaration import PlannedStep, StepConfig
from kardinal.promotion.steps.step_paths import below, inside
from kardinal.tree.repository_url import repository_key, same_host

__all__ = ["ConfigMergeConfig", "ConfigSource", "SourceRefused", "config_of", "source_of", "sources_of"]


class SourceRefused(KardinalError):
    """The commit of a Bundle belongs to another repository than the Pipeline takes configuration from."""


class ConfigMergeConfig(StepConfig):
    """The fields of `update.config`; a field that is left out defaults to the value there."""

    strategy: MergeStrategy | None = None
    from_: Annotated[Annotated[RelativePath, AfterValidator(inside)] | None, Field(alias="from")] = None
    repository: Url | None = None
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    secret_ref: SecretReference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """The commit that a `config-merge` needs: its repository, branch and directory, the strategy and the Secret.

    `branch` must contain the commit, because on some hosts a pull request or a fork puts commits into a repository.
    `secret` is the name of a Secret in the namespace of the promotion.
    """

    repository: str
    branch: str
    commit: str
    directory: str
    strategy: MergeStrategy
    secret: str | None


def source_of(git: Git, update: Update, commit: ConfigurationCommit, config: ConfigMergeConfig) -> ConfigSource:
    """Return the source of `commit` for a `config-merge`. Raises `SourceRefused`, `InvalidRepositoryURL`."""
    chosen = _chosen(update, config)
    repository = chosen.repository or git.url
    own = repository_key(repository) == repository_key(git.url)
    if repository_key(commit.repository) != repository_key(repository):
        raise SourceRefused(
            f"the Pipeline takes configuration from {repository}, and the commit is of {commit.repository}",
            remedy="name that repository in update.config of the Pipeline, or promote a commit of this one",
        )
    secret = chosen.secret_ref
    if secret is None and same_host(repository, git.url):
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
    """Return the sources that the steps need for a Bundle. Raises `SourceRefused`, `InvalidRepositoryURL`."""
    commit = bundle.spec.artifacts.git_commit
    spec = step.spec
    if commit is None:
        return []
    return [source_of(spec.git, spec.update, commit, config) for config in _configs(steps)]


def config_of(steps: Iterable[PlannedStep]) -> ConfigMergeConfig | None:
    """Return the config of the first step that merges a configuration; None if there is none."""
    return next(iter(_configs(steps)), None)


def _configs(steps: Iterable[PlannedStep]) -> list[ConfigMergeConfig]:
    return [planned.config for planned in steps if isinstance(planned.config, ConfigMergeConfig)]


def _chosen(update: Update, config: ConfigMergeConfig) -> ConfigUpdate:
    given = config.model_dump(by_alias=True, exclude_none=True)
    return ConfigUpdate.model_validate((update.config or ConfigUpdate()).to_json() | given)
