"""The values of the expressions of a sequence, from the status of its promotion.

An expression of a step can read only the outputs of earlier steps, so it has the same value whenever the step, or its
edit, is run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.steps.config import resolved
from kardinal.promotion.steps.declaration import PlannedStep
from kardinal.promotion.steps.expressions import ExpressionError, holds, scope_of

__all__ = ["SequenceValues", "foreseen", "foreseen_input"]


class SequenceValues:
    """The expressions of one promotion."""

    def __init__(self, step: PromotionStep, bundle: Bundle, sequence: Sequence[PlannedStep]) -> None:
        self._step = step
        self._bundle = bundle
        self._sequence = sequence

    def left_out(self, index: int, status: PromotionStepStatus) -> tuple[str | None, str | None]:
        """Return (why the step is skipped, why its condition cannot be evaluated); each of them may be None.

        This is decided before the step starts.
        """
        condition = self._sequence[index].spec.if_
        if condition is None or index < len(status.steps):
            return None, None
        try:
            return (None if holds(condition, self._scope(index, status)) else f"left out: {condition} is false"), None
        except ExpressionError as error:
            if error.transient:
                raise
            return None, str(error)

    def resolved(self, index: int, status: PromotionStepStatus) -> list[PlannedStep]:
        """Return the sequence with the configs up to `index` resolved. Raises the errors of `config.resolved`."""
        skipped = {place for place, progress in enumerate(status.steps) if progress.state == "Skipped"}
        return [
            resolved(step, self._scope(place, status)) if place <= index and place not in skipped else step
            for place, step in enumerate(self._sequence)
        ]

    def _scope(self, index: int, status: PromotionStepStatus) -> Mapping[str, object]:
        before = {step.spec.output_name for step in self._sequence[:index]}
        outputs = {name: left for name, left in (status.outputs or {}).items() if name in before}
        return scope_of(self._step, self._bundle, outputs)


def foreseen(
    step: PromotionStep, bundle: Bundle, sequence: Sequence[PlannedStep], outputs: Mapping[str, Mapping[str, str]]
) -> list[PlannedStep]:
    """Return the sequence as it would run with `outputs` of the steps that open sources, without skipped edits.

    Raises `ExpressionError` or `InvalidConfig` if that depends on the outputs of a step that has not run.
    """
    scope = scope_of(step, bundle, outputs)
    found = list[PlannedStep]()
    for each in sequence:
        if each.declaration.edit is None:
            found.append(each)
            continue
        with _foreseeable(each):
            if each.spec.if_ is None or holds(each.spec.if_, scope):
                found.append(resolved(each, scope))
    return found


def foreseen_input(
    step: PromotionStep, bundle: Bundle, planned: PlannedStep, outputs: Mapping[str, Mapping[str, str]]
) -> PlannedStep:
    """Return an input step with all values; `outputs` and errors as for `foreseen`."""
    with _foreseeable(planned):
        return resolved(planned, scope_of(step, bundle, outputs))


@contextmanager
def _foreseeable(planned: PlannedStep) -> Iterator[None]:
    try:
        yield
    except ExpressionError as error:
        remedy = "What a step leaves is known when it has run, and not before"
        raise ExpressionError(f"{planned.name}: {error.message}", remedy=remedy) from error
