"""Hold a Bundle against the environments that it goes to: whether each takes all that it brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kardinal.api import Bundle
from kardinal.api.bundle import GitCommit
from kardinal.api.pipeline import Environment, Git
from kardinal.api.repository_url import InvalidRepositoryURL, repository_key
from kardinal.policy.binding import clean_branch, clean_path
from kardinal.steps.config_source import ConfigMergeConfig, ConfigSource, SourceRefused, source_of
from kardinal.steps.sequence import StepTable, planned, without_taker
from kardinal.translation.errors import Problem

__all__ = ["fit_problems"]

_PROOFS = frozenset(["type", "resource", "argocd", "flux", "argo_rollouts", "flagger"])
"""Fields of `health` that name what proves an environment."""


def fit_problems(bundle: Bundle, git: Git, environments: Iterable[Environment], table: StepTable) -> list[Problem]:
    """Return why environments would leave out what a Bundle brings, or may not take it; their steps have no problem."""
    subject, artifacts = f"Bundle/{bundle.metadata.name}", bundle.spec.artifacts
    problems = []
    for environment in environments:
        for kind in without_taker(environment.steps, table, artifacts.kinds) if environment.steps else ():
            message = f"no step of environment {environment.name} brings it"
            remedy = "add one to its steps in the Pipeline, or leave them out"
            problems.append(Problem(subject, f"spec.artifacts.{kind}", "InvalidSequence", message, remedy))
        if artifacts.git_commit is not None:
            problems += _source_problems(subject, artifacts.git_commit, git, environment, table)
        if artifacts.charts and not artifacts.images and not _PROOFS & environment.health.model_fields_set:
            message = (
                f"nothing is named that proves it in environment {environment.name}: a chart has no image to look for"
            )
            remedy = "set health.resource, whose workload is then rolled out, or another health.type"
            problems.append(Problem(subject, "spec.artifacts.charts", "NoProof", message, remedy))
    return problems


def _source_problems(
    subject: str, commit: GitCommit, git: Git, environment: Environment, table: StepTable
) -> Iterator[Problem]:
    configs = [step.config for step in planned(environment.steps or (), table)] or [ConfigMergeConfig()]
    for config in configs:
        if not isinstance(config, ConfigMergeConfig):
            continue
        try:
            source = source_of(git, environment.update, commit, config)
        except (SourceRefused, InvalidRepositoryURL) as error:
            message = f"environment {environment.name} refuses it: {error.message}"
            yield Problem(subject, "spec.artifacts.gitCommit.repository", error.name, message, error.remedy)
            continue
        if git.layout == "branch" and _is_rendered(source, git, environment):
            message = (
                f"environment {environment.name} is rendered from branch {git.branch}, which has the commit already"
            )
            remedy = "any other Bundle brings it; name another directory in update.config.from, or another branch"
            yield Problem(subject, "spec.artifacts.gitCommit", "InSource", message, remedy)


def _is_rendered(source: ConfigSource, git: Git, environment: Environment) -> bool:
    """Return whether a commit is of the directory that an environment's own branch is rendered from."""
    same = repository_key(source.repository) == repository_key(git.url)
    there = clean_branch(source.branch), clean_path(source.directory)
    return same and there == (clean_branch(git.branch), clean_path(environment.directory))
