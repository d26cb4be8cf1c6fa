"""Judge a Kustomization: whether it has applied the commit, and whether its applied workloads run.

Right after a push, Ready=True is about the revision before, and only the revision shows that. A Deployment may already
run a bad version while `lastAppliedRevision` is still the one before, because Flux writes that field at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kardinal.objects import JsonObject
from kardinal.promotion.api import PromotionStep
from kardinal_agent.health.delegation import delegate_of
from kardinal_agent.health.fields import entries, number, section, text
from kardinal_agent.health.flux_common import (
    commit_of,
    current,
    given_up,
    is_remote,
    not_ready,
    not_working,
    seen,
    subject_of,
    too_many_workloads,
    workloads_of,
)
from kardinal_agent.health.several import judge_workloads
from kardinal_agent.health.subject import Subject, short_commit
from kardinal_agent.health.verdict import Applied, PromotionFacts, Verdict, Watched, WatchedObjects

__all__ = ["applied_revision", "applied_workloads", "judge_kustomization", "not_applied"]

_FAILURES = frozenset(["BuildFailed", "HealthCheckFailed", "PruneFailed", "ReconciliationFailed"])
"""The reasons of Ready for a failed attempt at a revision; with other reasons there was no attempt."""
_REASONS = {
    "ArtifactFailed": ": its source is missing, or has no such path",
    "DependencyNotReady": ": it waits for other Kustomizations",
    "HealthCheckCanceled": ": it is reconciling",
    "Progressing": ": it is reconciling",
}
"""Explanations for people, by the reason of Ready."""


def applied_workloads(found: JsonObject) -> Sequence[Watched]:
    """Return the workloads that a Kustomization applied in this cluster."""
    return () if is_remote(found) else workloads_of(found)


def judge_kustomization(
    found: JsonObject, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects
) -> Verdict:
    """Return the joined verdict on a Kustomization and its workloads."""
    return replace(_judge(found, step, promotion, objects), attempt=_attempt(found, promotion))


def _judge(found: JsonObject, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Verdict:
    idle = not_working(found) or given_up(found, step)
    if idle is not None:
        return idle
    subject = subject_of(found)
    short = _not_ready(found, subject, promotion)
    running = _workloads(found, subject, step, promotion, objects)
    if short is None:
        return running or subject.proves(f"has applied {short_commit(promotion)} and runs what was promoted")
    if (
        short.state != "failed"
        and running is not None
        and running.state == "failed"
        and has_attempted(found, promotion)
    ):
        return running
    # Between two attempts Flux reports no failure, but the workloads of the commit may be broken all the time.
    broken = running is not None and running.negative and not_applied(found, promotion) is None
    return replace(short, negative=short.negative or broken)


def not_applied(found: JsonObject, promotion: PromotionFacts) -> Verdict | None:
    """Return the verdict if a Kustomization has not applied the commit; otherwise None."""
    subject = subject_of(found)
    revision = _applied(found)
    commit = commit_of(revision)
    reason = _REASONS.get(text(current(found, "Ready"), "reason"), "")
    if commit is None:
        words = "what it has applied names no commit" if revision else "it has applied nothing yet"
        return subject.waits(f"{words}{reason}", says=revision)
    contained = promotion.contains(commit)
    if contained:
        return None
    words = "what it has applied is without" if contained is False else "it is not known whether it has applied"
    says = text(current(found, "Ready"), "message") if reason else revision
    return subject.waits(f"{words} {short_commit(promotion)}{reason}", says=says)


def applied_revision(found: JsonObject) -> Applied | str:
    """Return what a Kustomization has applied, or why that is unknown.

    Flux writes the applied revision only after it has applied all of it. While it reconciles, Ready is Unknown.
    """
    idle = not_working(found)
    if idle is not None:
        return idle.message
    title = subject_of(found).title
    commit = commit_of(_applied(found))
    if commit is None:
        return f"what {title} has applied names no commit"
    return Applied(title=title, revisions=[commit], out_of_sync=not_ready(found))


def has_attempted(found: JsonObject, promotion: PromotionFacts) -> bool:
    """Return whether the last attempt was at a revision with the commit."""
    commit = _attempted(found)
    return commit is not None and promotion.contains(commit) is True


def _attempt(found: JsonObject, promotion: PromotionFacts) -> str:
    """Return the spec and revision that Flux tries again after a failure, as a text to compare.

    It is empty for a revision without the commit. During a retry, Ready goes from False to Unknown and back to False.
    """
    return f"{number(found, 'metadata', 'generation')}/{_attempted(found)}" if has_attempted(found, promotion) else ""


def _attempted(found: JsonObject) -> str | None:
    """Return the commit of the last attempted revision; None if the revision names none."""
    attempted = text(found, "status", "lastAttemptedRevision")
    latest = next(iter(entries(found, "status", "history")), {})
    if text(latest, "metadata", "revision") == attempted:
        attempted = text(latest, "metadata", "originRevision") or attempted
    return commit_of(attempted)


def _applied(found: JsonObject) -> str:
    """Return the applied revision; for an OCI artifact, the revision of Git that it was built from, if known."""
    origin = text(found, "status", "lastAppliedOriginRevision")
    return origin if commit_of(origin) else text(found, "status", "lastAppliedRevision")


def _not_ready(found: JsonObject, subject: Subject, promotion: PromotionFacts) -> Verdict | None:
    ready = current(found, "Ready")
    reason = text(ready, "reason")
    says = text(ready, "message")
    if ready.get("status") == "False" and reason in _FAILURES and has_attempted(found, promotion):
        words = f"Flux could not bring {short_commit(promotion)} up ({reason})"
        return subject.failed(reason, words, says=says, negative=reason == "HealthCheckFailed")
    missing = not_applied(found, promotion)
    if missing is not None:
        return missing
    if ready.get("status") != "True":
        return subject.waits(f"it is not Ready{_REASONS.get(reason, '')}", says=says)
    return None


def _workloads(
    found: JsonObject, subject: Subject, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects
) -> Verdict | None:
    """Return the verdict on the workloads; None when they are healthy.

    Workloads in another cluster are judged by the health checks of Flux alone, if it makes any.
    """
    if not is_remote(found):
        workloads = seen(applied_workloads(found), objects)
        delegated = delegate_of(step) is not None
        return too_many_workloads(found) or judge_workloads(subject, workloads, promotion.images, delegated=delegated)
    spec = section(found, "spec")
    if spec.get("wait") is True or entries(spec, "healthChecks"):
        return None
    return subject.waits("its workloads are in another cluster, and it does not wait for them: set spec.wait in it")
