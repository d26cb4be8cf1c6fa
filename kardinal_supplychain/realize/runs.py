"""Decide whether the last run of a resource is kept, or a new one is made.

A run is an object that is made anew for each change of its render, and never changed itself: what a template of the
lifecycle `immutable` or `tekton` stamps, and what a Runnable stamps. Its annotations say what it was made of:

    kardinal.io/stamp      the hash of the render
    kardinal.io/sequence   the number of the run among those of its resource; the newest run has the highest

The name of a new run is a hash of owner, resource, render and the run before it. So a process that crashed after it had
made a run, or that does not see the run yet, asks for the same name again, and the answer AlreadyExists leads it to the
run. A render that comes back after another one (A, B, A) is a third run, because the run before it is another one.

A finished run may vanish: `ttlSecondsAfterFinished`, a pruner, a person. The status keeps what must be known of the
last run (`LastRun`), so that it is not repeated until its render changes. An unfinished run that is gone is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kardinal.objects import JsonObject, labels_of
from kardinal.objects.applied import content_hash, covers
from kardinal.objects.conditions import find_condition
from kardinal.objects.naming import bounded
from kardinal_supplychain.api.kinds import GROUP
from kardinal_supplychain.api.status import LastRun, RunOutcome
from kardinal_supplychain.realize.health import StampedHealth
from kardinal_supplychain.realize.stamp import ANNOTATION_STAMP

__all__ = [
    "ANNOTATION_SEQUENCE",
    "LABEL_RESOURCE",
    "RunPlan",
    "StampedRun",
    "is_finished",
    "is_job",
    "is_run_of",
    "is_same_run",
    "is_vanished",
    "noted_object",
    "noted_run",
    "own_outcome",
    "plan_run",
    "runs_of",
    "source_of_outputs",
]

LABEL_RESOURCE = f"{GROUP}/resource-name"
"""On an object that is stamped for a resource of a blueprint: the name of the resource."""
ANNOTATION_SEQUENCE = "kardinal.io/sequence"
"""On a run: its number among the runs of its resource."""
_LIFECYCLE = f"{GROUP}/template-lifecycle"
NAME_PREFIX_LIMIT = 53
"""The most characters of `generateName` that a name begins with: with the hash it fits into a DNS label."""
GENERATE_NAME_LIMIT = 253
_SEQUENCE_DIGITS = 15

Judge = Callable[[JsonObject], StampedHealth]


@dataclass(frozen=True, slots=True)
class StampedRun:
    """A live run with its health, its number and the hash of its render; the hash is empty if it is not known."""

    object: JsonObject
    health: StampedHealth
    sequence: int
    stamp: str

    @property
    def name(self) -> str:
        name: str = self.object["metadata"]["name"]
        return name

    @property
    def uid(self) -> str:
        uid: str = self.object["metadata"]["uid"]
        return uid

    @property
    def outcome(self) -> RunOutcome:
        """Return `unfinished` while the object says so, otherwise the outcome by its health, or by its own word."""
        own = own_outcome(self.object)
        if own == "unfinished":
            return own
        by_health: dict[str, RunOutcome] = {"True": "succeeded", "False": "failed"}
        return by_health.get(self.health.status) or own or "unfinished"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The run to create, or the run that is kept; neither if the last run has finished and vanished."""

    create: JsonObject | None = None
    kept: StampedRun | None = None


def own_outcome(obj: JsonObject) -> RunOutcome | None:
    """Return the outcome by the conditions of an object; None if its kind does not say whether it has finished.

    A Job says it by `Complete` and `Failed`, a TaskRun and its like by `Succeeded`.
    """
    status = obj.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    entries = [entry for entry in conditions if isinstance(entry, dict)] if isinstance(conditions, list) else []
    if is_job(obj):
        true = {entry.get("type") for entry in entries if entry.get("status") == "True"}
        return "failed" if "Failed" in true else "succeeded" if "Complete" in true else "unfinished"
    succeeded = find_condition({"conditions": entries}, "Succeeded")
    if succeeded is None:
        return None
    outcomes: dict[Any, RunOutcome] = {"True": "succeeded", "False": "failed"}
    return outcomes.get(succeeded.get("status"), "unfinished")


def is_job(obj: JsonObject) -> bool:
    """Return whether an object, or the body of a template, is a Job of Kubernetes."""
    return obj.get("kind") == "Job" and str(obj.get("apiVersion")).startswith("batch/")


def runs_of(objects: Iterable[JsonObject], last: LastRun | None, judge: Judge) -> list[StampedRun]:
    """Return live runs, the newest first; `judge` returns the health of an object.

    `last` is believed before the annotations of that object, which a webhook may remove. Objects without a number, such
    as those that Cartographer made, are older than those with one.
    """
    return sorted((_run(obj, last, judge(obj)) for obj in objects), key=lambda run: _order(run, last), reverse=True)


def plan_run(stamped: JsonObject, runs: Sequence[StampedRun], last: LastRun | None) -> RunPlan:
    """Decide about a stamped object. `runs` has the live runs, the newest first, `last` what is known of the last one.

    Once the last run is gone, `last` alone tells of it: an older run that is still there is not taken for it.
    """
    newest = runs[0] if runs else None
    stamp = _annotations(stamped)[ANNOTATION_STAMP]
    if last is not None and (newest is None or newest.sequence < last.sequence):
        if last.stamp != stamp:
            return RunPlan(create=_numbered(stamped, predecessor=last.uid, sequence=last.sequence + 1))
        if last.outcome != "unfinished":
            return RunPlan()
        # Under the same name, so that one that is only not seen is found by it.
        return RunPlan(create=_numbered(stamped, name=last.name, sequence=last.sequence + 1))
    if newest is None:
        return RunPlan(create=_numbered(stamped, predecessor="", sequence=1))
    if newest.stamp == stamp or (not newest.stamp and _contains(newest.object, stamped)):
        return RunPlan(kept=newest)
    return RunPlan(create=_numbered(stamped, predecessor=newest.uid, sequence=newest.sequence + 1))


def is_run_of(obj: JsonObject, resource: str) -> bool:
    """Return whether an object of an owner is a run of a resource, by its labels; a mutable object is none."""
    labels = labels_of(obj)
    return labels.get(LABEL_RESOURCE) == bounded(resource) and labels.get(_LIFECYCLE) != "mutable"


def is_same_run(live: JsonObject, stamped: JsonObject) -> bool:
    """Return whether a live object with the name of a new run is that run: of the same owner, resource and render."""
    references = live["metadata"].get("ownerReferences") or ()
    controllers = [reference.get("uid") for reference in references if reference.get("controller") is True]
    if controllers != [stamped["metadata"]["ownerReferences"][0]["uid"]]:
        return False
    labels = labels_of(live)
    if labels.get(LABEL_RESOURCE) != labels_of(stamped).get(LABEL_RESOURCE) or labels.get(_LIFECYCLE) == "mutable":
        return False
    stamp = _annotations(live).get(ANNOTATION_STAMP)
    return stamp == _annotations(stamped)[ANNOTATION_STAMP] if stamp else _contains(live, stamped)


def is_finished(obj: JsonObject) -> bool:
    """Return whether an object says of itself that it has finished, such as a Job."""
    return own_outcome(obj) in ("succeeded", "failed")


def noted_object(obj: JsonObject) -> LastRun:
    """Return what the status keeps of an object of a mutable template, such as a Job."""
    metadata = obj["metadata"]
    return LastRun(
        name=metadata["name"],
        uid=metadata["uid"],
        stamp=_annotations(obj).get(ANNOTATION_STAMP, ""),
        sequence=0,
        outcome=own_outcome(obj) or "unfinished",
    )


def is_vanished(stamped: JsonObject, live: JsonObject | None, last: LastRun | None) -> bool:
    """Return whether a mutable object had finished and is gone, such as a Job: it is not applied again as it was."""
    if live is not None or last is None or last.outcome == "unfinished":
        return False
    return last.stamp == _annotations(stamped)[ANNOTATION_STAMP]


def source_of_outputs(runs: Sequence[StampedRun], last: LastRun | None) -> StampedRun | None:
    """Return the newest healthy run; None if the outputs that the status keeps stem from a newer one that is gone."""
    healthy = next((run for run in runs if run.health.status == "True"), None)
    if healthy is None or (last is not None and healthy.sequence < last.outputs_of):
        return None
    return healthy


def noted_run(runs: Sequence[StampedRun], last: LastRun | None, *, outputs_of: StampedRun | None) -> LastRun | None:
    """Return what the status keeps of the last run; `outputs_of` is the run whose outputs were read."""
    source = outputs_of.sequence if outputs_of is not None else last.outputs_of if last is not None else 0
    newest = runs[0] if runs else None
    if newest is None or (last is not None and newest.sequence < last.sequence):
        return last.model_copy(update={"outputs_of": source}) if last is not None else None
    return LastRun(
        name=newest.name,
        uid=newest.uid,
        stamp=newest.stamp,
        sequence=newest.sequence,
        outcome=newest.outcome,
        outputs_of=source,
    )


def _run(obj: JsonObject, last: LastRun | None, health: StampedHealth) -> StampedRun:
    if last is not None and last.uid == obj["metadata"]["uid"]:
        return StampedRun(obj, health, last.sequence, last.stamp)
    annotations = _annotations(obj)
    number = annotations.get(ANNOTATION_SEQUENCE, "")
    is_number = number.isascii() and number.isdecimal() and len(number) <= _SEQUENCE_DIGITS
    return StampedRun(obj, health, int(number) if is_number else 0, annotations.get(ANNOTATION_STAMP, ""))


def _order(run: StampedRun, last: LastRun | None) -> tuple[int, bool, str, str]:
    is_last = last is not None and last.uid == run.uid
    return run.sequence, is_last, run.object["metadata"].get("creationTimestamp", ""), run.name


def _numbered(stamped: JsonObject, *, sequence: int, predecessor: str = "", name: str = "") -> JsonObject:
    metadata = stamped["metadata"]
    annotations = {**metadata["annotations"], ANNOTATION_SEQUENCE: str(sequence)}
    numbered = {**metadata, "annotations": annotations}
    if "name" not in metadata:
        # The name is chosen here; the field is kept, because it shows which objects belong together.
        numbered["generateName"] = metadata["generateName"][:GENERATE_NAME_LIMIT]
        numbered["name"] = name or _generated(metadata, predecessor)
    return {**stamped, "metadata": numbered}


def _generated(metadata: JsonObject, predecessor: str) -> str:
    resource = metadata["labels"].get(LABEL_RESOURCE, "")
    origin = [metadata["ownerReferences"][0]["uid"], resource, metadata["annotations"][ANNOTATION_STAMP], predecessor]
    digest = content_hash(origin)[:10]
    return f"{metadata['generateName'][:NAME_PREFIX_LIMIT]}{digest}"


def _contains(live: JsonObject, stamped: JsonObject) -> bool:
    """Return whether a live object has every field of the render, whatever its marks are."""
    metadata = stamped["metadata"]
    rendered = {
        "labels": {key: value for key, value in metadata["labels"].items() if not key.startswith(f"{GROUP}/")},
        "annotations": {
            key: value for key, value in metadata["annotations"].items() if not key.startswith("kardinal.io/")
        },
    }
    return covers(live, {**stamped, "metadata": rendered})


def _annotations(obj: JsonObject) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}
