"""Judge the health of a stamped object by the rule of its template."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kardinal.objects import JsonObject
from kardinal.objects.conditions import Truth, find_condition
from kardinal_supplychain.api.kinds import CLUSTER_TEMPLATE
from kardinal_supplychain.api.templates import HealthMatches, HealthRule, MultiMatch, TemplateSpec
from kardinal_supplychain.blueprints.select import field_text, meets_field
from kardinal_supplychain.jsonpath import PathError, parse_path

__all__ = ["StampedHealth", "judge_health", "stated_condition"]


@dataclass(frozen=True, slots=True)
class StampedHealth:
    """The status, reason and message of the condition Healthy."""

    status: Truth
    reason: str
    message: str = ""


def judge_health(
    spec: TemplateSpec, *, template_kind: str, stamped: JsonObject | None, has_outputs: bool
) -> StampedHealth:
    """Return the health of a stamped object, which is None if there is none yet.

    Without a rule an object is healthy once it has its outputs; that of a ClusterTemplate, which has none, always; and
    a run of the lifecycle `tekton` by its condition Succeeded.
    """
    rule = spec.health_rule
    if rule is None and spec.lifecycle == "tekton":
        rule = HealthRule(single_condition_type="Succeeded")
    if stamped is None:
        return StampedHealth("Unknown", "NoResource")
    if rule is None:
        if template_kind == CLUSTER_TEMPLATE.kind:
            return StampedHealth("True", "AlwaysHealthy")
        return (
            StampedHealth("True", "OutputsAvailable") if has_outputs else StampedHealth("Unknown", "OutputNotAvailable")
        )
    if rule.always_healthy is not None:
        return StampedHealth("True", "AlwaysHealthy")
    if rule.single_condition_type is not None:
        return _of_condition(rule.single_condition_type, stamped)
    return _of_matches(rule.multi_match, stamped) if rule.multi_match else StampedHealth("Unknown", "Unknown")


def _of_condition(type_: str, stamped: JsonObject) -> StampedHealth:
    status, message = stated_condition(type_, stamped)
    reason = f"{type_}Condition"
    if status == "True":
        return StampedHealth("True", reason, message)
    return StampedHealth("False", reason, message) if status == "False" else StampedHealth("Unknown", reason, message)


def stated_condition(type_: str, stamped: JsonObject) -> tuple[str | None, str]:
    """Return status and message of a condition; None and no message if the object does not have it."""
    status = stamped.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    entries = [entry for entry in conditions if isinstance(entry, dict)] if isinstance(conditions, list) else []
    found = find_condition({"conditions": entries}, type_)
    return (str(found.get("status")), str(found.get("message") or "")) if found else (None, "")


def _of_matches(matches: MultiMatch, stamped: JsonObject) -> StampedHealth:
    for met in _met(matches.unhealthy, stamped):
        if met is not None:
            return StampedHealth("False", met.reason, met.message)
    healthy = list(_met(matches.healthy, stamped))
    if healthy and (first := healthy[0]) is not None and None not in healthy:
        return StampedHealth("True", first.reason, first.message)
    return StampedHealth("Unknown", "NoMatchesFulfilled")


@dataclass(frozen=True, slots=True)
class _Met:
    reason: str
    message: str


def _met(matches: HealthMatches, stamped: JsonObject) -> Iterator[_Met | None]:
    """Yield for each requirement why it is met; None if it is not."""
    for wanted in matches.match_conditions:
        status, message = stated_condition(wanted.type, stamped)
        said = f"condition status: {status}, message: {message}"
        yield _Met("MatchedCondition", said) if status == wanted.status else None
    for field in matches.match_fields:
        try:
            is_met = meets_field(field, stamped)
        except PathError:
            is_met = False
        said = f"field value: {_text(field.key, stamped)}, message: {_text(field.message_path, stamped)}"
        yield _Met("MatchedField", said) if is_met else None


def _text(path: str | None, stamped: JsonObject) -> str:
    """Return the value at a path as text; empty if there is none."""
    if not path:
        return ""
    try:
        return field_text(parse_path(path).one(stamped))
    except PathError:
        return ""
