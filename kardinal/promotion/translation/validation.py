"""Find the fields of a Pipeline or a Bundle that this version cannot execute, with their paths.

Unsupported choices, images without a version and invalid sequences of steps are found before the first node of a Graph
is made, so that no promotion fails halfway in Git.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kardinal.models.base import Model
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.artifacts import artifact_problems
from kardinal.promotion.api.health_fields import health_problems
from kardinal.promotion.api.names import ANNOTATION_PIN
from kardinal.promotion.api.pipeline import Environment, Git
from kardinal.promotion.api.supported import FIELD_VALUES, unsupported_choices
from kardinal.promotion.policy.binding import clean_branch, clean_path
from kardinal.promotion.policy.matching import GateTemplate
from kardinal.promotion.steps.config_merge import several_merges
from kardinal.promotion.steps.control import expression_characters
from kardinal.promotion.steps.expressions import EXPRESSIONS_LIMIT
from kardinal.promotion.steps.registry import Registry
from kardinal.promotion.steps.sequence import default_sequence, sequence_problems
from kardinal.promotion.steps.update_fields import update_problems
from kardinal.promotion.translation.conditional import when_fault
from kardinal.promotion.translation.errors import Problem
from kardinal.promotion.translation.repository import (
    Features,
    branch_problems,
    config_problems,
    input_problems,
    repository_problems,
    unknown_name,
)

__all__ = ["bundle_problems", "gate_problems", "ignored_fields", "pipeline_problems"]

MAX_TEAM_GATES = 256
MAX_TEAM_PATTERNS = 256
"""The limits per Pipeline: gate templates of its namespace that apply to it, and patterns in all of their `match`."""


def pipeline_problems(pipeline: Pipeline, features: Features) -> tuple[Problem, ...]:
    """Return a problem for each choice in a Pipeline that this version does not execute."""
    subject = f"Pipeline/{pipeline.metadata.name}"
    problems = [*_unsupported(pipeline.spec, subject=subject)]
    problems += repository_problems(pipeline.spec.git, subject=subject, features=features)
    problems += _own_branch_problems(pipeline.spec.git, pipeline.spec.environments, subject=subject)
    if pipeline.spec.git.layout == "directory":
        problems += _shared_directories(pipeline.spec.environments, subject=subject)
    steps = [step for environment in pipeline.spec.environments for step in environment.steps or ()]
    conditions = [environment.when for environment in pipeline.spec.environments if environment.when]
    if expression_characters(steps, conditions) > EXPRESSIONS_LIMIT:
        message = f"the expressions in when and steps have more than {EXPRESSIONS_LIMIT:,} characters together"
        problems.append(
            Problem(subject, "spec.environments", "TooManyExpressions", message, "use fewer or shorter ones")
        )
        return tuple(problems)
    for index, environment in enumerate(pipeline.spec.environments):
        field = f"spec.environments[{index}]"
        problems += _environment(environment, pipeline.spec.git, features.registry, subject=subject, field=field)
        where = f"{field}.update.config"
        git = pipeline.spec.git
        problems += config_problems(environment.update, git, subject=subject, field=where, features=features)
        listed = f"{field}.steps"
        problems += input_problems(environment.steps, git, subject=subject, field=listed, features=features)
    return tuple(problems)


def bundle_problems(bundle: Bundle) -> tuple[Problem, ...]:
    """Return a problem for each unsupported choice in a Bundle, and for artifacts that cannot be promoted."""
    subject = f"Bundle/{bundle.metadata.name}"
    problems = list(_unsupported(bundle.spec, subject=subject))
    problems += [
        Problem(subject, f"spec.{found.field}", found.reason, found.message, found.remedy)
        for found in artifact_problems(bundle.spec.type, bundle.spec.artifacts)
    ]
    if ANNOTATION_PIN in bundle.metadata.labels:
        field = f"metadata.labels[{ANNOTATION_PIN}]"
        message = "a label of this name pins nothing"
        remedy = f'write metadata.annotations: {{{ANNOTATION_PIN}: "true"}}'
        problems.append(Problem(subject, field, "PinIsAnAnnotation", message, remedy))
    return tuple(problems)


def ignored_fields(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    """Yield each field that has no effect because of other fields of the Pipeline, and a message with the remedy."""
    proposes = any(each.pr or each.approval == "pr-review" for each in pipeline.spec.environments)
    if pipeline.spec.git.pull_request is not None and not proposes:
        remedy = "set approval: pr-review or pr: true for one, or leave the field out"
        yield "spec.git.pullRequest", f"no environment has pull requests: {remedy}"


def gate_problems(gates: Iterable[GateTemplate]) -> tuple[Problem, ...]:
    """Return a problem if the gates of a team exceed the limits of a translation; org gates are not counted."""
    templates = [gate for gate in gates if gate.scope == "team"]
    patterns = sum(gate.binding.patterns for gate in templates)
    if len(templates) <= MAX_TEAM_GATES and patterns <= MAX_TEAM_PATTERNS:
        return ()
    message = (
        f"namespace {templates[0].namespace} has {len(templates)} gates with {patterns} patterns; "
        f"at most {MAX_TEAM_GATES} with {MAX_TEAM_PATTERNS} are looked at for a Pipeline"
    )
    return (Problem("PolicyGate", "spec.match", "TooManyGates", message, "delete some of them"),)


def _unsupported(model: Model, *, subject: str) -> Iterator[Problem]:
    for choice in unsupported_choices(model, field="spec"):
        yield Problem(subject, choice.field, "NotAvailable", choice.message, choice.remedy)


def _shared_directories(environments: Sequence[Environment], *, subject: str) -> Iterator[Problem]:
    """Yield a problem for environments with the same directory: each would overwrite the files of the other."""
    first: dict[str, int] = {}
    for index, environment in enumerate(environments):
        path = clean_path(environment.directory)
        before = first.setdefault(path, index)
        # Two environments of the same name have their own error.
        if environments[before].name != environment.name:
            message = f"spec.environments[{before}].path is the same directory, {path}"
            remedy = "give each environment a directory of its own"
            yield Problem(subject, f"spec.environments[{index}].path", "DuplicatePath", message, remedy)


def _environment(
    environment: Environment, git: Git, registry: Registry, *, subject: str, field: str
) -> Iterator[Problem]:
    if environment.when is not None and (fault := when_fault(environment.when)):
        yield Problem(subject, f"{field}.when", "InvalidWhen", fault)
    adapter = environment.health.type
    if adapter is not None and adapter not in registry.adapters:
        yield unknown_name(subject, f"{field}.health.type", adapter, registry.adapters)
    for place, message in health_problems(environment.health, delegate=environment.delivery.delegate):
        yield Problem(subject, f"{field}.health.{place}", "InvalidHealth", message)
    capabilities = registry.providers.get(git.provider)
    steps = environment.steps
    if steps is None:
        if environment.update.strategy not in FIELD_VALUES["Update", "strategy"]:
            return
        steps = default_sequence(
            approval=environment.approval,
            pr=environment.pr,
            strategy=environment.update.strategy,
            layout=git.layout,
        )
    if capabilities is None:
        return
    for problem in sequence_problems(
        steps, approval=environment.approval, pr=environment.pr, capabilities=capabilities, table=registry.steps
    ):
        yield Problem(subject, f"{field}.{problem.field}", "InvalidSequence", problem.message)
    for place, message in update_problems(environment.update, steps, registry.steps):
        yield Problem(subject, f"{field}.{place}", "InvalidUpdate", message)


def _own_branch_problems(git: Git, environments: Sequence[Environment], *, subject: str) -> Iterator[Problem]:
    """Yield the problems of environments that cannot be deployed from the branches that they name."""
    taken = {_folded(git.branch): "spec.git.branch"}
    for index, environment in enumerate(environments):
        field = f"spec.environments[{index}].branch"
        branch = environment.target_branch(git)
        if git.layout != "branch":
            if environment.branch is not None:
                message = "an environment has a branch of its own with layout: branch alone"
                yield Problem(subject, field, "NotAvailable", message, "set git.layout: branch, or leave it out")
            continue
        yield from branch_problems(branch, subject=subject, field=field)
        folded = _folded(branch)
        other = next((where for name, where in taken.items() if _collide(folded, name)), None)
        if other is not None:
            message = f"{branch} is the branch of {other}, or one of them would be a directory of the other"
            yield Problem(subject, field, "DuplicateBranch", message, "give each environment a branch of its own")
        taken.setdefault(folded, field)
        if twice := several_merges(environment.steps or ()):
            yield Problem(subject, f"spec.environments[{index}].steps", "InvalidSequence", twice, "keep one")


def _folded(branch: str) -> str:
    """Return the form in which branches are compared: some file systems do not distinguish upper and lower case."""
    return clean_branch(branch).casefold()


def _collide(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
