"""The state of one resource of an owner: what is read from its object, or from its runs.

A resource that has no new object keeps its earlier one with its outputs and its health.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from kardinal.objects import JsonObject, ResourceType
from kardinal.objects.errors import KardinalError
from kardinal_supplychain.api.status import LastRun
from kardinal_supplychain.api.templates import DeploymentTemplateSpec, TemplateSpec
from kardinal_supplychain.realize import conditions
from kardinal_supplychain.realize.conditions import Finding, TemplateName
from kardinal_supplychain.realize.context import InputValues
from kardinal_supplychain.realize.health import StampedHealth, judge_health
from kardinal_supplychain.realize.inputs import AnyResource
from kardinal_supplychain.realize.outputs import (
    ConditionNotMet,
    DeploymentFailed,
    OutputMissing,
    Outputs,
    output_paths,
    read_outputs,
)
from kardinal_supplychain.realize.runs import StampedRun, noted_run, source_of_outputs
from kardinal_supplychain.realize.stamp import ResourcePlace

__all__ = ["ResourceState", "Stamping", "judge_run_of", "plural_of", "qualified", "read_object", "read_runs", "told"]


@dataclass(slots=True, kw_only=True)
class ResourceState:
    """The state of one resource.

    `outputs` are None if they cannot be read now: the earlier ones are kept. Then `stamped` and `type` are None if the
    earlier object is kept as well; `stamped` alone if the object has finished and is gone. `runs` are the names of its
    live runs, and `surplus` those of them that are to be deleted.
    """

    name: str
    submitted: Finding
    template: TemplateName | None = None
    inputs: Sequence[str] = ()
    type: ResourceType | None = None
    stamped: JsonObject | None = None
    outputs: Outputs | None = None
    healthy: Finding | None = None
    last_run: LastRun | None = None
    runs: Sequence[str] = ()
    surplus: Sequence[StampedRun] = ()
    passes_through: bool = False
    is_confidential: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamping:
    """A resource with the template that was chosen for it, and the values of its inputs."""

    resource: AnyResource
    template: TemplateSpec
    place: ResourcePlace
    inputs: InputValues


def qualified(type_: ResourceType, name: str) -> str:
    """Return an object as kubectl takes it, such as `images.kpack.io/web`."""
    return f"{plural_of(type_)}/{name}"


def plural_of(type_: ResourceType) -> str:
    """Return a kind as kubectl takes it, such as `images.kpack.io`."""
    return f"{type_.plural}.{type_.group}".removesuffix(".")


def judge_run_of(stamping: Stamping, run: JsonObject) -> StampedHealth:
    """Return the health of a run of a resource."""
    outputs = None
    with suppress(OutputMissing, ConditionNotMet, DeploymentFailed):
        outputs = read_outputs(stamping.template, run, deployment=stamping.inputs.deployment)
    kind = stamping.place.template_kind
    return judge_health(stamping.template, template_kind=kind, stamped=run, has_outputs=outputs is not None)


def read_object(state: ResourceState, stamping: Stamping, type_: ResourceType, live: JsonObject) -> ResourceState:
    """Return the state of a resource with the outputs and the health of its object."""
    template = stamping.template
    state.type = type_
    state.stamped = live
    missing: OutputMissing | None = None
    try:
        state.outputs = read_outputs(template, live, deployment=stamping.inputs.deployment)
    except OutputMissing as error:
        missing = error
    except ConditionNotMet as error:
        state.submitted = conditions.condition_not_met(state.name, told(state, error))
    except DeploymentFailed as error:
        state.submitted = conditions.deployment_failed(state.name, told(state, error))
    health = judge_health(
        template, template_kind=stamping.place.template_kind, stamped=live, has_outputs=state.outputs is not None
    )
    message = "" if state.is_confidential else health.message
    state.healthy = Finding("Healthy", health.status, health.reason, message)
    if missing is not None:
        state.submitted = conditions.missing_value(
            missing.path, plural=plural_of(type_), stamped=live, health=health.status
        )
    return state


def read_runs(
    state: ResourceState, stamping: Stamping, type_: ResourceType, runs: Sequence[StampedRun], last: LastRun | None
) -> ResourceState:
    """Return the state of a resource with the health of its last run, and the outputs of the newest healthy one.

    `runs` has the newest first. The last run may have finished and be gone: its health and its outputs are kept.
    """
    template = stamping.template
    state.type = type_
    newest = runs[0] if runs and (last is None or runs[0].sequence >= last.sequence) else None
    if newest is not None:
        read_object(state, stamping, type_, newest.object)
    source = source_of_outputs(runs, last)
    if source is None or source is not newest:
        state.outputs = None
    if source is None and newest is not None and (last is None or not last.outputs_of):
        path = next(iter(output_paths(template).values()), None)
        if path is not None:
            state.submitted = conditions.missing_value(
                path, plural=plural_of(type_), stamped=newest.object, health=newest.health.status
            )
    elif source is not newest:
        state.submitted = conditions.submitted()
    if source is not None and source is not newest and not isinstance(template, DeploymentTemplateSpec):
        # A deployment passes its present input on, which an earlier run did not have.
        with suppress(OutputMissing):
            state.outputs = read_outputs(template, source.object)
    state.last_run = noted_run(runs, last, outputs_of=source if state.outputs is not None else None)
    return state


def told(state: ResourceState, error: KardinalError) -> str:
    """Return the message of an error, without values of a Secret."""
    return "it has data of a Secret, which is not told" if state.is_confidential else str(error)
