"""Adapter `argoRollouts`: a Rollout whose template has the promoted images, and which is fully promoted.

The phase of a Rollout counts only while its `observedGeneration` (a text in this kind) equals its generation. With a
`workloadRef` the template is that of a Deployment, whose generation must have been observed, too. Paused is no failure:
a person or the end of a duration continues the rollout.

When a pause ends in the same commit, the Rollout can report the new generation as observed and Healthy before the new
version is stable. The images of the stable version are therefore read from its ReplicaSet, whose name ends in the hash
of its template.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from kardinal.objects import DEPLOYMENT, REPLICA_SET, JsonObject, Key, ResourceType, controller_of, key_of
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health_adapters import ARGO_ROLLOUTS
from kardinal_agent.health.fields import condition, entries, latest, moment, number, section, text
from kardinal_agent.health.pods import judge_pods, pods_of
from kardinal_agent.health.subject import Subject
from kardinal_agent.health.templates import wrong_image
from kardinal_agent.health.verdict import Adapter, PromotionFacts, Verdict, Watched, WatchedObjects, absent, progressing

__all__ = ["ROLLOUT", "ArgoRollouts"]

ROLLOUT = ResourceType("argoproj.io", "v1alpha1", "Rollout", "rollouts")

_HASH_LABEL = "rollouts-pod-template-hash"
_HASH = re.compile(r"[a-z0-9]{1,63}")

_PAUSES = {
    "BlueGreenPause": "the new version is ready, and a person must promote it",
    "InconclusiveAnalysisRun": "its analysis is inconclusive, and a person must promote or abort it",
    "InconclusiveExperiment": "its experiment is inconclusive, and a person must promote or abort it",
}
"""The reasons of pauses that only a person ends."""


class ArgoRollouts(Adapter):
    """Judges the Rollout in `health.argoRollouts` of the PromotionStep."""

    name = ARGO_ROLLOUTS.name
    phases = frozenset(["Degraded", "Healthy", "Paused", "Progressing"])

    def watches(self, step: PromotionStep) -> Sequence[Watched]:
        key = _named(step)
        return (Watched(kind=ROLLOUT, namespace=key.namespace, name=key.name),) if key is not None else ()

    def related(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Sequence[Watched]:
        """Return the Deployment of a `workloadRef`, the stable ReplicaSet, and the pods of a version in progress.

        Only pods report that an image cannot be pulled before the progress deadline passes.
        """
        key = _named(step)
        found = objects.get(ROLLOUT, *key) if key is not None else None
        if found is None:
            return ()
        reference = _reference(found)
        watched = [Watched(kind=DEPLOYMENT, namespace=reference.namespace, name=reference.name)] if reference else []
        if promotion.images and (stable := _stable(found)) is not None:
            watched.append(Watched(kind=REPLICA_SET, namespace=key_of(found).namespace, selector={_HASH_LABEL: stable}))
        pods = pods_of(_selecting(found, objects))
        subject = _subject(found)
        late = _not_ours(found, subject, promotion, objects) or _not_promoted(found, subject)
        return [*watched, *([pods] if pods is not None and late is not None else [])]

    def judge(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Verdict:
        key = _named(step)
        if key is None:
            return progressing("health.argoRollouts names no Rollout")
        found = objects.get(ROLLOUT, *key)
        if found is None:
            return absent(ROLLOUT, key, field="health.argoRollouts.name")
        verdict = self._judged(step, found, promotion, objects)
        return judge_pods(_selecting(found, objects), promotion.images, objects, named=True, otherwise=verdict)

    def _judged(
        self, step: PromotionStep, found: JsonObject, promotion: PromotionFacts, objects: WatchedObjects
    ) -> Verdict:
        subject = _subject(found)
        if not promotion.images and step.spec.health.type == self.name:
            return subject.waits("it does not tell which commit it runs, and no image is promoted: use argocd or flux")
        return (
            _not_ours(found, subject, promotion, objects)
            or _not_promoted(found, subject)
            or _not_stable(found, subject, promotion, objects)
            or subject.proves(" ".join(["runs", ", ".join(map(str, promotion.images)) or "as it should"]))
        )


def _named(step: PromotionStep) -> Key | None:
    reference = step.spec.health.argo_rollouts
    if reference is None:
        return None
    return Key(reference.namespace or step.spec.environment, reference.name)


def _subject(found: JsonObject) -> Subject:
    changes: list[datetime | None] = [moment(found, "status", "abortedAt")]
    for each in entries(found, "status", "conditions"):
        changes += [moment(each, "lastUpdateTime"), moment(each, "lastTransitionTime")]
    changes += [moment(each, "startTime") for each in entries(found, "status", "pauseConditions")]
    return Subject(f"Rollout {key_of(found)}", latest(changes))


def _reference(found: JsonObject) -> Key | None:
    """Return the Deployment in `workloadRef`; None without one, or with a workload of another kind."""
    reference = section(found, "spec", "workloadRef")
    if text(reference, "kind") != DEPLOYMENT.kind:
        return None
    return Key(key_of(found).namespace, text(reference, "name"))


def _selecting(found: JsonObject, objects: WatchedObjects) -> JsonObject:
    """Return the object whose selector chooses the pods: the Deployment of a `workloadRef`, if the Rollout has none."""
    reference = _reference(found) if not section(found, "spec", "selector") else None
    return (objects.get(DEPLOYMENT, *reference) if reference is not None else None) or found


def _not_ours(
    found: JsonObject, subject: Subject, promotion: PromotionFacts, objects: WatchedObjects
) -> Verdict | None:
    """Return the verdict if the template or the status is not about the promoted images; otherwise None."""
    if "deletionTimestamp" in found["metadata"]:
        return subject.waits("it is being deleted")
    spec = section(found, "spec")
    workload: JsonObject = found
    if section(spec, "workloadRef"):
        key = _reference(found)
        if key is None:
            return subject.waits("its workloadRef is no Deployment: use another health.type")
        referred = objects.get(DEPLOYMENT, *key)
        if referred is None:
            return subject.waits("the Deployment of its workloadRef does not exist", says=str(key))
        workload = referred
    if (says := wrong_image(section(workload, "spec", "template", "spec"), promotion.images)) is not None:
        return subject.waits("it does not run the promoted image yet", says=says)
    if workload is not found and text(found, "status", "workloadObservedGeneration") != _generation(workload):
        return subject.waits("the latest generation of its workloadRef is not observed yet")
    if text(found, "status", "observedGeneration") != _generation(found):
        return subject.waits("its latest generation is not observed yet")
    return None


def _generation(found: JsonObject) -> str:
    return str(number(found, "metadata", "generation"))


def _not_promoted(found: JsonObject, subject: Subject) -> Verdict | None:
    """Return the verdict on an incomplete rollout of the promoted images; None when the rollout is complete."""
    status = section(found, "status")
    phase = text(status, "phase")
    says = text(status, "message")
    pauses = entries(status, "pauseConditions")
    if status.get("controllerPause") is True and not pauses:
        return subject.waits("it is about to go on after a pause")
    if phase == "Degraded":
        if status.get("abort") is True:
            return subject.failed("Aborted", "it was aborted and runs the version before", says=says)
        invalid = condition(found, "InvalidSpec")
        reason = "InvalidSpec" if invalid else text(condition(found, "Progressing"), "reason")
        if reason not in ("InvalidSpec", "ProgressDeadlineExceeded"):
            return subject.failed("Degraded", "it is Degraded", says=says)
        return subject.failed(reason, f"it is Degraded ({reason})", says=says)
    if phase == "Paused":
        return subject.waits(_pause(found, pauses), says=says)
    if phase != "Healthy":
        unavailable = text(condition(found, "Available"), "status") == "False"
        return subject.waits("its rollout is under way", says=says, negative=unavailable)
    if text(status, "currentPodHash") != text(status, "stableRS"):
        return subject.waits("the new version is not the stable one yet")
    return None


def _stable(found: JsonObject) -> str | None:
    """Return the template hash of the stable version."""
    stable = text(found, "status", "stableRS")
    return stable if _HASH.fullmatch(stable) else None


def _not_stable(
    found: JsonObject, subject: Subject, promotion: PromotionFacts, objects: WatchedObjects
) -> Verdict | None:
    """Return the verdict if the stable version does not run the promoted images; otherwise None."""
    if not promotion.images:
        return None
    key = key_of(found)
    stable = _stable(found)
    for each in objects.list(REPLICA_SET, key.namespace):
        owner = controller_of(each, ROLLOUT)
        if owner is not None and owner.name == key.name and text(each, "metadata", "labels", _HASH_LABEL) == stable:
            says = wrong_image(section(each, "spec", "template", "spec"), promotion.images)
            return subject.waits("the new version is not the stable one yet", says=says) if says is not None else None
    return subject.waits("the ReplicaSet of its stable version is not seen yet")


def _pause(found: JsonObject, pauses: Sequence[Mapping[str, Any]]) -> str:
    """Return a text that says who or what ends the pause."""
    if section(found, "spec").get("paused") is True:
        return "it is paused by hand, and a person must resume it"
    for pause in pauses:
        if words := _PAUSES.get(text(pause, "reason")):
            return words
    if _duration_of_step(found) is not None:
        return "it is paused for a time, and goes on by itself"
    return "it is paused at a step of its canary, and a person must promote it"


def _duration_of_step(found: JsonObject) -> object:
    """Return the duration of the current pause step of a canary; None for a pause until a person continues."""
    steps = entries(found, "spec", "strategy", "canary", "steps")
    index = number(found, "status", "currentStepIndex")
    if index is None or not 0 <= index < len(steps):
        return None
    return section(steps[index], "pause").get("duration")
