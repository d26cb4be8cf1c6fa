"""The fields that control a step: `if`, `timeout`, `retry`, `continueOnError`, `as`, and expressions in `config`.

The rules of a sequence must hold for every outcome of every condition. So a step that the proof depends on can neither
be skipped nor fail unnoticed: `if` is allowed for steps that edit files and for steps without a role, and
`continueOnError` only for steps without a role. If every edit is skipped, there is nothing to change, which counts as a
success.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import compress

from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.steps.custom import CustomConfig
from kardinal.promotion.steps.declaration import Role, StepDeclaration
from kardinal.promotion.steps.expressions import (
    EXPRESSIONS_LIMIT,
    ExpressionError,
    expression_problem,
    expressions_in,
    shown,
)
from kardinal.promotion.steps.problems import SequenceProblem

__all__ = ["control_problems", "expression_characters"]


def control_problems(steps: Sequence[StepSpec], declarations: Sequence[StepDeclaration]) -> Iterator[SequenceProblem]:
    """Yield the problems of the control fields of a sequence."""
    if expression_characters(steps) > EXPRESSIONS_LIMIT:
        yield SequenceProblem(0, "steps", f"the expressions have more than {EXPRESSIONS_LIMIT:,} characters together")
        return
    names = [step.output_name for step in steps]
    leaving = [declaration.role is not Role.EDIT for declaration in declarations]
    for index, (step, declaration) in enumerate(zip(steps, declarations, strict=True)):
        for field, message in (
            *_role_problems(step, declaration),
            *_name_problems(index, steps, declarations),
            *_expression_problems(step, list(compress(names[:index], leaving)), list(compress(names, leaving))),
        ):
            yield SequenceProblem(index, f"steps[{index}].{field}", message)


def expression_characters(steps: Iterable[StepSpec], conditions: Iterable[str] = ()) -> int:
    """Return the number of characters of all different expressions in `steps`, and in `conditions` of environments."""
    found = set(conditions)
    for step in steps:
        found |= {step.if_} if step.if_ else set()
        try:
            found |= {source for _, source in expressions_in(step.config or {})}
        except ExpressionError:
            continue
    return sum(map(len, found))


def _role_problems(step: StepSpec, declaration: StepDeclaration) -> Iterator[tuple[str, str]]:
    role = declaration.role
    if step.if_ is not None and role not in (None, Role.EDIT):
        yield (
            "if",
            f"{step.uses} cannot be left out: it {role.value}; `if` is for steps that edit files, or your own",
        )
    if step.continue_on_error and role is not None:
        yield "continueOnError", f"the proof rests on {step.uses}: it {role.value}; leave continueOnError out"
    if step.timeout is not None and step.timeout <= timedelta():
        yield "timeout", "must be longer than nothing"
    if step.timeout is not None and declaration.proves:
        yield "timeout", "a proof has its own time: set health.timeout"
    limit = (step.config or {}).get("timeout") if declaration.config is CustomConfig else None
    if limit is not None and step.timeout is not None:
        yield "config.timeout", "stands beside timeout, and both say how long the step may take; keep one"
    if isinstance(limit, str) and "${" in limit:
        yield "config.timeout", "must be there when the step is entered: write it without expressions"


def _name_problems(
    index: int, steps: Sequence[StepSpec], declarations: Sequence[StepDeclaration]
) -> Iterator[tuple[str, str]]:
    step = steps[index]
    name = steps[index].output_name
    for other, declaration in zip(steps[:index], declarations[:index], strict=True):
        # Edits have no outputs, so several edits of the same kind need no names.
        unnamed = step.as_ is None and other.as_ is None and declaration.role is Role.EDIT
        if other.output_name == name and not unnamed:
            yield "as", f"another step leaves its outputs as {name}; give each a name of its own"
            return


def _expression_problems(step: StepSpec, before: Sequence[str], all_names: Sequence[str]) -> Iterator[tuple[str, str]]:
    if step.if_ is not None and (problem := expression_problem(step.if_, before=before, all_names=all_names)):
        yield "if", problem
    try:
        found = list(expressions_in(step.config or {}))
    except ExpressionError as error:
        where, _, message = error.message.partition(": ")
        yield where, message
        return
    for path, source in found:
        if problem := expression_problem(source, before=before, all_names=all_names):
            yield f"config.{shown(path)}", problem
