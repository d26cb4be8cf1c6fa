"""Find durations in a stored object that exceed today's limit, because they were stored before it existed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, get_args

from kardinal.models.base import Model
from kardinal.objects.duration import LONGEST, DurationError, format_duration, read_duration

__all__ = ["overlong"]


def overlong(model: type[Model], document: Any, *, field: str = "") -> Iterator[str]:
    """Yield a message, with the field, for each duration longer than `LONGEST`.

    `model` is the model of the document.
    """
    if not isinstance(document, dict):
        return
    for name, definition in model.model_fields.items():
        key = definition.alias or name
        value = document.get(key)
        path = f"{field}.{key}".removeprefix(".")
        kinds = set(_kinds(definition.annotation))
        if timedelta in kinds and isinstance(value, str):
            if _is_overlong(value):
                limit = format_duration(LONGEST)
                yield f"{path} is longer than {limit} and counts as {limit}: write at most that"
            continue
        for inner in kinds:
            if issubclass(inner, Model):
                for place, item in _items(value, path):
                    yield from overlong(inner, item, field=place)


def _is_overlong(text: str) -> bool:
    try:
        return read_duration(text) > LONGEST
    except DurationError:
        return False


def _items(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        yield from ((f"{path}[{index}]", item) for index, item in enumerate(value))
    else:
        yield path, value


def _kinds(annotation: Any) -> Iterator[type]:
    if isinstance(annotation, type):
        yield annotation
    for argument in get_args(annotation):
        yield from _kinds(argument)
