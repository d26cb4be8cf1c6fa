"""The source of the commits of a configuration.

Which repository it is is the Pipeline's word. A Bundle says which commit of it: who may create Bundles must not be able
to bring manifests from anywhere, nor have a Secret sent there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field

from kardinal.api import Bundle, PromotionStep
from kardinal.api.base import RelativePath, SecretReference, Url
from kardinal.api.bundle import GitCommit
from kardinal.api.pipeline import ConfigUpdate, Git, MergeStrategy, Update
from kardinal.api.repository_url import repository_key, same_host
from kardinal.objects.errors import KardinalError
from kardinal.steps.declaration import PlannedStep, StepConfig
from kardinal.steps.step_paths import below, inside

__all__ = ["ConfigMergeConfig", "ConfigSource", "SourceRefused", "config_of", "source_of", "sources_of"]


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
    """Return what the steps of a sequence need opened for a Bundle. Raises `SourceRefused`, `InvalidRepositoryURL`."""
    commit, spec = bundle.spec.artifacts.git_commit, step.spec
    if commit is None:
        return []
    return [source_of(spec.git, spec.update, commit, config) for config in _configs(steps)]


def config_of(steps: Iterable[PlannedStep]) -> ConfigMergeConfig | None:
    """Return the config of the first step that merges."""
    return next(iter(_configs(steps)), None)


def _configs(steps: Iterable[PlannedStep]) -> list[ConfigMergeConfig]:
    return [planned.config for planned in steps if isinstance(planned.config, ConfigMergeConfig)]


def _chosen(update: Update, config: ConfigMergeConfig) -> ConfigUpdate:
    given = config.model_dump(by_alias=True, exclude_none=True)
    return ConfigUpdate.model_validate((update.config or ConfigUpdate()).to_json() | given)
