"""Write the reference of the steps from their declarations: `python -m hack.docs.steps docs/steps.md`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from kardinal.models.base import Model
from kardinal.promotion.steps.builtin import BUILTIN_STEPS
from kardinal.promotion.steps.declaration import NoConfig, StepDeclaration

__all__ = ["reference"]

INTRODUCTION = """\
# Steps

Generated from the declarations of the steps by `make docs`.

An entry of `environments[].steps` names a step by `uses` and gives its input in `config`. An input that a step does not
take is refused with the nearest name when the Pipeline is read, before there is a Bundle. Paths are relative to the
environment's directory, and no step changes a file outside it. All edits of a promotion are one commit.

Paths into a document name keys and items: `image.tag`, `spec.template.spec.containers[name=app].image`, `items[0].x`,
and `labels."example.com/part-of"` for a key with a dot. Comments, quotes, order and line endings of a file stay.
"""

WORDS = {str: "text", int: "whole number", float: "number", bool: "boolean", Any: "any value"}


def reference() -> str:
    """Return the page `docs/steps.md`."""
    return INTRODUCTION + "".join(_section(step) for step in BUILTIN_STEPS.values())


def _section(step: StepDeclaration) -> str:
    about = step.about or f"{step.role.value.capitalize() if step.role else step.name}."
    parts = [f"\n## {step.name}\n\n{about}\n"]
    if step.config is not NoConfig:
        parts += _tables(step.config)
    if step.outputs:
        names = ", ".join(f"`{name}`" for name in step.outputs)
        parts.append(f"\nOutputs that later steps read: {names}.\n")
    if step.with_config is not None:
        parts += [f"\n{step.with_config.about}\n", *_tables(step.with_config.config)]
    return "".join(parts)


def _tables(config: type[Model]) -> Iterator[str]:
    """Yield the table of the fields of a config, then the tables of the models in it.

    If a field has no description, the docstring of the config comes first.
    """
    fields = list(config.model_fields.items())
    if not all(field.description for _, field in fields):
        yield f"\n{inspect.cleandoc(config.__doc__ or '')}\n"
    yield "\n| field | type | default | |\n|---|---|---|---|\n"
    for name, field in fields:
        key = field.alias or name
        words = _type(field.annotation)
        yield f"| `{key}` | {words} | {_default(field)} | {_one_line(field.description or '')} |\n"
    for inner in _models(config):
        yield f"\n{_title(inner)}: {_one_line(inspect.cleandoc(inner.__doc__ or ''))}\n"
        yield from _tables(inner)


def _models(config: type[Model]) -> Iterator[type[Model]]:
    for field in config.model_fields.values():
        yield from (found for found in _arguments(field.annotation) if _is_model(found))


def _arguments(annotation: Any) -> Iterator[Any]:
    yield annotation
    for argument in get_args(annotation):
        yield from _arguments(argument)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Model)


def _title(model: type[Model]) -> str:
    return f"**{re.sub(r'(?<!^)([A-Z])', lambda found: ' ' + found[1].lower(), model.__name__)}**"


def _type(annotation: Any) -> str:
    origin = get_origin(annotation)
    arguments = get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (Union, UnionType):
        named = dict.fromkeys(_type(argument) for argument in arguments if argument is not NoneType)
        return " or ".join(named)
    if origin is tuple:
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"mapping of {_type(arguments[1])}"
    if _is_model(annotation):
        return _title(annotation)[2:-2].lower()
    return WORDS.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    empty = field.default is PydanticUndefined or field.default is None or field.default == ()
    return "" if empty else f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference())
