"""The conditions of resources and owners: their types, reasons and messages, and how several add up to Ready.

Reasons and messages are those of Cartographer, because programs of its users read them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kardinal.objects import JsonObject
from kardinal.objects.conditions import Truth, set_condition
from kardinal_supplychain.api.kinds import DELIVERABLE, WORKLOAD

__all__ = [
    "Finding",
    "OwnerWords",
    "TemplateName",
    "condition_not_met",
    "deployment_failed",
    "duplicate_object",
    "matched_several",
    "missing_value",
    "not_matched",
    "ready",
    "rejected",
    "resources_healthy",
    "resources_submitted",
    "stamp_failure",
    "submitted",
    "templates_not_found",
    "waiting_for_input",
    "with_conditions",
    "words_of",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition without its times."""

    type: str
    status: Truth
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class OwnerWords:
    """The words that conditions of an owner use: its own kind, and that of its blueprint."""

    owner: str
    blueprint: str
    in_reason: str

    @property
    def ready_type(self) -> str:
        """Return the type of the condition that says whether the owner has a blueprint."""
        return f"{self.in_reason}Ready"


_WORST_FIRST: Sequence[Truth] = ("False", "Unknown", "True")

_WORDS: Mapping[str, OwnerWords] = {
    WORKLOAD.kind: OwnerWords("workload", "supply chain", "SupplyChain"),
    DELIVERABLE.kind: OwnerWords("deliverable", "delivery", "Delivery"),
}


@dataclass(frozen=True, slots=True)
class TemplateName:
    """A template as messages name it."""

    kind: str
    name: str


def words_of(kind: str) -> OwnerWords:
    """Return the words for the owners of a kind."""
    return _WORDS[kind]


def not_matched(words: OwnerWords, labels: Mapping[str, str]) -> Finding:
    """Say that no blueprint selects an owner with these labels."""
    if not labels:
        reason = f"{words.owner.capitalize()}LabelsMissing"
        message = f"{words.owner} has no labels to match to {words.blueprint}"
        return Finding(words.ready_type, "False", reason, message)
    shown = " ".join(f"{key}:{labels[key]}" for key in sorted(labels))
    message = f"no {words.blueprint} found where full selector is satisfied by labels: map[{shown}]"
    return Finding(words.ready_type, "False", f"{words.in_reason}NotFound", message)


def matched_several(words: OwnerWords) -> Finding:
    """Say that several blueprints win with the same score."""
    message = f"{words.owner} may only match a single {words.blueprint}'s selector"
    return Finding(words.ready_type, "False", f"Multiple{words.in_reason}Matches", message)


def templates_not_found(resources: Sequence[str], *, type_: str = "TemplatesReady") -> Finding:
    """Say which resources have a template that does not exist; `type_` defaults to the condition of a blueprint."""
    message = f"did not find the template of the resource(s) [{', '.join(resources)}]"
    return Finding(type_, "False", "TemplatesNotFound", message)


def submitted(*, passed_through: bool = False) -> Finding:
    """Say that the object of a resource is submitted, or that it needs none."""
    return Finding("ResourceSubmitted", "True", "PassThrough" if passed_through else "ResourceSubmissionComplete")


def stamp_failure(error: str, *, words: OwnerWords, blueprint: str, resource: str, template: TemplateName) -> Finding:
    """Say why no object could be made for a resource."""
    message = (
        f"unable to stamp object for resource [{resource}] for template [{template.kind}/{template.name}] "
        f"in {words.blueprint} [{blueprint}]: {error}"
    )
    return Finding("ResourceSubmitted", "False", "TemplateStampFailure", message)


def rejected(error: str, *, words: OwnerWords, blueprint: str, resource: str, stamped: JsonObject) -> Finding:
    """Say why an API server refused the object of a resource."""
    metadata = stamped["metadata"]
    name = f"{metadata.get('namespace', '')}/{metadata.get('name') or metadata.get('generateName', '')}"
    message = f"unable to apply object [{name}] for resource [{resource}] in {words.blueprint} [{blueprint}]: {error}"
    return Finding("ResourceSubmitted", "False", "TemplateRejectedByAPIServer", message)


def missing_value(path: str, *, plural: str, stamped: JsonObject, health: Truth) -> Finding:
    """Say that an output is not there yet; what to do depends on the health of the object.

    `plural` is the kind as kubectl takes it, such as `images.kpack.io`.
    """
    metadata = stamped["metadata"]
    place = f"[{path}] from {{}}object [{plural}/{metadata['name']}] in namespace [{metadata['namespace']}]"
    texts: Mapping[Truth, str] = {
        "Unknown": f"waiting to read value {place.format('')}",
        "True": f"cannot read value {place.format('healthy ')}, contact Platform Eng",
        "False": (
            f"cannot read value {place.format('unhealthy ')}, examine object, particularly whether it is "
            "receiving proper inputs"
        ),
    }
    return Finding("ResourceSubmitted", "Unknown", "MissingValueAtPath", texts[health])


def condition_not_met(resource: str, error: str) -> Finding:
    """Say that the object of a resource was not deployed yet."""
    message = f"resource [{resource}] condition not met: {error}"
    return Finding("ResourceSubmitted", "Unknown", "ConditionNotMet", message)


def deployment_failed(resource: str, error: str) -> Finding:
    """Say that the object of a resource says that its deployment failed."""
    message = f"resource [{resource}] condition not met: {error}"
    return Finding("ResourceSubmitted", "False", "FailedConditionMet", message)


def duplicate_object(resource: str, *, other: str, qualified: str) -> Finding:
    """Say that a resource stamps the object that another resource of the same owner stamps."""
    message = f"resource [{resource}] stamps the object [{qualified}] of resource [{other}]; give it a name of its own"
    return Finding("ResourceSubmitted", "False", "DuplicateObject", message)


def waiting_for_input(output: str, producer: str) -> Finding:
    """Say that a resource waits for an output of another one."""
    message = f"waiting for output [{output}] of resource [{producer}]"
    return Finding("ResourceSubmitted", "Unknown", "WaitingForInput", message)


def ready(findings: Sequence[Finding], type_: str = "Ready") -> Finding:
    """Add conditions up: any False, else any that is Unknown, else True.

    Of several that are False the last one gives reason and message, of several that are Unknown the first.
    """
    for status, candidates in (("False", findings[::-1]), ("Unknown", findings)):
        found = next((finding for finding in candidates if finding.status == status), None)
        if found is not None:
            return Finding(type_, found.status, found.reason, found.message)
    return Finding(type_, "True", "Ready")


def resources_submitted(submitted: Sequence[Finding]) -> Finding:
    """Add the conditions ResourceSubmitted of all resources up, which are in the order of the blueprint.

    The first that failed counts, and one that only waits for an input of another comes last.
    """
    failing = [finding for finding in submitted if finding.status != "True"]
    first = min(failing, key=lambda finding: finding.reason == "WaitingForInput", default=None)
    if first is None:
        return Finding("ResourcesSubmitted", "True", "ResourceSubmissionComplete")
    return Finding("ResourcesSubmitted", first.status, first.reason, first.message)


def resources_healthy(healths: Sequence[Finding]) -> Finding:
    """Add the conditions Healthy of all resources up: any False, else any that is Unknown, else True."""
    statuses = {finding.status for finding in healths}
    status: Truth = next((each for each in _WORST_FIRST if each in statuses), "True")
    return Finding("ResourcesHealthy", status, "HealthyConditionRule")


def with_conditions(
    before: Sequence[JsonObject], findings: Sequence[Finding], *, now: datetime, generation: int | None = None
) -> list[JsonObject]:
    """Return the conditions of a status in the order of the findings; the time changes only with a status."""
    conditions = list(before)
    for finding in findings:
        conditions = set_condition(
            conditions,
            finding.type,
            finding.status,
            reason=finding.reason,
            message=finding.message,
            now=now,
            observed_generation=generation,
        )
    order = [finding.type for finding in findings]
    return sorted((each for each in conditions if each["type"] in order), key=lambda each: order.index(each["type"]))
