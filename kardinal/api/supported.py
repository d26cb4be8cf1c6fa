"""Find the choices of a resource that this version does not execute, with the path of each field.

The table is `kardinal.objects.supported`. A value that is added to a model and to nothing else is therefore refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kardinal.api.base import Model
from kardinal.objects.supported import FIELD_VALUES

__all__ = ["UnsupportedChoice", "unsupported_choices"]


@dataclass(frozen=True, slots=True)
class UnsupportedChoice:
    """A field with a value that is not executed; `supported` are those that are, None for leaving the field out."""

    field: str
    value: object
    supported: tuple[object, ...]

    @property
    def message(self) -> str:
        shown = f"{self.value!r} " if isinstance(self.value, str) else ""
        return f"{shown}is not available in this version"

    @property
    def remedy(self) -> str:
        return f"use {' or '.join(self._named)}" if self._named else "leave it out"

    @property
    def _named(self) -> list[str]:
        return [choice for choice in self.supported if isinstance(choice, str)]


def unsupported_choices(model: Model, *, field: str) -> Iterator[UnsupportedChoice]:
    """Walk a model and everything in it; `field` is the path of the model itself, such as `spec`."""
    for name, definition in type(model).model_fields.items():
        value = getattr(model, name)
        path = f"{field}.{definition.alias or name}".removeprefix(".")
        supported = FIELD_VALUES.get((type(model).__name__, name))
        if supported is not None and value not in supported:
            yield UnsupportedChoice(path, value, supported)
            continue
        for inner_path, inner in _models(value, path):
            yield from unsupported_choices(inner, field=inner_path)


def _models(value: Any, path: str) -> Iterator[tuple[str, Model]]:
    if isinstance(value, Model):
        yield path, value
    elif isinstance(value, tuple):
        yield from ((f"{path}[{index}]", item) for index, item in enumerate(value) if isinstance(item, Model))
