"""Judge a workload by its status: whether all of its pods run the promoted images now (pure).

The numbers in a status are about the generation that the controller of the kind has observed, so a status that looks
complete right after a change is that of the old rollout. The order of the checks is therefore fixed: first the pod
template (has it the promoted images?), then the observed generation (is the status about that template?), then the
rollout.

Each verdict has two texts: one in fixed words, for every reader, and one with texts of the object, for permitted
readers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kardinal.objects import CRON_JOB, DAEMON_SET, DEPLOYMENT, JOB, STATEFUL_SET, JsonObject, ResourceType, key_of
from kardinal.objects.conditions import find_condition
from kardinal.objects.image_reference import ImageReference
from kardinal_agent.health.templates import container_images, quoted, wrong_image
from kardinal_agent.health.verdict import Verdict, failed, healthy, progressing

__all__ = [
    "WORKLOADS",
    "combined",
    "judge_workload",
    "missing_workload",
    "pod_spec",
    "runs_repository_of",
    "title_of",
]

WORKLOADS: Mapping[str, ResourceType] = {
    kind.kind: kind for kind in (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, JOB, CRON_JOB)
}
"""The kinds with a pod template, by name."""

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shortfall:
    """The reason why a workload is not healthy: in fixed words, and with texts of the workload.

    `failure` is the CamelCase reason of a workload that will not become healthy by itself; empty for others.
    """

    words: str
    details: str = ""
    failure: str = ""
    since: datetime | None = None
    negative: bool = False


def judge_workload(workload: JsonObject, images: Sequence[ImageReference], *, named: bool = True) -> Verdict:
    """Return the verdict on a workload that has to run all of `images`.

    `named`: whether the Pipeline names the workload, so that its name may be part of the fixed words.
    """
    title = title_of(workload)
    called = title_of(workload) if named else _anonymous(workload)
    short = _wrong_image(workload, images) or _unobserved(workload) or _ROLLOUTS[workload["kind"]](workload)
    if short is None:
        unproven = "is rolled out and available; no image of the Bundle proves which version it runs"
        proof = f"runs {', '.join(map(str, images))}" if images else unproven
        return healthy(f"{called} {proof}", details="" if named else f"{title} {proof}")
    said = short.details or ("" if named else short.words)
    if short.failure:
        details = f"{title}: {said}" if said else ""
        return failed(short.failure, f"{called}: {short.words}", details=details, since=short.since)
    details = f"waits for {title}: {said}" if said else ""
    return progressing(
        f"waits for {called}: {short.words}", details=details, since=short.since, negative=short.negative
    )


def combined(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the joined verdict of at least one: a failure has priority, then a workload in progress."""
    negative = any(each.negative for each in verdicts)
    for state in ("failed", "progressing"):
        if (worst := next((each for each in verdicts if each.state == state), None)) is not None:
            return replace(worst, negative=negative)
    messages = dict.fromkeys(each.message for each in verdicts)
    details = [each.details or each.message for each in verdicts] if any(each.details for each in verdicts) else []
    return healthy("; ".join(messages), details="; ".join(details))


def missing_workload(kind: ResourceType, namespace: str, name: str) -> Verdict:
    """Return the verdict on a workload that does not exist."""
    return progressing(f"waits for {kind.kind} {namespace}/{name} to exist")


def title_of(workload: JsonObject) -> str:
    """Return the workload as messages write it: `Deployment team-a/web`, for example."""
    return f"{workload['kind']} {key_of(workload)}"


def _anonymous(workload: JsonObject) -> str:
    return f"a {workload['kind']} of namespace {key_of(workload).namespace}"


def pod_spec(workload: JsonObject) -> Mapping[str, Any]:
    """Return the pod spec in the template of a workload; empty without one."""
    spec = workload.get("spec") or {}
    if workload["kind"] == CRON_JOB.kind:
        spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    found: Mapping[str, Any] = (spec.get("template") or {}).get("spec") or {}
    return found


def runs_repository_of(workload: JsonObject, image: ImageReference) -> bool:
    """Return whether the template of a workload has any version of an image."""
    return any(
        reference is not None and image.same_repository(reference)
        for _, reference in container_images(pod_spec(workload))
    )


def _wrong_image(workload: JsonObject, images: Sequence[ImageReference]) -> _Shortfall | None:
    details = wrong_image(pod_spec(workload), images)
    return _Shortfall(words="it does not run the promoted image yet", details=details) if details is not None else None


def _unobserved(workload: JsonObject) -> _Shortfall | None:
    if workload["kind"] in (JOB.kind, CRON_JOB.kind):
        return None  # Jobs and CronJobs have no observed generation, and a change of their template is not rolled out.
    generation = workload["metadata"].get("generation", 0)
    observed = (workload.get("status") or {}).get("observedGeneration", 0)
    if observed < generation:
        return _Shortfall(
            words="its latest generation is not observed yet",
            details=f"generation {generation} is not observed yet (observed is {observed})",
        )
    return None


def _deployment(workload: JsonObject) -> _Shortfall | None:
    spec = workload.get("spec") or {}
    status = workload.get("status") or {}
    available = find_condition(status, "Available") or {}
    negative = available.get("status") == "False"
    progress = find_condition(status, "Progressing") or {}
    if progress.get("reason") == "ProgressDeadlineExceeded":
        words = "its rollout exceeded its progress deadline"
        said = (find_condition(status, "ReplicaFailure") or {}).get("message") or progress.get("message")
        return _Shortfall(
            words=words,
            details=f"{words}: {quoted(said) or 'no reason given'}",
            failure="ProgressDeadlineExceeded",
            since=_moment(progress.get("lastUpdateTime") or progress.get("lastTransitionTime")),
        )
    paused = ", and it is paused" if spec.get("paused") else ""
    counts = _Counts(
        wanted=spec.get("replicas", 1),
        total=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        available=status.get("availableReplicas", 0),
    )
    since = _moment(progress.get("lastUpdateTime"))
    if (short := counts.shortfall("replicas", note=paused, since=since, negative=negative)) is not None:
        return short
    if available.get("status") != "True":
        words = "it is not Available"
        return _Shortfall(
            words=words,
            details=f"{words}: {quoted(available.get('message')) or 'it does not say so'}",
            since=_moment(available.get("lastTransitionTime")),
            negative=negative,
        )
    return None


def _stateful_set(workload: JsonObject) -> _Shortfall | None:
    spec = workload.get("spec") or {}
    status = workload.get("status") or {}
    strategy = spec.get("updateStrategy") or {}
    partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
    wanted = spec.get("replicas", 1)
    available = status.get("availableReplicas", 0)
    counts = _Counts(
        wanted=wanted,
        total=status.get("replicas", 0),
        updated=status.get("updatedReplicas", 0),
        available=available,
    )
    note = ""
    if strategy.get("type") == "OnDelete":
        note = ", and the others are when their pods are deleted (updateStrategy OnDelete)"
    elif partition:
        note = f", and its partition keeps those below {partition} at the version before"
    return counts.shortfall("replicas", note=note, negative=not available and wanted > 0)


def _daemon_set(workload: JsonObject) -> _Shortfall | None:
    spec = workload.get("spec") or {}
    status = workload.get("status") or {}
    wanted = status.get("desiredNumberScheduled", 0)
    available = status.get("numberAvailable", 0)
    updated = status.get("updatedNumberScheduled", 0)
    # A DaemonSet counts nodes; a node with a pod of each version counts as updated.
    counts = _Counts(wanted=wanted, total=updated, updated=updated, available=available)
    by_hand = (spec.get("updateStrategy") or {}).get("type") == "OnDelete"
    note = ", and the others are when their pods are deleted (updateStrategy OnDelete)" if by_hand else ""
    return counts.shortfall("pods", note=note, negative=not available and wanted > 0)


def _job(workload: JsonObject) -> _Shortfall | None:
    spec = workload.get("spec") or {}
    status = workload.get("status") or {}
    ended = find_condition(status, "Failed") or {}
    if ended.get("status") == "True":
        words = "it has failed"
        said = f"{words}: {quoted(ended.get('message')) or 'no reason given'}"
        since = _moment(ended.get("lastTransitionTime"))
        return _Shortfall(words=words, details=said, failure="JobFailed", since=since)
    if (find_condition(status, "Complete") or {}).get("status") == "True":
        return None
    if spec.get("suspend"):
        return _Shortfall(words="it is suspended: a person must resume it")
    return _Shortfall(words="it is not complete", since=_moment(status.get("startTime")))


def _cron_job(_: JsonObject) -> _Shortfall | None:
    """Return None: a CronJob is proved by its template, whenever it runs next."""
    return None


_ROLLOUTS: Mapping[str, Callable[[JsonObject], _Shortfall | None]] = {
    DEPLOYMENT.kind: _deployment,
    STATEFUL_SET.kind: _stateful_set,
    DAEMON_SET.kind: _daemon_set,
    JOB.kind: _job,
    CRON_JOB.kind: _cron_job,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """The replicas of a workload, as its status counts them."""

    wanted: int
    total: int
    updated: int
    available: int

    def shortfall(
        self, unit: str, *, note: str = "", since: datetime | None = None, negative: bool = False
    ) -> _Shortfall | None:
        """Return the shortfall, or None; `note` explains an incomplete update that the workload itself delays."""
        if self.updated < self.wanted:
            words = f"not all of its {unit} are updated"
            details = f"{self.updated} of {self.wanted} {unit} are updated{note}"
        elif self.total > self.updated:
            words = f"{unit} of the version before still run"
            details = f"{self.total - self.updated} of its {unit} still run the version before"
        elif self.available < self.wanted:
            words = f"not all of its {unit} are available"
            details = f"{self.available} of {self.wanted} {unit} are available"
        else:
            return None
        return _Shortfall(words=words, details=details, since=since, negative=negative)


def _moment(text: object) -> datetime | None:
    """Return the time in a field of a status; None if it is missing or invalid."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None
