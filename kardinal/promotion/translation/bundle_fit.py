"""Check that each environment on the route of a Bundle takes all of its artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import ConfigurationCommit
from kardinal.promotion.api.health_fields import names_proof
from kardinal.promotion.api.pipeline import Environment, Git
from kardinal.promotion.policy.binding import clean_branch, clean_path
from kardinal.promotion.steps.config_source import ConfigMergeConfig, ConfigSource, SourceRefused, source_of
from kardinal.promotion.steps.sequence import StepTable, planned, without_taker
from kardinal.promotion.translation.errors import Problem
from kardinal.tree.repository_url import InvalidRepositoryURL, repository_key

__all__ = ["fit_problems"]


def fit_problems(bundle: Bundle, git: Git, environments: Iterable[Environment], table: StepTable) -> list[Problem]:
    """Return a problem for each artifact of `bundle` that an environment would ignore or refuse.

    The steps of the environments must be valid already.
    """
    subject = f"Bundle/{bundle.metadata.name}"
    artifacts = bundle.spec.artifacts
    problems = []
    for environment in environments:
        for kind in without_taker(environment.steps, table, artifacts.kinds) if environment.steps else ():
            message = f"no step of environment {environment.name} brings it"
            remedy = "add one to its steps in the Pipeline, or leave them out"
            problems.append(Problem(subject, f"spec.artifacts.{kind}", "InvalidSequence", message, remedy))
        if artifacts.git_commit is not None:
            problems += _source_problems(subject, artifacts.git_commit, git, environment, table)
        if artifacts.charts and not artifacts.images and not names_proof(environment.health):
            message = (
                f"nothing is named that proves it in environment {environment.name}: a chart has no image to look for"
            )
            remedy = "set health.resource, whose workload is then rolled out, or another health.type"
            problems.append(Problem(subject, "spec.artifacts.charts", "NoProof", message, remedy))
    return problems


def _source_problems(
    subject: str, commit: ConfigurationCommit, git: Git, environment: Environment, table: StepTable
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
    """Return whether `source` is the directory that the environment's own branch is rendered from."""
    same = repository_key(source.repository) == repository_key(git.url)
    there = clean_branch(source.branch), clean_path(source.directory)
    return same and there == (clean_branch(git.branch), clean_path(environment.directory))
