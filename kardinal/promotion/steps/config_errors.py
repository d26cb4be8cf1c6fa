"""Errors in the config of a step, with the field and the nearest key that the step takes.

Expressions get their values just before the step runs. Before that only literal values can be validated, so an error at
the place of an expression, above it or below it, is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kardinal.objects.suggestions import nearest
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.steps.declaration import StepConfig, StepDeclaration
from kardinal.promotion.steps.expressions import ExpressionError, Path, expressions_in, shown

__all__ = ["config_errors", "described", "models_in"]


def config_errors(declaration: StepDeclaration, step: StepSpec) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for each error; the field is relative to the step, such as `config.file`."""
    try:
        open_paths = [path for path, _ in expressions_in(step.config or {})]
        declaration.config.model_validate(step.config or {})
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            if detail["type"] == "extra_forbidden" or not _is_open(detail["loc"], open_paths):
                yield described(declaration, detail)
    except ExpressionError:
        # `control.control_problems` reports wrong expressions.
        return


def described(declaration: StepDeclaration, detail: ErrorDetails) -> tuple[str, str]:
    """Return the field and the message of one error of a config."""
    return ".".join(filter(None, ("config", shown(detail["loc"])))), _message(declaration, detail)


def _is_open(location: Path, open_paths: Iterable[Path]) -> bool:
    """Return whether an error at `location` may come from an expression: at this place, above it or below it."""
    return any(path[: len(location)] == location or location[: len(path)] == path for path in open_paths)


def models_in(annotation: Any) -> Iterator[type[StepConfig]]:
    """Yield the `StepConfig` classes in the annotation of a field."""
    if isinstance(annotation, type) and issubclass(annotation, StepConfig):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def _message(declaration: StepDeclaration, detail: ErrorDetails) -> str:
    if detail["type"] != "extra_forbidden":
        return f"{detail['msg']} (input of {declaration.name})"
    known = _keys_at(declaration.config, detail["loc"][:-1])
    if not known:
        return f"{declaration.name} takes no config; remove it"
    near = nearest(str(detail["loc"][-1]), known)
    advice = f"did you mean {near!r}?" if near else f"it takes {', '.join(known)}"
    return f"{declaration.name} has no such input; {advice}"


def _keys_at(config: type[StepConfig], place: Sequence[str | int]) -> list[str]:
    """Return the keys that a config takes at `place`, such as `("values", 0)`."""
    for part in place:
        fields = ((field.alias or name, field) for name, field in config.model_fields.items())
        inner = next((field.annotation for name, field in fields if name == part), None)
        config = next(models_in(inner), config)
    return [field.alias or name for name, field in config.model_fields.items()]
