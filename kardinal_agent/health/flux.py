"""Adapter `flux`: a Kustomization that has applied the commit, or a HelmRelease that such a Kustomization applied.

Flux writes the parts of its status one by one: Ready becomes True some milliseconds before the applied revision
changes, so a healthy verdict must last for a second. A Kustomization without `wait` does not report whether its
workloads run; the workloads that it applied are therefore judged, too, and so are those of a HelmRelease.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.objects import JsonObject, Key
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health_adapters import FLUX
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION
from kardinal_agent.health.flux_helm_release import applied_release, applier, judge_helm_release, released_workloads
from kardinal_agent.health.flux_kustomization import applied_revision, applied_workloads, judge_kustomization
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

__all__ = ["Flux"]

_KINDS = {kind.kind: kind for kind in (KUSTOMIZATION, HELM_RELEASE)}


class Flux(Adapter):
    """Judges the Kustomization or HelmRelease in `health.flux` of the PromotionStep."""

    name = FLUX.name
    confirm_seconds = 1.0

    def watches(self, step: PromotionStep) -> Sequence[Watched]:
        named = _named(step)
        if named is None:
            return ()
        kind, key = named
        return (Watched(kind=_KINDS[kind], namespace=key.namespace, name=key.name),)

    def related(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Sequence[Watched]:
        named = _named(step)
        found = _found(step, objects)
        if named is None or found is None:
            return ()
        if named[0] == KUSTOMIZATION.kind:
            return applied_workloads(found)
        owner = applier(found)
        above = [Watched(kind=KUSTOMIZATION, namespace=owner.namespace, name=owner.name)] if owner is not None else []
        return [*above, *released_workloads(found)]

    def judge(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Verdict:
        named = _named(step)
        if named is None:
            return progressing("health.flux names no object")
        found = _found(step, objects)
        if found is None:
            return absent(_KINDS[named[0]], named[1], field="health.flux.name")
        judge = judge_kustomization if named[0] == KUSTOMIZATION.kind else judge_helm_release
        return judge(found, step, promotion, objects)

    def applied(self, step: PromotionStep, promotion: PromotionFacts, objects: WatchedObjects) -> Applied | str:
        found = _found(step, objects)
        if found is None:
            return self.judge(step, promotion, objects).message
        return applied_revision(found) if found["kind"] == KUSTOMIZATION.kind else applied_release(found, objects)


def _named(step: PromotionStep) -> tuple[str, Key] | None:
    reference = step.spec.health.flux
    if reference is None:
        return None
    return reference.kind, Key(reference.namespace, reference.name)


def _found(step: PromotionStep, objects: WatchedObjects) -> JsonObject | None:
    named = _named(step)
    return objects.get(_KINDS[named[0]], *named[1]) if named is not None else None
