"""Validate what makes pods: selectors that miss their own template, strategies, and immutable fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kardinal_local.plane.builtin.validation.faults import (
    Check,
    forbidden,
    immutable,
    in_go,
    invalid,
    label_faults,
    matches,
    non_negative,
    one_of,
    required,
    selector_faults,
)
from kardinal_local.plane.builtin.validation.pods import pod_spec
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas import causes

__all__ = ["CHECKS"]

_TEMPLATE: Final = "spec.template"
_PERCENT: Final = re.compile(r"[0-9]+%")
_STATEFUL_CHANGES: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_CRON_FIELDS: Final = 5
_CRON_WORDS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def _selected(spec: JsonObject, *, empty: str, needed: bool = True) -> Iterator[Cause]:
    """A selector, and a template that it must choose."""
    selector, labels = spec.get("selector"), spec["template"]["metadata"].get("labels")
    if selector is None:
        if needed:
            yield required("spec.selector")
        yield invalid(f"{_TEMPLATE}.metadata.labels", labels, "`selector` does not match template `labels`")
        return
    found = list(selector_faults("spec.selector", selector))
    yield from found
    if not selector:
        yield invalid("spec.selector", selector, f"empty selector is invalid for {empty}")
    if found:
        yield invalid("spec.selector", selector, "invalid label selector")
    elif selector and not matches(selector, labels or {}):
        yield invalid(f"{_TEMPLATE}.metadata.labels", labels, "`selector` does not match template `labels`")


def _template(spec: JsonObject) -> Iterator[Cause]:
    """A template whose pods are restarted for ever."""
    yield from label_faults(f"{_TEMPLATE}.labels", spec["template"]["metadata"].get("labels", {}))
    yield from pod_spec(spec["template"]["spec"], f"{_TEMPLATE}.spec")
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy in ("OnFailure", "Never"):
        yield causes.not_supported(f"{_TEMPLATE}.spec.restartPolicy", policy, ["Always"])


def _deployment(deployment: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = deployment["spec"]
    yield from non_negative("spec.replicas", spec["replicas"])
    yield from _selected(spec, empty="deployment")
    if not list(selector_faults("spec.selector", spec.get("selector") or {})):
        yield from _template(spec)
    yield from _strategy(spec["strategy"])
    yield from non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    yield from non_negative("spec.revisionHistoryLimit", spec["revisionHistoryLimit"])
    yield from non_negative("spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"])
    if spec["progressDeadlineSeconds"] <= spec.get("minReadySeconds", 0):
        yield invalid(
            "spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"], "must be greater than minReadySeconds"
        )
    if old is not None:
        yield from immutable("spec.selector", spec.get("selector"), old["spec"].get("selector"))


def _strategy(strategy: JsonObject) -> Iterator[Cause]:
    path, rolling = "spec.strategy", strategy.get("rollingUpdate") or {}
    match strategy["type"]:
        case "Recreate":
            if rolling:
                yield forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
        case "RollingUpdate":
            surge, missing = rolling["maxSurge"], rolling["maxUnavailable"]
            yield from _share(f"{path}.rollingUpdate.maxUnavailable", missing)
            yield from _share(f"{path}.rollingUpdate.maxSurge", surge)
            if str(surge) in ("0", "0%") and str(missing) in ("0", "0%"):
                yield invalid(f"{path}.rollingUpdate.maxUnavailable", missing, "may not be 0 when `maxSurge` is 0")
        case other:
            shown = in_go({"Type": other, "RollingUpdate": rolling or None})
            message = f'Unsupported value: {shown}: supported values: "Recreate", "RollingUpdate"'
            yield Cause("FieldValueNotSupported", path, message)


def _share(path: str, value: Any) -> Iterator[Cause]:
    """A number of pods, or a percentage."""
    yield from non_negative(path, value)
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield invalid(
            path,
            value,
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
            "regex used for validation is '[0-9]+%')",
        )


def _replica_set(replicas: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = replicas["spec"]
    yield from non_negative("spec.replicas", spec["replicas"])
    yield from non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    yield from _selected(spec, empty="replicaset")
    yield from _template(spec)
    if old is not None:
        yield from immutable("spec.selector", spec.get("selector"), old["spec"].get("selector"))


def _stateful_set(stateful: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = stateful["spec"]
    policy = spec["podManagementPolicy"]
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from one_of("spec.updateStrategy.type", spec["updateStrategy"]["type"], ("RollingUpdate", "OnDelete"))
    yield from non_negative("spec.replicas", spec["replicas"])
    yield from _selected(spec, empty="statefulset")
    yield from _template(spec)
    if old is not None and _fixed(spec) != _fixed(old["spec"]):
        *names, last = (f"'{name}'" for name in _STATEFUL_CHANGES)
        yield forbidden(
            "spec", f"updates to statefulset spec for fields other than {', '.join(names)} and {last} are forbidden"
        )


def _fixed(spec: JsonObject) -> JsonObject:
    return {key: value for key, value in spec.items() if key not in _STATEFUL_CHANGES}


def _daemon_set(daemons: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = daemons["spec"]
    yield from _selected(spec, empty="daemonset", needed=False)
    yield from _template(spec)
    if old is not None:
        yield from immutable("spec.selector", spec.get("selector"), old["spec"].get("selector"))


def _job(job: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec, labels = job["spec"], job["spec"]["template"]["metadata"].get("labels", {})
    for field in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        yield from non_negative(f"spec.{field}", spec.get(field))
    selector = spec["selector"]
    if not spec["manualSelector"] and len(selector.get("matchLabels", {})) > 1 and old is None:
        yield invalid("spec.selector", selector, "`selector` not auto-generated")
    if not matches(selector, labels):
        yield invalid(f"{_TEMPLATE}.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from _run_once(spec, _TEMPLATE)
    if old is not None:
        before = old["spec"]
        if not spec["suspend"]:
            yield from immutable("spec.completions", spec.get("completions"), before.get("completions"))
        yield from immutable("spec.selector", selector, before["selector"])
        yield from immutable("spec.template", spec["template"], before["template"])
        yield from immutable("spec.completionMode", spec["completionMode"], before["completionMode"])


def _run_once(spec: JsonObject, path: str) -> Iterator[Cause]:
    """A template whose pods end."""
    pod = spec["template"]["spec"]
    yield from pod_spec(pod, f"{path}.spec")
    if pod["restartPolicy"] == "Always":
        yield required(f"{path}.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def _cron_job(cron: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    spec = cron["spec"]
    schedule = spec["schedule"]
    fields = schedule.split()
    if not schedule:
        yield required("spec.schedule")
    elif schedule not in _CRON_WORDS and not schedule.startswith("@every ") and len(fields) != _CRON_FIELDS:
        found = f"expected exactly {_CRON_FIELDS} fields, found {len(fields)}: [{' '.join(fields)}]"
        yield invalid("spec.schedule", schedule, found)
    for field in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from non_negative(f"spec.{field}", spec.get(field))
    yield from one_of("spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"))
    yield from _run_once(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec.template")


def _revision(revision: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    if revision.get("data") is None:
        yield required("data", "data is mandatory")
    elif old is not None:
        yield from immutable("data", revision["data"], old["data"])


CHECKS: Final[dict[tuple[str, str], Check]] = {
    ("apps", "ControllerRevision"): _revision,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
}
