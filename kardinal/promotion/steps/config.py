"""Read the config of a step: at once, or, if it has expressions, just before the step runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pydantic import ValidationError

from kardinal.objects.errors import KardinalError
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.steps.config_errors import described
from kardinal.promotion.steps.declaration import PlannedStep, StepConfig, StepDeclaration
from kardinal.promotion.steps.expressions import is_template, rendered

__all__ = ["InvalidConfig", "Unresolved", "planned_step", "resolved"]


class InvalidConfig(KardinalError):
    """A config that is invalid with the values of its expressions."""


class Unresolved(StepConfig):
    """The placeholder for a config whose expressions have no values yet."""


def planned_step(step: StepSpec, declaration: StepDeclaration) -> PlannedStep:
    """Return the planned form of a valid step; its config stays `Unresolved` if it has expressions."""
    config = step.config or {}
    if is_template(config):
        return PlannedStep(declaration, Unresolved(), step)
    return PlannedStep(declaration, declaration.config.model_validate(config), step)


def resolved(step: PlannedStep, scope: Mapping[str, object]) -> PlannedStep:
    """Return the step with the values of its expressions. Raises `ExpressionError` or `InvalidConfig`."""
    if not isinstance(step.config, Unresolved):
        return step
    values = rendered(step.spec.config or {}, scope)
    try:
        config = step.declaration.config.model_validate(values)
    except ValidationError as error:
        field, message = described(step.declaration, error.errors(include_url=False)[0])
        raise InvalidConfig(f"{field}: {message}") from None
    return replace(step, config=config)
