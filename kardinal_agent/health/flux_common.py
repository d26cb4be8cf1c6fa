"""The parts that a Kustomization and a HelmRelease of Flux have in common: kinds, conditions, revisions, inventories.

While Flux fails, `status.observedGeneration` stays at the last success, so the `observedGeneration` of each condition
is read instead. A condition of another generation is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal.promotion.api import PromotionStep
from kardinal_agent.health.fields import condition, entries, latest, moment, number, section, text
from kardinal_agent.health.subject import Subject
from kardinal_agent.health.verdict import Verdict, Watched, WatchedObjects
from kardinal_agent.health.workloads import WORKLOADS

__all__ = [
    "HELM_RELEASE",
    "KUSTOMIZATION",
    "MOST_WORKLOADS",
    "commit_of",
    "current",
    "given_up",
    "inventory",
    "is_remote",
    "not_ready",
    "not_working",
    "seen",
    "subject_of",
    "too_many_workloads",
    "workloads_of",
]

KUSTOMIZATION = ResourceType("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
HELM_RELEASE = ResourceType("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")

_REVISION = re.compile(r"(?:.*[@/])?(?:sha1:)?([0-9a-f]{40})")
"""A revision with a commit: `main@sha1:<commit>`, `sha1:<commit>`, or `main/<commit>` of earlier versions of Flux.

The digest of an OCI artifact is longer and does not match.
"""

MOST_WORKLOADS = 500
"""The most workloads of one inventory that are judged."""


def subject_of(found: JsonObject) -> Subject:
    """Return the subject of verdicts on an object of Flux; its last change is the last transition of a condition."""
    changes = [moment(each, "lastTransitionTime") for each in entries(found, "status", "conditions")]
    return Subject(f"{found['kind']} {key_of(found)}", latest(changes))


def current(found: JsonObject, type_: str) -> Mapping[str, Any]:
    """Return the condition of a type for the current generation; empty if there is none."""
    answer = condition(found, type_)
    return answer if number(answer, "observedGeneration") == number(found, "metadata", "generation") else {}


def commit_of(revision: str) -> str | None:
    """Return the commit in a revision; None for a revision without one, such as that of an OCI artifact."""
    match = _REVISION.fullmatch(revision)
    return match[1] if match is not None else None


def not_working(found: JsonObject) -> Verdict | None:
    """Return the verdict on an object that Flux does not reconcile (suspended, without its source); otherwise None."""
    subject = subject_of(found)
    if "deletionTimestamp" in found["metadata"]:
        return subject.waits("it is being deleted")
    if section(found, "spec").get("suspend") is True:
        return subject.waits("it is suspended: a person must resume it")
    return None


def not_ready(found: JsonObject) -> str:
    """Return the words for an object that Flux has not brought to its newest state; empty if it has not failed."""
    return "is not Ready" if current(found, "Ready").get("status") == "False" else ""


def given_up(found: JsonObject, step: PromotionStep) -> Verdict | None:
    """Return the verdict on an object that Flux has given up on (Stalled); None for one that is not Stalled.

    It is a failure if the object became Stalled after the landing. An earlier Stalled is about another version, which
    the promotion may correct.
    """
    stalled = current(found, "Stalled")
    if stalled.get("status") != "True":
        return None
    subject = subject_of(found)
    says = text(stalled, "message")
    landed = step.status.merged_at or step.status.promoted_at
    turned = moment(stalled, "lastTransitionTime")
    if landed is None or turned is None or turned < landed.replace(microsecond=0):
        return subject.waits("it has been Stalled since before: a person must correct it", says=says)
    return subject.failed("Stalled", "it is Stalled: a person must correct it", says=says)


def is_remote(found: JsonObject) -> bool:
    """Return whether the object applies to another cluster (`kubeConfig`)."""
    return bool(section(found, "spec", "kubeConfig"))


def inventory(found: JsonObject) -> Sequence[tuple[str, str, Key]]:
    """Return group, kind and key of each applied object; Flux writes `<namespace>_<name>_<group>_<kind>`."""
    parts = [text(each, "id").split("_") for each in entries(found, "status", "inventory", "entries")]
    return [(each[2], each[3], Key(each[0], each[1])) for each in parts if len(each) == 4]


def workloads_of(found: JsonObject) -> Sequence[Watched]:
    """Return the workloads of an inventory to watch, at most `MOST_WORKLOADS`."""
    kinds = [(WORKLOADS.get(kind), group, key) for group, kind, key in inventory(found)]
    return [
        Watched(kind=kind, namespace=key.namespace, name=key.name)
        for kind, group, key in kinds
        if kind is not None and kind.group == group
    ][:MOST_WORKLOADS]


def too_many_workloads(found: JsonObject) -> Verdict | None:
    """Return the verdict on an inventory with more than `MOST_WORKLOADS` workloads; None for a smaller one."""
    if len(workloads_of(found)) < MOST_WORKLOADS:
        return None
    return subject_of(found).waits(f"it applied {MOST_WORKLOADS} workloads or more: use health.type resource")


def seen(watched: Sequence[Watched], objects: WatchedObjects) -> Sequence[JsonObject | None]:
    """Return the objects that are watched by name, with None for each missing one."""
    return [objects.get(each.kind, each.namespace, each.name) for each in watched if each.name is not None]
