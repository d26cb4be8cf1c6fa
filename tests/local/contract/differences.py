"""Comparing two documents so that a person sees what differs: the first leaf, its path, both values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Difference", "difference_of_exchanges", "first_difference"]

_MISSING = "(nothing)"


@dataclass(frozen=True)
class Difference:
    """One leaf that is not the same; `request` is set where it belongs to an exchange."""

    path: str
    recorded: Any
    answered: Any
    request: str = ""

    def __str__(self) -> str:
        return (
            "the answers are not those of the recording\n"
            f"  request   {self.request}\n"
            f"  at        {self.path or 'the whole answer'}\n"
            f"  recorded  {self.recorded!r}\n"
            f"  answered  {self.answered!r}"
        )


def difference_of_exchanges(
    recorded: Sequence[Any], answered: Sequence[Any], *, time_passes: bool = False
) -> Difference | None:
    """The first difference of two tapes; a message that is marked loose is no part of the comparison.

    Managers are listed in the order of the second in which they wrote. Where `time_passes` between two requests, that
    order says how fast the machine was.
    """
    for number, (ours, theirs) in enumerate(zip(answered, recorded, strict=False)):
        pair = _without_loose(theirs), _without_loose(ours)
        if found := first_difference(*(map(_with_managers_sorted, pair) if time_passes else pair)):
            position = f"{theirs['request']}  ({number + 1} of {len(recorded)})"
            return Difference(found.path, found.recorded, found.answered, position)
    if len(recorded) != len(answered):
        longer = max(recorded, answered, key=len)[min(len(recorded), len(answered))]
        return Difference("number of requests", len(recorded), len(answered), longer["request"])
    return None


def first_difference(recorded: Any, answered: Any, path: str = "") -> Difference | None:
    """The first leaf that differs, in the order of sorted keys; 1, 1.0 and true are three values."""
    if type(recorded) is not type(answered):
        return Difference(path, recorded, answered)
    if isinstance(recorded, dict):
        for key in sorted({*recorded, *answered}):
            at = f"{path}.{key}" if path else key
            if key not in recorded or key not in answered:
                return Difference(at, recorded.get(key, _MISSING), answered.get(key, _MISSING))
            if found := first_difference(recorded[key], answered[key], at):
                return found
        return None
    if isinstance(recorded, list):
        for index in range(max(len(recorded), len(answered))):
            at = f"{path}[{index}]"
            if index >= min(len(recorded), len(answered)):
                pair = [values[index] if index < len(values) else _MISSING for values in (recorded, answered)]
                return Difference(at, *pair)
            if found := first_difference(recorded[index], answered[index], at):
                return found
        return None
    return None if recorded == answered else Difference(path, recorded, answered)


def _without_loose(exchange: dict[str, Any]) -> dict[str, Any]:
    if not exchange.get("loose") or not isinstance(body := exchange.get("body"), dict):
        return exchange
    body = body | {"message": ""}
    if "causes" in (details := body.get("details") or {}):
        causes = [cause | {"message": ""} for cause in details["causes"]]
        body["details"] = details | {"causes": causes}
    return exchange | {"body": body}


def _with_managers_sorted(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_managers_sorted(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _with_managers_sorted(member) for key, member in value.items()}
    if isinstance(entries := found.get("managedFields"), list):
        found["managedFields"] = sorted(entries, key=_manager)
    return found


def _manager(entry: dict[str, Any]) -> list[str]:
    return [str(entry.get(field)) for field in ("manager", "operation", "subresource", "apiVersion")]
