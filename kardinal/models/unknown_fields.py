"""Find the fields of a document that its resource does not have, and which the models would silently ignore."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from kardinal.models.base import Model
from kardinal.models.refused import is_refused
from kardinal.objects.suggestions import nearest

__all__ = ["UnknownField", "unknown_fields"]


@dataclass(frozen=True, slots=True)
class UnknownField:
    """The path of an unknown field, and the remedy: the nearest known field, or the list of all."""

    field: str
    remedy: str


def unknown_fields(model: type[Model], document: Any, *, field: str = "") -> Iterator[UnknownField]:
    """Compare a document with a model. Values of the wrong type are ignored, because validation reports them."""
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
