"""The wording of validation errors, for code that has the path of a field as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.naming import label_value_problems, qualified_name_problems
from kardinal_local.plane.schemas import causes

__all__ = [
    "IMMUTABLE",
    "Check",
    "duplicate",
    "forbidden",
    "immutable",
    "in_go",
    "invalid",
    "label_faults",
    "matches",
    "named",
    "non_negative",
    "not_found",
    "one_of",
    "required",
    "selector_faults",
]

Check = Callable[[JsonObject, JsonObject | None], Iterable[Cause]]
IMMUTABLE = "field is immutable"


def in_go(struct: JsonObject) -> str:
    """A struct as the real server shows one: by Go's names, in Go's order."""
    return orjson.dumps(struct).decode()


def required(path: str, detail: str = "") -> Cause:
    return causes.required(path, detail)


def invalid(path: str, value: Any, detail: str) -> Cause:
    return causes.invalid(path, value, detail)


def forbidden(path: str, detail: str) -> Cause:
    return causes.forbidden(path, detail)


def duplicate(path: str, value: Any) -> Cause:
    return causes.duplicate(path, value)


def not_found(path: str, value: str) -> Cause:
    return Cause("FieldValueNotFound", path, f'Not found: "{value}"')


def one_of(path: str, value: Any, supported: Sequence[str]) -> Iterator[Cause]:
    """A fault unless the value is one of those that there are; nothing is no value."""
    if value is not None and value not in supported:
        yield causes.not_supported(path, value, list(supported))


def named(path: str, value: str, rule: Callable[[str], list[str]]) -> Iterator[Cause]:
    """The faults of a name, of which the empty one is just missing."""
    if not value:
        yield required(path)
    else:
        yield from (invalid(path, value, problem) for problem in rule(value))


def non_negative(path: str, value: Any) -> Iterator[Cause]:
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")


def immutable(path: str, new: Any, old: Any) -> Iterator[Cause]:
    if new != old:
        yield invalid(path, new, IMMUTABLE)


def label_faults(path: str, labels: JsonObject) -> Iterator[Cause]:
    for key, value in labels.items():
        yield from (invalid(path, key, problem) for problem in qualified_name_problems(key))
        yield from (invalid(path, value, problem) for problem in label_value_problems(value))


def selector_faults(path: str, selector: JsonObject) -> Iterator[Cause]:
    """What is wrong with a label selector."""
    yield from label_faults(f"{path}.matchLabels", selector.get("matchLabels", {}))
    for index, one in enumerate(selector.get("matchExpressions", ())):
        at = f"{path}.matchExpressions[{index}]"
        match one["operator"]:
            case "In" | "NotIn":
                if not one.get("values"):
                    yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            case "Exists" | "DoesNotExist":
                if one.get("values"):
                    yield forbidden(
                        f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                    )
            case operator:
                yield invalid(f"{at}.operator", operator, "not a valid selector operator")
        yield from (invalid(f"{at}.key", one["key"], problem) for problem in qualified_name_problems(one["key"]))


def matches(selector: JsonObject, labels: JsonObject) -> bool:
    """Whether a label selector chooses an object with these labels."""
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items()) and all(
        _holds(one, labels) for one in selector.get("matchExpressions", ())
    )


def _holds(requirement: JsonObject, labels: JsonObject) -> bool:
    value, values = labels.get(requirement["key"]), requirement.get("values", ())
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
    return value is None
