"""Find the fields of a document that a resource does not have, which the models pass over in silence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from kardinal.api.base import Model
from kardinal.api.refused import is_refused
from kardinal.objects.suggestions import nearest

__all__ = ["UnknownField", "unknown_fields"]


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field by its path, and the remedy: the nearest field there is, or all of them."""

    field: str
    remedy: str


def unknown_fields(model: type[Model], document: Any, *, field: str = "") -> Iterator[UnknownField]:
    """Walk a document along a model; what has the wrong shape is left to validation."""
    if not isinstance(document, dict):
        return
    known = {definition.alias or name: definition for name, definition in model.model_fields.items()}
    for key, value in document.items():
        path = f"{field}.{key}".removeprefix(".")
        definition = known.get(key)
        if definition is None:
            names = [name for name, each in known.items() if not is_refused(each)]
            near = nearest(str(key), names)
            yield UnknownField(path, f"did you mean {near}?" if near else f"known are {', '.join(names)}")
            continue
        for inner in _models(definition.annotation):
            if isinstance(value, list):
                for index, item in enumerate(value):
                    yield from unknown_fields(inner, item, field=f"{path}[{index}]")
            else:
                yield from unknown_fields(inner, value, field=path)


def _models(annotation: Any) -> Iterator[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
