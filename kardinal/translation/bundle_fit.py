"""Hold a Bundle against the environments that it goes to: whether each takes all that it brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kardinal.api import Bundle
from kardinal.api.bundle import GitCommit
from kardinal.api.pipeline import Environment, Git
from kardinal.api.repository_url import InvalidRepositoryURL
from kardinal.steps.config_merge import ConfigMergeConfig, SourceRefused, source_of
from kardinal.steps.sequence import StepTable, planned, without_taker
from kardinal.translation.errors import Problem

__all__ = ["fit_problems"]


def fit_problems(bundle: Bundle, git: Git, environments: Iterable[Environment], table: StepTable) -> list[Problem]:
    """Return why environments would leave out what a Bundle brings, or may not take it; their steps have no problem."""
    subject, artifacts = f"Bundle/{bundle.metadata.name}", bundle.spec.artifacts
    problems = []
    if artifacts.git_commit is not None and git.layout == "branch":
        message = "a commit cannot be merged with git.layout: branch in this version"
        remedy = "commit to the source branch, or use layout: directory"
        return [Problem(subject, "spec.artifacts.gitCommit", "NotAvailable", message, remedy)]
    for environment in environments:
        for kind in without_taker(environment.steps, table, artifacts.kinds) if environment.steps else ():
            message = f"no step of environment {environment.name} brings it"
            remedy = "add one to its steps in the Pipeline, or leave them out"
            problems.append(Problem(subject, f"spec.artifacts.{kind}", "InvalidSequence", message, remedy))
        if artifacts.git_commit is not None:
            problems += _source_problems(subject, artifacts.git_commit, git, environment, table)
    return problems


def _source_problems(
    subject: str, commit: GitCommit, git: Git, environment: Environment, table: StepTable
) -> Iterator[Problem]:
    configs = [step.config for step in planned(environment.steps or (), table)] or [ConfigMergeConfig()]
    for config in configs:
        if not isinstance(config, ConfigMergeConfig):
            continue
        try:
            source_of(git, environment.update, commit, config)
        except (SourceRefused, InvalidRepositoryURL) as error:
            message = f"environment {environment.name} refuses it: {error.message}"
            yield Problem(subject, "spec.artifacts.gitCommit.repository", error.name, message, error.remedy)
