"""The status of an owner, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from kardinal.objects import JsonObject, ResourceType
from kardinal.objects.conditions import find_condition, format_time
from kardinal_supplychain.api.kinds import GROUP, VERSION
from kardinal_supplychain.realize import conditions
from kardinal_supplychain.realize.conditions import Finding, OwnerWords, with_conditions
from kardinal_supplychain.realize.outputs import Outputs
from kardinal_supplychain.realize.preview import preview_of
from kardinal_supplychain.realize.resource_state import ResourceState, plural_of, qualified

__all__ = ["changes_of", "owner_findings", "resource_statuses", "stamped_reference", "with_findings"]


def with_findings(owner: JsonObject, findings: Sequence[Finding], *, now: datetime, **fields: Any) -> JsonObject:
    """Return the status of an owner with these conditions and other fields; the rest stays."""
    before = owner.get("status") or {}
    return {
        **before,
        "observedGeneration": owner["metadata"]["generation"],
        "conditions": with_conditions(before.get("conditions") or (), findings, now=now),
        **fields,
    }


def stamped_reference(type_: ResourceType, stamped: JsonObject) -> JsonObject:
    """Return the reference to an object that was stamped."""
    metadata = stamped["metadata"]
    return {
        "apiVersion": type_.api_version,
        "kind": type_.kind,
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "resource": plural_of(type_),
        "uid": metadata["uid"],
    }


def owner_findings(words: OwnerWords, resources: Sequence[JsonObject]) -> list[Finding]:
    """Return the conditions of an owner whose resources have these statuses."""
    submitted = [_finding(each, "ResourceSubmitted") for each in resources]
    healthy = [_finding(each, "Healthy") for each in resources if find_condition(each, "Healthy")]
    findings = [
        Finding(words.ready_type, "True", "Ready"),
        conditions.resources_submitted(submitted),
        conditions.resources_healthy(healthy),
    ]
    return [*findings, conditions.ready(findings)]


def resource_statuses(
    states: Iterable[ResourceState], before: Sequence[JsonObject], *, now: datetime
) -> list[JsonObject]:
    """Return the statuses of resources; `before` are those that the owner has."""
    earlier = {each["name"]: each for each in before}
    return [_status(state, earlier.get(state.name, {}), now) for state in states]


def changes_of(
    states: Iterable[ResourceState], before: Sequence[JsonObject], after: Sequence[JsonObject]
) -> Iterator[tuple[str, str]]:
    """Yield reason and note of an Event for each resource with a new output, or another health."""
    earlier = {each["name"]: each for each in before}
    later = {each["name"]: each for each in after}
    for state in states:
        old = earlier.get(state.name, {})
        new = later[state.name]
        stamped = (
            f" in [{qualified(state.type, state.stamped['metadata']['name'])}]" if state.type and state.stamped else ""
        )
        if _digests(old) != _digests(new):
            found = "passed through a new output" if state.passes_through else f"found a new output{stamped}"
            yield "ResourceOutputChanged", f"[{state.name}] {found}"
        health = find_condition(new, "Healthy")
        if stamped and health and health["status"] != (find_condition(old, "Healthy") or {}).get("status"):
            note = f"[{state.name}] found healthy status{stamped} changed to [{health['status']}]"
            yield "ResourceHealthyStatusChanged", note


def _status(state: ResourceState, before: JsonObject, now: datetime) -> JsonObject:
    healthy = state.healthy
    if healthy is None and not state.passes_through:
        healthy = _finding(before, "Healthy") if find_condition(before, "Healthy") else _no_object()
    findings = [state.submitted, *([healthy] if healthy else [])]
    fields: JsonObject = {
        "name": state.name,
        "templateRef": _template_ref(state),
        "stampedRef": None if state.passes_through else _stamped_ref(state) or before.get("stampedRef"),
        "lastRun": state.last_run.to_json() if state.last_run is not None else before.get("lastRun"),
        "inputs": [{"name": producer} for producer in state.inputs],
        "outputs": _outputs(state, before.get("outputs") or (), now),
        "conditions": with_conditions(before.get("conditions") or (), [*findings, conditions.ready(findings)], now=now),
    }
    return {name: value for name, value in fields.items() if value}


def _no_object() -> Finding:
    return Finding("Healthy", "Unknown", "NoResource")


def _template_ref(state: ResourceState) -> JsonObject | None:
    if state.template is None:
        return None
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": state.template.kind, "name": state.template.name}


def _stamped_ref(state: ResourceState) -> JsonObject | None:
    return (
        stamped_reference(state.type, state.stamped) if state.stamped is not None and state.type is not None else None
    )


def _outputs(state: ResourceState, before: Sequence[JsonObject], now: datetime) -> list[JsonObject]:
    if state.is_confidential:
        return []
    if state.outputs is None:
        return list(before)
    return list(_shown(state.outputs, {each["name"]: each for each in before}, now))


def _shown(outputs: Outputs, before: Mapping[str, JsonObject], now: datetime) -> Iterator[JsonObject]:
    for name, value in outputs.items():
        preview = preview_of(value)
        earlier = before.get(name)
        unchanged = earlier is not None and earlier["digest"] == preview.digest
        since = earlier["lastTransitionTime"] if unchanged and earlier else format_time(now)
        yield {"name": name, "preview": preview.text, "digest": preview.digest, "lastTransitionTime": since}


def _digests(resource: JsonObject) -> Mapping[str, str]:
    return {each["name"]: each["digest"] for each in resource.get("outputs") or ()}


def _finding(resource: JsonObject, type_: str) -> Finding:
    found = find_condition(resource, type_) or {}
    return Finding(type_, found["status"], found["reason"], found.get("message", ""))
