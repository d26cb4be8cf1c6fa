"""Adapter `flagger`: a Canary that has succeeded, with the promoted images in its target and in its primary.

GitOps tools change the target, a Deployment for example; Flagger analyses it and copies it to `<target>-primary`, which
serves the traffic. The phase of a Canary is that of the last analysis. Flagger notes the analysed spec only as a
checksum that no other program can compute. A success is therefore proved by the images of the primary, and a failure
counts if it came after the landing and after the target changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.objects import DAEMON_SET, DEPLOYMENT, JsonObject, Key, ResourceType, key_of
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health_adapters import FLAGGER
from kardinal_agent.health.fields import condition, moment, section, text
from kardinal_agent.health.pods import judge_pods, pods_of
from kardinal_agent.health.subject import Subject
from kardinal_agent.health.templates import wrong_image
from kardinal_agent.health.verdict import Adapter, PromotionFacts, Verdict, Watched, WatchedObjects, absent, progressing
from kardinal_agent.health.workloads import judge_workload

__all__ = ["CANARY", "Flagger"]

CANARY = ResourceType("flagger.app", "v1beta1", "Canary", "canaries")

_TARGETS = {kind.kind: kind for kind in (DEPLOYMENT, DAEMON_SET)}

_PHASES = {
    "": "Flagger has not looked at it yet",
    "Initializing": "Flagger makes its primary",
    "Progressing": "Flagger analyses the new version",
    "Promoting": "Flagger rolls the new version out to the primary",
    "Finalising": "Flagger routes the traffic to the primary",
    "Terminated": "Flagger has let go of it",
    "Terminating": "Flagger lets go of it",
    "Waiting": "Flagger waits for the approval to start: a person must open its confirm-rollout gate",
    "WaitingPromotion": "Flagger waits for the approval to promote: a person must open its confirm-promotion gate",
}
"""The phases without a result, with the words for them."""


class Flagger(Adapter):
    """Judges the Canary in `health.flagger` of the PromotionStep."""

    name = FLAGGER.name
    phases = frozenset([*_PHASES, "Failed", "Initialized", "Succeeded"]) - {""}

    def watches(self, step: PromotionStep) -> Sequence[Watched]:
        key = _named(step)
        return (Watched(kind=CANARY, namespace=key.namespace, name=key.name),) if key is not None else ()

    def related(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Sequence[Watched]:
        """Return target and primary, and the pods of a version in progress.

        Only pods report that an image cannot be pulled before the progress deadline passes.
        """
        key = _named(step)
        found = objects.get(CANARY, *key) if key is not None else None
        target = _target(found) if found is not None else None
        if found is None or target is None:
            return ()
        kind, own = target
        watched = [Watched(kind=kind, namespace=each.namespace, name=each.name) for each in (own, _primary(own))]
        workload = objects.get(kind, *own)
        pods = pods_of(workload) if workload is not None else None
        late = pods is not None and self._judged(step, found, promotion, objects).state != "healthy"
        return [*watched, *([pods] if pods is not None and late else [])]

    def judge(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Verdict:
        key = _named(step)
        if key is None:
            return progressing("health.flagger names no Canary")
        found = objects.get(CANARY, *key)
        if found is None:
            return absent(CANARY, key, field="health.flagger.name")
        verdict = self._judged(step, found, promotion, objects)
        named = _target(found)
        target = objects.get(named[0], *named[1]) if named is not None else None
        if target is None:
            return verdict
        return judge_pods(target, promotion.images, objects, named=True, otherwise=verdict)

    def _judged(
        self, step: PromotionStep, found: JsonObject, promotion: PromotionFacts, objects: WatchedObjects
    ) -> Verdict:
        subject = Subject(f"Canary {key_of(found)}", moment(found, "status", "lastTransitionTime"))
        if not promotion.images and step.spec.health.type == self.name:
            return subject.waits("it does not tell which commit it runs, and no image is promoted: use argocd or flux")
        return _judge(found, subject, step, promotion, objects)


def _named(step: PromotionStep) -> Key | None:
    reference = step.spec.health.flagger
    if reference is None:
        return None
    return Key(reference.namespace or step.spec.environment, reference.name)


def _target(found: JsonObject) -> tuple[ResourceType, Key] | None:
    """Return kind and key of the target; None for a kind without a pod template."""
    reference = section(found, "spec", "targetRef")
    kind = _TARGETS.get(text(reference, "kind"))
    return (kind, Key(key_of(found).namespace, text(reference, "name"))) if kind is not None else None


def _primary(target: Key) -> Key:
    return Key(target.namespace, f"{target.name}-primary")


def _judge(
    found: JsonObject, subject: Subject, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects
) -> Verdict:
    if "deletionTimestamp" in found["metadata"]:
        return subject.waits("it is being deleted")
    if section(found, "spec").get("suspend") is True:
        return subject.waits("it is suspended: a person must resume it")
    named = _target(found)
    if named is None:
        return subject.waits("its target is neither a Deployment nor a DaemonSet: use another health.type")
    kind, key = named
    target = objects.get(kind, *key)
    primary = objects.get(kind, *_primary(key))
    if target is None:
        return subject.waits("its target does not exist", says=f"{kind.kind} {key}")
    if (says := wrong_image(section(target, "spec", "template", "spec"), promotion.images)) is not None:
        return subject.waits("its target does not run the promoted image yet", says=says)
    phase = text(found, "status", "phase")
    if phase in ("Succeeded", "Initialized") or (phase == "Failed" and _is_promoted(found)):
        return _proof(subject, primary, promotion)
    if phase != "Failed":
        words = _PHASES.get(phase, "its phase is not known")
        return subject.waits(words, says=text(condition(found, "Promoted"), "message"))
    if not _has_looked(found, target, step):
        return subject.waits("a version before has failed, and Flagger has not looked at this one yet")
    return subject.failed(
        "CanaryFailed",
        "its analysis failed, and the primary runs the version before",
        says=text(condition(found, "Promoted"), "message"),
    )


def _is_promoted(found: JsonObject) -> bool:
    """Return whether Flagger has nothing to analyse, because the target has the version of the primary."""
    applied = text(found, "status", "lastAppliedSpec")
    return bool(applied) and applied == text(found, "status", "lastPromotedSpec")


def _proof(subject: Subject, primary: JsonObject | None, promotion: PromotionFacts) -> Verdict:
    """Return the verdict on the primary, which runs the version that Flagger has promoted."""
    if primary is None:
        return subject.waits("its primary does not exist")
    if wrong_image(section(primary, "spec", "template", "spec"), promotion.images) is not None:
        return subject.waits("Flagger has not taken up the new version yet")
    running = judge_workload(primary, promotion.images)
    says = running.details or running.message
    if running.state == "failed":
        return subject.failed(running.reason, "the rollout of its primary failed", says=says)
    if running.state == "progressing":
        return subject.waits("its primary is not there yet", says=says, negative=running.negative)
    return subject.proves(" ".join(["runs", ", ".join(map(str, promotion.images)) or "as it should"]))


def _has_looked(found: JsonObject, target: JsonObject, step: PromotionStep) -> bool:
    """Return whether the failure came after the landing, and Flagger has analysed the target since its last rollout.

    Flagger notes the time of a failure and, while the Canary is Failed, the time of each analysis. A Deployment notes
    the time of its last rollout.
    """
    landed = step.status.merged_at or step.status.promoted_at
    failed_at = moment(condition(found, "Promoted"), "lastTransitionTime")
    if landed is None or failed_at is None or failed_at <= landed:
        return False
    looked = moment(found, "status", "lastTransitionTime")
    changed = moment(condition(target, "Progressing"), "lastUpdateTime")
    return changed is None or (looked is not None and looked > changed)
