"""A Runnable: the values of its template, its outputs and its conditions."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal_supplychain.api.runs import RunnableSelector
from kardinal_supplychain.api.status import LastRun
from kardinal_supplychain.realize.conditions import Finding
from kardinal_supplychain.realize.health import StampedHealth
from kardinal_supplychain.realize.runnable import (
    RunOutputMissing,
    account_failed,
    judge_run,
    output_missing,
    read_run_outputs,
    run_context,
    run_rejected,
    run_stamp_failure,
    run_template_not_found,
    run_template_ready,
    runnable_findings,
    selector_failed,
)
from kardinal_supplychain.realize.runs import StampedRun
from kardinal_supplychain.realize.stamp import RunnablePlace, render_body, stamp_object

RUNNABLE: dict[str, Any] = {
    "apiVersion": "carto.run/v1alpha1",
    "kind": "Runnable",
    "metadata": {"name": "tests", "namespace": "team", "uid": "u", "resourceVersion": "7"},
    "spec": {"runTemplateRef": {"name": "run-tests"}, "inputs": {"revision": "main@sha1:1", "retries": 2}},
    "status": {"outputs": {"url": "x"}},
}


def run(*conditions: JsonObject, **fields: Any) -> StampedRun:
    obj = {
        "apiVersion": "tekton.dev/v1",
        "kind": "TaskRun",
        "metadata": {"name": "tests-1", "namespace": "team", "uid": "r"},
        "status": {"conditions": list(conditions), **fields},
    }
    return StampedRun(obj, judge_run(obj), 1, "stamp")


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("$(runnable.metadata.name)$", "tests"),
        ("$(runnable.spec.inputs.retries)$", 2),
        ("$(runnable.spec.serviceAccountName)$", ""),
        ("$(runnable.spec.selector)$", None),
        ("$(selected.spec.image)$", "r/a"),
    ],
)
def test_a_run_template_reads_the_runnable_and_what_it_selects(tag: str, value: Any) -> None:
    rendered = render_body({"value": tag}, run_context(RUNNABLE, {"spec": {"image": "r/a"}}))
    assert rendered == {"value": value}


def test_a_run_is_marked_as_its_runnables() -> None:
    rendered = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "tests-"}}
    metadata = stamp_object(rendered, owner=RUNNABLE, place=RunnablePlace("run-tests"), inputs={})["metadata"]
    assert metadata["labels"] == {"carto.run/runnable-name": "tests", "carto.run/run-template-name": "run-tests"}
    assert metadata["ownerReferences"][0]["kind"] == "Runnable"
    assert "kardinal.io/stamp" in metadata["annotations"]


def test_outputs_are_read_whole_with_their_types() -> None:
    done = run({"type": "Succeeded", "status": "True"}, artifact={"url": "u", "size": 3})
    outputs = read_run_outputs({"artifact": "status.artifact", "url": "status.artifact.url"}, done.object)
    assert outputs == {"artifact": {"url": "u", "size": 3}, "url": "u"}


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ({"a": "status.a", "b": "status.missing"}, "failed to evaluate path [status.missing]"),
        ({"a": "status.a", "b": "status.a", "c": "status.a"}, "bytes"),
    ],
)
def test_outputs_that_are_missing_or_too_large_are_refused(paths: dict[str, str], said: str) -> None:
    done = run({"type": "Succeeded", "status": "True"}, a="x" * 100_000)
    with pytest.raises(RunOutputMissing, match=said.replace("[", r"\[").replace("]", r"\]")):
        read_run_outputs(paths, done.object)


LAST = LastRun(name="tests-1", uid="r", stamp="s", sequence=1, outcome="succeeded")
TRUE: dict[str, Any] = {"type": "Succeeded", "status": "True", "message": "done"}


@pytest.mark.parametrize(
    ("newest", "last", "stamped", "ready"),
    [
        (None, None, ("Unknown", "Unknown", ""), ("Unknown", "Unknown")),
        (run(), None, ("Unknown", "Unknown", ""), ("Unknown", "Unknown")),
        (
            run({"type": "Succeeded", "status": "Unknown", "message": "1 of 3"}),
            None,
            ("Unknown", "SucceededCondition", ""),
            ("Unknown", "SucceededCondition"),
        ),
        (run(TRUE), LAST, ("True", "SucceededCondition", "done"), ("True", "Ready")),
        (
            run({**TRUE, "status": "False"}),
            LAST,
            ("False", "SucceededCondition", "done"),
            ("False", "SucceededCondition"),
        ),
        (None, LAST, ("True", "SucceededCondition", ""), ("True", "Ready")),
        (None, LAST.model_copy(update={"outcome": "unfinished"}), ("Unknown", "Unknown", ""), ("Unknown", "Unknown")),
    ],
)
def test_conditions_follow_the_last_run(
    newest: StampedRun | None, last: LastRun | None, stamped: tuple[str, str, str], ready: tuple[str, str]
) -> None:
    """Beyond: Cartographer forgets the condition of a run that is gone."""
    found = runnable_findings(run_template_ready(), newest, last)
    assert [finding.type for finding in found] == ["RunTemplateReady", "StampedObjectCondition", "Ready"]
    assert (found[1].status, found[1].reason, found[1].message) == stamped
    assert (found[2].status, found[2].reason) == ready


def test_the_condition_of_a_job_is_that_it_is_complete() -> None:
    """Beyond: Cartographer waits for a condition Succeeded, which a Job never has."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    assert judge_run(job).status == "True"


def test_failed_job_says_why() -> None:
    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": "it took too long"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "status": {"conditions": [failed]}}
    assert judge_run(job) == StampedHealth("False", "SucceededCondition", "it took too long")


SELECTOR = RunnableSelector.model_validate(
    {"resource": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchingLabels": {"b": "2", "a": "1"}}
)
STAMPED = {"metadata": {"namespace": "team", "generateName": "tests-", "name": "tests-0123456789"}}


@pytest.mark.parametrize(
    ("finding", "reason", "said"),
    [
        (run_template_not_found("x"), "RunTemplateNotFound", "unable to get run template [x]: "),
        (
            selector_failed("selector matched multiple objects", SELECTOR),
            "TemplateStampFailure",
            "unable to resolve selector [map[a:1 b:2]], apiVersion [v1], kind [ConfigMap]: "
            "selector matched multiple objects",
        ),
        (run_stamp_failure("e", "x"), "TemplateStampFailure", "unable to stamp object for run template [x]: e"),
        (
            run_rejected("e", "x", STAMPED),
            "StampedObjectRejectedByAPIServer",
            "unable to apply object [team/tests-]",
        ),
        (
            output_missing("e", "x", run().object, "taskruns.tekton.dev"),
            "OutputPathNotSatisfied",
            "waiting to read value from resource [taskruns.tekton.dev/tests-1] in namespace [team]: ",
        ),
    ],
)
def test_a_failure_is_said_in_the_condition_of_the_template(finding: Finding, reason: str, said: str) -> None:
    assert (finding.type, finding.status, finding.reason) == ("RunTemplateReady", "False", reason)
    assert finding.message.startswith(said)


def test_without_an_account_nothing_is_said_of_a_run() -> None:
    found = account_failed("e")
    assert [(each.type, each.reason) for each in found] == [
        ("RunTemplateReady", "ServiceAccountError"),
        ("Ready", "ServiceAccountError"),
    ]
