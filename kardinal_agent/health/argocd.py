"""Adapter `argocd`: an Application that is Synced to the commit, Healthy, and at rest.

Right after a push, an Application still reports Synced and Healthy for the version before, and after a sync it reports
Succeeded before its health is assessed again. The proof is therefore one observation with all three: Synced to a
revision that contains the commit, Healthy, and no operation in progress. The health of an Application does not include
the Applications that it deploys, so these are judged, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.objects import Key
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health_adapters import ARGOCD
from kardinal_agent.health.argocd_application import APPLICATION, Application
from kardinal_agent.health.fields import moment, number, text
from kardinal_agent.health.subject import Subject, short_commit
from kardinal_agent.health.verdict import (
    Adapter,
    Applied,
    PromotionFacts,
    Verdict,
    Watched,
    WatchedObjects,
    absent,
    progressing,
)

__all__ = ["ArgoCD"]

_MOST_APPLICATIONS = 50
"""The most deployed Applications that are judged."""

_HEALTH = {
    "": "its health has not been assessed",
    "Missing": "objects of it are Missing",
    "Progressing": "it is Progressing",
    "Suspended": "it is Suspended: a person must resume what is paused",
    "Unknown": "its health is Unknown",
}


class ArgoCD(Adapter):
    """Judges the Application in `health.argocd` of the PromotionStep."""

    name = ARGOCD.name

    def watches(self, step: PromotionStep) -> Sequence[Watched]:
        key = _named(step)
        return (_watched(key),) if key is not None else ()

    def related(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Sequence[Watched]:
        key = _named(step)
        found = objects.get(APPLICATION, *key) if key is not None else None
        return [_watched(each) for each in Application(found).applications[:_MOST_APPLICATIONS]] if found else ()

    def judge(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Verdict:
        key = _named(step)
        if key is None:
            return progressing("health.argocd names no Application")
        found = objects.get(APPLICATION, *key)
        if found is None:
            return absent(APPLICATION, key, field="health.argocd.name")
        application = Application(found)
        return (
            _not_compared(application)
            or _not_our_commit(application, promotion)
            or _not_synced(application, short_commit(promotion))
            or _not_healthy(application)
            or _not_below(application, promotion, objects)
            or Subject(application.title).proves(f"is Synced to {short_commit(promotion)} and Healthy")
        )

    def applied(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Applied | str:
        key = _named(step)
        found = objects.get(APPLICATION, *key) if key is not None else None
        if found is None:
            return self.judge(step, promotion, objects).message
        application = Application(found)
        revisions = _not_compared(application) or _compared(application, promotion)
        if isinstance(revisions, Verdict):
            return revisions.message
        if application.sync_status not in ("Synced", "OutOfSync"):
            return f"the sync status of {application.title} is Unknown"
        out_of_sync = "is OutOfSync" if application.sync_status == "OutOfSync" else ""
        return Applied(title=application.title, revisions=revisions, out_of_sync=out_of_sync)


def _named(step: PromotionStep) -> Key | None:
    reference = step.spec.health.argocd
    return Key(reference.namespace, reference.name) if reference is not None else None


def _watched(key: Key) -> Watched:
    return Watched(kind=APPLICATION, namespace=key.namespace, name=key.name)


def _not_compared(application: Application) -> Verdict | None:
    """Return the verdict if the status is not based on a comparison with the current spec; otherwise None."""
    subject = _subject(application)
    if "deletionTimestamp" in application.found["metadata"]:
        return subject.waits("it is being deleted")
    if application.is_skipped:
        return subject.waits("its annotation argocd.argoproj.io/skip-reconcile freezes it: a person must remove it")
    error = application.comparison_error
    if error and (application.sync_status != "Synced" or not all(application.revisions)):
        return subject.waits(
            f"Argo CD cannot compare it ({error['type']}): correct its source", says=text(error, "message")
        )
    return None


def _compared(application: Application, promotion: PromotionFacts) -> Sequence[str] | Verdict:
    """Return the compared revisions of the repository; a verdict if there is none for each source that reads it."""
    subject = _subject(application)
    if application.is_hydrated:
        return subject.waits("it has a sourceHydrator, whose commits are not followed: use another health.type")
    indexes = application.own_sources(promotion)
    if not indexes:
        return subject.waits("none of its sources is the repository of this Pipeline: set health.argocd.name")
    revisions = [application.revisions[index] for index in indexes if index < len(application.revisions)]
    if len(revisions) < len(indexes) or not all(revisions) or not all(map(application.was_compared, indexes)):
        return subject.waits("Argo CD has not compared its source yet")
    return revisions


def _not_our_commit(application: Application, promotion: PromotionFacts) -> Verdict | None:
    subject = _subject(application)
    revisions = _compared(application, promotion)
    if isinstance(revisions, Verdict):
        return revisions
    for revision in revisions:
        contained = promotion.contains(revision)
        if not contained:
            words = "it is compared with a revision without" if contained is False else "it is not known whether it has"
            return subject.waits(f"{words} {short_commit(promotion)}", says=revision)
    return None


def _not_synced(application: Application, commit: str) -> Verdict | None:
    """Return the verdict if the Application is not Synced to a revision with the commit; otherwise None."""
    subject = _subject(application)
    operation = application.operation
    degraded = application.health == "Degraded"
    if application.is_operating:
        attempt = " and is tried again after a failure" if number(operation, "retryCount") else ""
        return subject.waits(f"a sync is under way{attempt}", says=text(operation, "message"), negative=degraded)
    if application.sync_failed:
        return subject.failed(
            "SyncFailed", f"the sync of {commit} failed", says=text(operation, "message"), negative=degraded
        )
    if application.sync_status == "Synced":
        return None
    if application.sync_status != "OutOfSync":
        return subject.waits("its sync status is Unknown", negative=degraded)
    if not application.syncs_itself:
        words = "it is OutOfSync and has no automated sync: a person must sync it"
    elif application.prunes_only:
        words = "it is OutOfSync by objects that Git no longer has: a person must sync it with prune, or set prune"
    elif application.may_be_left:
        words = "it is OutOfSync, and Argo CD may leave several sources so: a person must sync it, or set selfHeal"
    else:
        words = "it is OutOfSync"
    return subject.waits(words, negative=degraded)


def _not_healthy(application: Application) -> Verdict | None:
    subject = _subject(application)
    health = application.health
    if health == "Healthy":
        return None
    says = text(application.found, "status", "health", "message")
    if health == "Degraded":
        return subject.failed("Degraded", "it is Degraded", says=says)
    return subject.waits(_HEALTH.get(health, "it is not Healthy"), says=says)


def _not_below(application: Application, promotion: PromotionFacts, objects: WatchedObjects) -> Verdict | None:
    """Return the verdict on the Applications that `application` deploys; None when all are healthy.

    Their specs are those of the commit, because `application` is Synced. Only a comparison after that time counts.
    """
    subject = _subject(application)
    if len(application.applications) > _MOST_APPLICATIONS:
        return subject.waits(f"it deploys more than {_MOST_APPLICATIONS} Applications: name one of them")
    synced_at = moment(application.operation, "finishedAt")
    for key in application.applications:
        found = objects.get(APPLICATION, *key)
        if found is None:
            return subject.waits("an Application that it deploys cannot be seen", says=str(key))
        child = Application(found)
        compared_at = moment(found, "status", "reconciledAt")
        if child.applications:
            return subject.waits("an Application that it deploys deploys others: name that one", says=str(key))
        if synced_at is not None and (compared_at is None or compared_at < synced_at):
            return subject.waits("Argo CD has not compared an Application since it deployed it", says=str(key))
        short = _not_compared(child) or _stale(child, promotion) or _not_synced(child, "it") or _not_healthy(child)
        if short is not None:
            return _of_parent(subject, short)
    return None


def _stale(child: Application, promotion: PromotionFacts) -> Verdict | None:
    """Return the verdict if a deployed Application was not compared since the landing; otherwise None.

    A deployed Application may read another repository, so its revision is not compared with the commit.
    """
    if child.own_sources(promotion):
        return _not_our_commit(child, promotion)
    if not all(child.revisions) or not all(child.was_compared(index) for index, _ in enumerate(child.sources)):
        return _subject(child).waits("Argo CD has not compared its source yet")
    return None


def _of_parent(subject: Subject, short: Verdict) -> Verdict:
    """Return the verdict on a deployed Application as a verdict on its parent, the one that the Pipeline names."""
    says = short.details or short.message
    if short.state == "failed":
        return subject.failed(short.reason, "an Application that it deploys has failed", says=says)
    words = "an Application that it deploys is not there yet"
    if short.needs_person:
        words = "a person must act on an Application that it deploys"
    return subject.waits(words, says=says, negative=short.negative)


def _subject(application: Application) -> Subject:
    return Subject(application.title, application.since)
