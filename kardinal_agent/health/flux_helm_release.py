"""Judge a HelmRelease: whether it has the contents of the commit, and whether its released workloads run.

A HelmRelease names charts and values, and no commit of Git. The commit is known from the Kustomization that applied the
HelmRelease, which Flux names in its labels; the release itself is described by its history, newest first. Without a
Kustomization, images and charts are the proof, and a promotion with neither cannot be proved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.bundle import Chart
from kardinal_agent.health.delegation import delegate_of
from kardinal_agent.health.fields import entries, number, section, text
from kardinal_agent.health.flux_common import (
    KUSTOMIZATION,
    current,
    given_up,
    inventory,
    is_remote,
    not_ready,
    not_working,
    seen,
    subject_of,
    too_many_workloads,
    workloads_of,
)
from kardinal_agent.health.flux_kustomization import applied_revision, not_applied
from kardinal_agent.health.several import judge_workloads
from kardinal_agent.health.subject import Subject, short_commit
from kardinal_agent.health.verdict import Applied, PromotionFacts, Verdict, Watched, WatchedObjects
from kardinal_agent.health.workloads import WORKLOADS

__all__ = ["applied_release", "applier", "judge_helm_release", "released_workloads"]

_REASONS = {
    "ArtifactFailed": ": its chart cannot be fetched",
    "DependencyNotReady": ": it waits for other HelmReleases",
    "InstallFailed": ": its installation failed and is tried again",
    "Progressing": ": it is reconciling",
    "RollbackSucceeded": ": it was rolled back to the release before",
    "TestFailed": ": its tests failed and it is tried again",
    "UninstallSucceeded": ": it was uninstalled after a failure",
    "UpgradeFailed": ": its upgrade failed and is tried again",
}
"""Explanations for people, by the reason of Ready."""


def applier(found: JsonObject) -> Key | None:
    """Return the Kustomization that applied an object, by the labels that Flux sets."""
    labels = section(found, "metadata", "labels")
    name, namespace = (labels.get(f"{KUSTOMIZATION.group}/{each}") for each in ("name", "namespace"))
    return Key(namespace, name) if isinstance(name, str) and isinstance(namespace, str) else None


def released_workloads(found: JsonObject) -> Sequence[Watched]:
    """Return the workloads of a release in this cluster: by its inventory, or by labels for versions without one."""
    if is_remote(found):
        return ()
    if inventory(found):
        return workloads_of(found)
    own = key_of(found)
    labels = {"helm.toolkit.fluxcd.io/name": own.name, "helm.toolkit.fluxcd.io/namespace": own.namespace}
    namespace = text(found, "spec", "targetNamespace") or own.namespace
    return [Watched(kind=kind, namespace=namespace, selector=labels) for kind in WORKLOADS.values()]


def judge_helm_release(
    found: JsonObject, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects
) -> Verdict:
    """Return the verdict on a HelmRelease, on the Kustomization that applied it, and on its workloads."""
    idle = not_working(found) or given_up(found, step)
    if idle is not None:
        return idle
    subject = subject_of(found)
    running = _workloads(found, subject, step, promotion, objects)
    if running is not None and running.state == "failed" and promotion.images:
        return running  # Its template has the promoted image, so the failure is that of the promoted version.
    foreign = _not_of_commit(found, subject, promotion, objects)
    short = foreign or _not_released(found, subject, promotion.charts)
    if short is None:
        return running or subject.proves("is released and runs what was promoted")
    # Helm may be upgrading a release whose running version is broken.
    broken = running is not None and running.negative and foreign is None
    return replace(short, negative=short.negative or broken)


def applied_release(found: JsonObject, objects: WatchedObjects) -> Applied | str:
    """Return what the Kustomization that applied a HelmRelease has applied, or why that is unknown."""
    idle = not_working(found)
    if idle is not None:
        return idle.message
    title = subject_of(found).title
    owner = applier(found)
    kustomization = objects.get(KUSTOMIZATION, *owner) if owner is not None else None
    if kustomization is None:
        return f"no Kustomization that can be seen tells of which commit {title} is"
    above = applied_revision(kustomization)
    if isinstance(above, str) or not (failed := not_ready(found)):
        return above
    return replace(above, title=title, out_of_sync=failed)


def _not_of_commit(
    found: JsonObject, subject: Subject, promotion: PromotionFacts, objects: WatchedObjects
) -> Verdict | None:
    """Return the verdict if the HelmRelease is not known to have the contents of the commit; otherwise None."""
    owner = applier(found)
    if owner is None:
        if promotion.images or promotion.charts:
            return None
        return subject.waits(f"nothing tells whether it is of {short_commit(promotion)}: name a Kustomization instead")
    kustomization = objects.get(KUSTOMIZATION, *owner)
    if kustomization is None:
        return subject.waits("the Kustomization that applied it cannot be seen", says=str(owner))
    missing = not_applied(kustomization, promotion)
    if missing is None:
        return None
    return subject.waits("the Kustomization of it has not applied the commit", says=missing.details)


def _not_released(found: JsonObject, subject: Subject, charts: Sequence[Chart]) -> Verdict | None:
    """Return the verdict if the newest release is not deployed, or has another chart; otherwise None."""
    ready = current(found, "Ready")
    observed = number(found, "status", "observedGeneration") == number(found, "metadata", "generation")
    if ready.get("status") != "True" or not observed:
        released = current(found, "Released")
        says = text(released if released.get("status") == "False" else ready, "message")
        return subject.waits(f"it is not Ready{_REASONS.get(text(ready, 'reason'), '')}", says=says)
    newest = next(iter(entries(found, "status", "history")), {})
    if text(newest, "status") != "deployed":
        return subject.waits("its newest release is not deployed")
    for chart in charts:
        if not _is_chart(newest, chart):
            title = f"{text(newest, 'chartName')} {text(newest, 'chartVersion')}"
            return subject.waits(f"its newest release is not chart {chart.name} {chart.version}", says=title)
    return None


def _is_chart(release: Mapping[str, Any], chart: Chart) -> bool:
    """Return whether a release has the chart and version; Flux adds `+<digest>` to the version of an OCI artifact."""
    if text(release, "chartName") != chart.name:
        return False
    if chart.digest is not None:
        return text(release, "ociDigest") == chart.digest
    version = text(release, "chartVersion")
    return chart.version in (version, version.partition("+")[0])


def _workloads(
    found: JsonObject, subject: Subject, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects
) -> Verdict | None:
    """Return the verdict on the workloads; None when they run the promoted images.

    Workloads in another cluster are waited for by Helm, and their images are unknown here.
    """
    if is_remote(found):
        if promotion.images:
            return subject.waits("its workloads are in another cluster, so nothing tells which images they run")
        return None
    workloads: list[JsonObject | None] = []
    for watched in released_workloads(found):
        if watched.selector is None:
            workloads += seen([watched], objects)
        else:
            workloads += [each for each in objects.list(watched.kind, watched.namespace) if _has_labels(each, watched)]
    delegated = delegate_of(step) is not None
    return too_many_workloads(found) or judge_workloads(subject, workloads, promotion.images, delegated=delegated)


def _has_labels(found: JsonObject, watched: Watched) -> bool:
    labels = section(found, "metadata", "labels")
    return all(labels.get(name) == value for name, value in (watched.selector or {}).items())
