"""A Runnable: the values that its run template reads, the outputs of its runs, and its conditions.

Conditions are RunTemplateReady, StampedObjectCondition and Ready, with the reasons and messages of Cartographer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardinal.objects import JsonObject
from kardinal.objects.conditions import Truth
from kardinal.objects.errors import KardinalError
from kardinal_supplychain.api.runs import RunnableSelector
from kardinal_supplychain.api.status import LastRun, RunOutcome
from kardinal_supplychain.blueprints.owner import owner_document
from kardinal_supplychain.jsonpath import PathError, Steps, parse_path
from kardinal_supplychain.realize.conditions import Finding, ready
from kardinal_supplychain.realize.health import StampedHealth, stated_condition
from kardinal_supplychain.realize.interpolate import TEMPLATE_STEPS, encoded_json
from kardinal_supplychain.realize.runs import StampedRun, is_job, own_outcome

__all__ = [
    "OUTPUTS_LIMIT",
    "RunOutputMissing",
    "account_failed",
    "judge_run",
    "output_missing",
    "read_run_outputs",
    "run_context",
    "run_rejected",
    "run_stamp_failure",
    "run_template_not_found",
    "run_template_ready",
    "runnable_findings",
    "selector_failed",
]

OUTPUTS_LIMIT = 256 << 10
"""The most bytes of all outputs as JSON, because a status holds them whole."""
_TRUTHS: Mapping[RunOutcome, Truth] = {"unfinished": "Unknown", "succeeded": "True", "failed": "False"}


class RunOutputMissing(KardinalError):
    """An output that a successful run does not have, or that is too large."""


def run_context(runnable: JsonObject, selected: JsonObject | None) -> JsonObject:
    """Return the values that the tags of a run template read."""
    return {"runnable": owner_document(runnable), "selected": selected}


def judge_run(run: JsonObject) -> StampedHealth:
    """Return the health of a run: its condition Succeeded; that of a Job, which has none, by Complete and Failed.

    Beyond: Cartographer waits for the condition Succeeded of a Job for ever.
    """
    outcome = own_outcome(run)
    if outcome is None:
        return StampedHealth("Unknown", "Unknown")
    _, message = stated_condition("Failed" if is_job(run) else "Succeeded", run)
    # While a run is under way its message tells of progress, which is not worth a write for each step.
    return StampedHealth(_TRUTHS[outcome], "SucceededCondition", "" if outcome == "unfinished" else message)


def read_run_outputs(paths: Mapping[str, str], run: JsonObject) -> dict[str, Any]:
    """Return the outputs of a successful run, all of them. Raises `RunOutputMissing`."""
    steps = Steps(TEMPLATE_STEPS)
    outputs: dict[str, Any] = {}
    for name in sorted(paths):
        try:
            outputs[name] = parse_path(paths[name]).one(run, steps)
        except PathError as error:
            raise RunOutputMissing(f"failed to evaluate path [{paths[name]}]: {error}") from None
    if (size := len(encoded_json(outputs))) > OUTPUTS_LIMIT:
        raise RunOutputMissing(f"the outputs have {size:,} bytes, and at most {OUTPUTS_LIMIT:,} are allowed")
    return outputs


def runnable_findings(template: Finding, newest: StampedRun | None, last: LastRun | None) -> list[Finding]:
    """Return the conditions of a Runnable. `newest` is its last run, and None if that is gone; then `last` tells of it.

    Beyond: the condition has the message of the run, where Cartographer says its status alone.
    """
    health = newest.health if newest is not None else StampedHealth("Unknown", "Unknown")
    if newest is None and last is not None and last.outcome != "unfinished":
        health = StampedHealth(_TRUTHS[last.outcome], "SucceededCondition")
    stamped = Finding("StampedObjectCondition", health.status, health.reason, health.message)
    return [template, stamped, ready([template, stamped])]


def account_failed(message: str) -> list[Finding]:
    """Return the conditions of a Runnable whose account cannot be used."""
    template = _failed("ServiceAccountError", message)
    return [template, ready([template])]


def run_template_ready() -> Finding:
    """Say that a run was stamped, or is kept."""
    return Finding("RunTemplateReady", "True", "Ready")


def run_template_not_found(name: str) -> Finding:
    """Say that there is no ClusterRunTemplate of a name."""
    return _failed("RunTemplateNotFound", f"unable to get run template [{name}]: there is no ClusterRunTemplate {name}")


def selector_failed(error: str, selector: RunnableSelector) -> Finding:
    """Say why the selector of a Runnable does not lead to one object."""
    labels = " ".join(f"{key}:{value}" for key, value in sorted(selector.matching_labels.items()))
    message = (
        f"unable to resolve selector [map[{labels}]], apiVersion [{selector.resource.api_version}], "
        f"kind [{selector.resource.kind}]: {error}"
    )
    return _failed("TemplateStampFailure", message)


def run_stamp_failure(error: str, template: str) -> Finding:
    """Say why no object could be made from a run template."""
    return _failed("TemplateStampFailure", f"unable to stamp object for run template [{template}]: {error}")


def run_rejected(error: str, template: str, stamped: JsonObject) -> Finding:
    """Say why an API server refused a run."""
    metadata = stamped["metadata"]
    name = f"{metadata['namespace']}/{metadata.get('generateName') or metadata.get('name')}"
    message = f"unable to apply object [{name}] for run template [{template}]: {error}"
    return _failed("StampedObjectRejectedByAPIServer", message)


def output_missing(error: str, template: str, run: JsonObject, qualified: str) -> Finding:
    """Say which output a successful run does not have; `qualified` is its kind as kubectl takes it."""
    metadata = run["metadata"]
    message = (
        f"waiting to read value from resource [{qualified}/{metadata['name']}] in namespace [{metadata['namespace']}]: "
        f"unable to retrieve outputs from stamped object for run template [{template}]: {error}"
    )
    return _failed("OutputPathNotSatisfied", message)


def _failed(reason: str, message: str) -> Finding:
    return Finding("RunTemplateReady", "False", reason, message)
