"""The parts that a Kustomization and a HelmRelease of Flux have in common: kinds, conditions, revisions, inventories.

`status.observedGeneration` stays at the last success while Flux fails, so each condition is read with its own. A
condition that is about another generation says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kardinal.api import PromotionStep
from kardinal.objects import JsonObject, Key, ResourceType, key_of
from kardinal_agent.health.fields import condition, entries, latest, moment, number, section, text
from kardinal_agent.health.subject import Subject
from kardinal_agent.health.verdict import Objects, Verdict, Watched
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
    "not_working",
    "seen",
    "subject_of",
    "too_many_workloads",
    "workloads_of",
]

KUSTOMIZATION = ResourceType("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
HELM_RELEASE = ResourceType("helm.toolkit.fluxcd.io", "v2", "HelmRelease", "helmreleases")

_REVISION = re.compile(r"(?:.*[@/])?(?:sha1:)?([0-9a-f]{40})")
"""`main@sha1:<commit>`, `sha1:<commit>`, and `main/<commit>` of earlier versions; an artifact's digest is longer."""

MOST_WORKLOADS = 500
"""Workloads of one inventory that are looked at."""


def subject_of(found: JsonObject) -> Subject:
    """Return the object as messages call it; its last change is that of a condition."""
    changes = [moment(each, "lastTransitionTime") for each in entries(found, "status", "conditions")]
    return Subject(f"{found['kind']} {key_of(found)}", latest(changes))


def current(found: JsonObject, type_: str) -> Mapping[str, Any]:
    """Return a condition that is about the object as it is now; empty where there is none."""
    answer = condition(found, type_)
    return answer if number(answer, "observedGeneration") == number(found, "metadata", "generation") else {}


def commit_of(revision: str) -> str | None:
    """Return the commit of a revision; None where it names none, as that of an OCI artifact."""
    match = _REVISION.fullmatch(revision)
    return match[1] if match is not None else None


def not_working(found: JsonObject) -> Verdict | None:
    """Return why Flux does nothing about an object."""
    subject = subject_of(found)
    if "deletionTimestamp" in found["metadata"]:
        return subject.waits("it is being deleted")
    if section(found, "spec").get("suspend") is True:
        return subject.waits("it is suspended: a person must resume it")
    return None


def given_up(found: JsonObject, step: PromotionStep) -> Verdict | None:
    """Return that Flux has given up on the object as it is now (Stalled): a failure where it did so after the landing.

    Stalled from before is about another version, whose correction may be on its way.
    """
    stalled = current(found, "Stalled")
    if stalled.get("status") != "True":
        return None
    subject, says = subject_of(found), text(stalled, "message")
    landed, turned = step.status.merged_at or step.status.promoted_at, moment(stalled, "lastTransitionTime")
    if landed is None or turned is None or turned < landed.replace(microsecond=0):
        return subject.waits("it has been Stalled since before: a person must correct it", says=says)
    return subject.failed("Stalled", "it is Stalled: a person must correct it", says=says)


def is_remote(found: JsonObject) -> bool:
    """Return whether the objects that are applied live in another cluster than this one."""
    return bool(section(found, "spec", "kubeConfig"))


def inventory(found: JsonObject) -> Sequence[tuple[str, str, Key]]:
    """Return group, kind and key of what was applied; Flux names it `<namespace>_<name>_<group>_<kind>`."""
    parts = [text(each, "id").split("_") for each in entries(found, "status", "inventory", "entries")]
    return [(each[2], each[3], Key(each[0], each[1])) for each in parts if len(each) == 4]


def workloads_of(found: JsonObject) -> Sequence[Watched]:
    """Return the workloads of an inventory, so that they are watched: at most `MOST_WORKLOADS`."""
    kinds = [(WORKLOADS.get(kind), group, key) for group, kind, key in inventory(found)]
    return [
        Watched(kind=kind, namespace=key.namespace, name=key.name)
        for kind, group, key in kinds
        if kind is not None and kind.group == group
    ][:MOST_WORKLOADS]


def too_many_workloads(found: JsonObject) -> Verdict | None:
    """Return why the workloads of an inventory are not judged: not all of them are looked at."""
    if len(workloads_of(found)) < MOST_WORKLOADS:
        return None
    return subject_of(found).waits(f"it applied {MOST_WORKLOADS} workloads or more: use health.type resource")


def seen(watched: Sequence[Watched], objects: Objects) -> Sequence[JsonObject | None]:
    """Return the objects that are watched by name, None for each that does not exist."""
    return [objects.get(each.kind, each.namespace, each.name) for each in watched if each.name is not None]
