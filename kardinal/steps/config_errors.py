"""Errors in the config of a step, with the field at fault and the nearest key that the step takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import ValidationError

from kardinal.api.pipeline import StepSpec
from kardinal.objects.suggestions import nearest
from kardinal.steps.declaration import StepConfig, StepDeclaration

__all__ = ["config_errors", "models_in"]


def config_errors(declaration: StepDeclaration, step: StepSpec) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for everything wrong; the field is relative to the step, such as `config.file`."""
    try:
        declaration.config.model_validate(step.config or {})
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
            yield f"config{place}", _message(declaration, detail)


def models_in(annotation: Any) -> Iterator[type[StepConfig]]:
    """Yield the models that a field is made of."""
    if isinstance(annotation, type) and issubclass(annotation, StepConfig):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def _message(declaration: StepDeclaration, detail: Mapping[str, Any]) -> str:
    if detail["type"] != "extra_forbidden":
        return f"{detail['msg']} (input of {declaration.name})"
    known = _keys_at(declaration.config, detail["loc"][:-1])
    if not known:
        return f"{declaration.name} takes no config; remove it"
    near = nearest(str(detail["loc"][-1]), known)
    advice = f"did you mean {near!r}?" if near else f"it takes {', '.join(known)}"
    return f"{declaration.name} has no such input; {advice}"


def _keys_at(config: type[StepConfig], place: Sequence[str | int]) -> list[str]:
    """Return the keys that the config takes at a place inside it."""
    for part in place:
        fields = ((field.alias or name, field) for name, field in config.model_fields.items())
        inner = next((field.annotation for name, field in fields if name == part), None)
        config = next(models_in(inner), config)
    return [field.alias or name for name, field in config.model_fields.items()]
