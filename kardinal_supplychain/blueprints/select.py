"""Select by labels and fields: all requirements must hold, and of several selectors the one with the most wins.

A selector without requirements selects nothing. Two that win with the same number are a tie, which the caller reports:
nothing is stamped then, because either choice would be a guess.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kardinal.objects import JsonObject, labels_of
from kardinal.objects.label_selectors import meets
from kardinal_supplychain.api.blueprints import BlueprintSpec, OptionSelector
from kardinal_supplychain.api.fields import FieldRequirement, LabelRequirement
from kardinal_supplychain.blueprints.owner import owner_document
from kardinal_supplychain.jsonpath import NoResult, PathError, parse_path

__all__ = ["Failing", "OwnerSelector", "SelectorVerdict", "field_text", "judge", "meets_field", "winners"]


class _FieldRule(Protocol):
    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class OwnerSelector:
    """The requirements of a blueprint, or of an option."""

    labels: Mapping[str, str]
    expressions: tuple[LabelRequirement, ...]
    fields: tuple[FieldRequirement, ...]

    @classmethod
    def of_blueprint(cls, spec: BlueprintSpec) -> OwnerSelector:
        return cls(spec.selector, spec.selector_match_expressions, spec.selector_match_fields)

    @classmethod
    def of_option(cls, selector: OptionSelector) -> OwnerSelector:
        return cls(selector.match_labels, selector.match_expressions, selector.match_fields)

    @property
    def size(self) -> int:
        """Return the number of requirements, which is the score of a selector that matches."""
        return len(self.labels) + len(self.expressions) + len(self.fields)


@dataclass(frozen=True, slots=True)
class Failing:
    """A requirement that does not hold; `error` says why it cannot be evaluated, if it cannot."""

    requirement: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class SelectorVerdict:
    """The score of a selector for an owner, 0 if it does not match, and the first requirement that failed."""

    score: int
    failing: Failing | None = None


def judge(selector: OwnerSelector, owner: JsonObject) -> SelectorVerdict:
    """Return the verdict of a selector on an owner."""
    failing = next(_failing(selector, owner), None)
    return SelectorVerdict(0, failing) if failing else SelectorVerdict(selector.size)


def winners(verdicts: Sequence[SelectorVerdict]) -> tuple[int, ...]:
    """Return the indexes of the verdicts with the highest score; none if nothing matches, several in a tie."""
    best = max((verdict.score for verdict in verdicts), default=0)
    return tuple(index for index, verdict in enumerate(verdicts) if best and verdict.score == best)


def meets_field(rule: _FieldRule, document: object) -> bool:
    """Return whether a field meets a requirement. Raises `PathError`.

    A field that is not there meets `DoesNotExist` alone, not even `NotIn`; one that is null meets both.
    """
    try:
        value = parse_path(rule.key).one(document)
    except NoResult:
        return rule.operator == "DoesNotExist"
    match rule.operator:
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "In":
            return value is not None and field_text(value) in rule.values
        case _:
            return value is None or field_text(value) not in rule.values


def field_text(value: Any) -> str:
    """Return the text that a value is compared as: a string itself, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _failing(selector: OwnerSelector, owner: JsonObject) -> Iterator[Failing]:
    labels = labels_of(owner)
    for key, value in selector.labels.items():
        if labels.get(key) != value:
            yield Failing(f"{key} = {value}")
    for requirement in selector.expressions:
        if not meets(labels, (requirement.key, requirement.operator, requirement.values)):
            yield Failing(_described(requirement))
    document = owner_document(owner)
    context = {**document, str(document["kind"]).lower(): document}
    for rule in selector.fields:
        try:
            if not meets_field(rule, context):
                yield Failing(_described(rule))
        except PathError as error:
            yield Failing(_described(rule), str(error))


def _described(rule: _FieldRule) -> str:
    values = f" ({', '.join(rule.values)})" if rule.values else ""
    return f"{rule.key} {rule.operator}{values}"
