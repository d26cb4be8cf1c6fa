"""Adapter `flux`: a Kustomization that has applied the commit, or a HelmRelease that a Kustomization has.

Flux moves the parts of its answer one by one: Ready turns True some milliseconds before the applied revision does. So
a healthy verdict must last for a second. Nothing in a Kustomization says that its workloads run, unless it waits for
them; the workloads that it applied are therefore judged as well, and so are those of a HelmRelease.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.api import PromotionStep
from kardinal.objects import JsonObject, Key
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION
from kardinal_agent.health.flux_helm_release import applier, judge_helm_release, released_workloads
from kardinal_agent.health.flux_kustomization import applied_workloads, judge_kustomization
from kardinal_agent.health.verdict import Adapter, Objects, Promotion, Verdict, Watched, absent, progressing

__all__ = ["Flux"]

_KINDS = {kind.kind: kind for kind in (KUSTOMIZATION, HELM_RELEASE)}


class Flux(Adapter):
    """Judges the Kustomization or HelmRelease that the PromotionStep names."""

    name = "flux"
    confirm_seconds = 1.0

    def watches(self, step: PromotionStep) -> Sequence[Watched]:
        named = _named(step)
        if named is None:
            return ()
        kind, key = named
        return (Watched(kind=_KINDS[kind], namespace=key.namespace, name=key.name),)

    def related(self, step: PromotionStep, promotion: Promotion, objects: Objects) -> Sequence[Watched]:
        named, found = _named(step), _found(step, objects)
        if named is None or found is None:
            return ()
        if named[0] == KUSTOMIZATION.kind:
            return applied_workloads(found)
        owner = applier(found)
        above = [Watched(kind=KUSTOMIZATION, namespace=owner.namespace, name=owner.name)] if owner is not None else []
        return [*above, *released_workloads(found)]

    def judge(self, step: PromotionStep, promotion: Promotion, objects: Objects) -> Verdict:
        named = _named(step)
        if named is None:
            return progressing("health.flux names no object")
        found = _found(step, objects)
        if found is None:
            return absent(_KINDS[named[0]], named[1], field="health.flux.name")
        judge = judge_kustomization if named[0] == KUSTOMIZATION.kind else judge_helm_release
        return judge(found, step, promotion, objects)


def _named(step: PromotionStep) -> tuple[str, Key] | None:
    reference = step.spec.health.flux
    if reference is None:
        return None
    return reference.kind, Key(reference.namespace, reference.name)


def _found(step: PromotionStep, objects: Objects) -> JsonObject | None:
    named = _named(step)
    return objects.get(_KINDS[named[0]], *named[1]) if named is not None else None
