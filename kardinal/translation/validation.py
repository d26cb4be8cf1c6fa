"""Find what this version cannot execute of a Pipeline or a Bundle, with the path of each field.

An unsupported choice, an image that names no version and a sequence of steps that makes no sense are all found before
the first node of a Graph is made, so that nothing is written to Git.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kardinal.api import Bundle, Model, Pipeline
from kardinal.api.artifacts import artifact_problems
from kardinal.api.names import ANNOTATION_PIN
from kardinal.api.pipeline import Environment, Git
from kardinal.api.supported import unsupported_choices
from kardinal.objects.supported import FIELD_VALUES
from kardinal.policy.binding import clean_path
from kardinal.policy.matching import GateTemplate
from kardinal.steps.control import expression_characters
from kardinal.steps.expressions import EXPRESSIONS_LIMIT
from kardinal.steps.health_fields import health_problems
from kardinal.steps.registry import Registry
from kardinal.steps.sequence import default_sequence, sequence_problems
from kardinal.steps.update_fields import update_problems
from kardinal.translation.branches import own_branch_problems
from kardinal.translation.errors import Problem
from kardinal.translation.repository import (
    Features,
    config_problems,
    input_problems,
    repository_problems,
    unknown_name,
)

__all__ = ["bundle_problems", "gate_problems", "pipeline_problems"]

MAX_TEAM_GATES = 256
MAX_TEAM_PATTERNS = 256
"""Gate templates of one namespace that apply to a Pipeline, and patterns in their `match`, together."""


def pipeline_problems(pipeline: Pipeline, features: Features) -> tuple[Problem, ...]:
    """Return every choice of a Pipeline that this version does not execute."""
    subject = f"Pipeline/{pipeline.metadata.name}"
    problems = [*_unsupported(pipeline.spec, subject=subject)]
    problems += repository_problems(pipeline.spec.git, subject=subject, features=features)
    problems += own_branch_problems(pipeline.spec.git, pipeline.spec.environments, subject=subject)
    if pipeline.spec.git.layout == "directory":
        problems += _shared_directories(pipeline.spec.environments, subject=subject)
    steps = [step for environment in pipeline.spec.environments for step in environment.steps or ()]
    if expression_characters(steps) > EXPRESSIONS_LIMIT:
        message = f"the expressions in steps have more than {EXPRESSIONS_LIMIT:,} characters together"
        problems.append(
            Problem(subject, "spec.environments", "TooManyExpressions", message, "use fewer or shorter ones")
        )
        return tuple(problems)
    for index, environment in enumerate(pipeline.spec.environments):
        field = f"spec.environments[{index}]"
        problems += _environment(environment, pipeline.spec.git, features.registry, subject=subject, field=field)
        where, git = f"{field}.update.config", pipeline.spec.git
        problems += config_problems(environment.update, git, subject=subject, field=where, features=features)
        listed = f"{field}.steps"
        problems += input_problems(environment.steps, git, subject=subject, field=listed, features=features)
    return tuple(problems)


def bundle_problems(bundle: Bundle) -> tuple[Problem, ...]:
    """Return every choice of a Bundle that this version does not execute, and artifacts that cannot be promoted."""
    subject = f"Bundle/{bundle.metadata.name}"
    problems = list(_unsupported(bundle.spec, subject=subject))
    problems += [
        Problem(subject, f"spec.{found.field}", found.reason, found.message, found.remedy)
        for found in artifact_problems(bundle.spec.type, bundle.spec.artifacts)
    ]
    if ANNOTATION_PIN in bundle.metadata.labels:
        field, message = f"metadata.labels[{ANNOTATION_PIN}]", "a label of this name pins nothing"
        remedy = f'write metadata.annotations: {{{ANNOTATION_PIN}: "true"}}'
        problems.append(Problem(subject, field, "PinIsAnAnnotation", message, remedy))
    return tuple(problems)


def gate_problems(gates: Iterable[GateTemplate]) -> tuple[Problem, ...]:
    """Return why the gates of a team are more than a translation compares; the organisation's are not counted."""
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
    """Find environments that write to one directory: each would overwrite what the other has proven."""
    first: dict[str, int] = {}
    for index, environment in enumerate(environments):
        path = clean_path(environment.directory)
        before = first.setdefault(path, index)
        # Two environments of one name are refused as such.
        if environments[before].name != environment.name:
            message = f"spec.environments[{before}].path is the same directory, {path}"
            remedy = "give each environment a directory of its own"
            yield Problem(subject, f"spec.environments[{index}].path", "DuplicatePath", message, remedy)


def _environment(
    environment: Environment, git: Git, registry: Registry, *, subject: str, field: str
) -> Iterator[Problem]:
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
