"""Objects are watched each by itself, so any version of one is seen beside any version of another.

Each object goes through its versions in order, from the version before to the promoted one. In every combination of
what is seen, a proof is one of the promoted version, and no failure is told on the way.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import product

from kardinal.objects import JsonObject
from kardinal_agent.health import Adapter, Verdict
from kardinal_agent.health.argo_rollouts import ArgoRollouts
from kardinal_agent.health.flagger import Flagger
from kardinal_agent.health.flux import Flux
from tests.health.flux_cases import helm_release, is_, kustomization
from tests.health.rollout_cases import canary, replica_set, rollout
from tests.health.tools import (
    BEFORE,
    COMMIT,
    NEW,
    OLD,
    Change,
    change,
    deployment,
    judged,
    promotion,
    promotion_step,
    remove,
)

ROLLED_OUT = deployment(NEW, generation=5)
WORKLOAD = (
    deployment(OLD),
    {**deployment(NEW, generation=5), "status": deployment(OLD)["status"]},
    deployment(NEW, generation=5, updatedReplicas=1, replicas=3),
    ROLLED_OUT,
)
"""The version before, the template alone, a rollout under way, and the end of it."""


def versions(made: JsonObject, *steps: Sequence[Change]) -> list[JsonObject]:
    """Return an object after each step of changes that add up."""
    found = [copy.deepcopy(made)]
    for changes in steps:
        found.append(copy.deepcopy(found[-1]))
        for each in changes:
            each(found[-1])
    return found[1:]


def every_order(adapter: Adapter, health: JsonObject, *sequences: Sequence[JsonObject]) -> list[Verdict]:
    """Return the verdict on every combination; the last one is that of all objects at their end."""
    step = promotion_step(health)
    return [judged(adapter, step, promotion(NEW), *found) for found in product(*sequences)]


def test_a_canary_its_target_and_its_primary_in_every_order() -> None:
    canaries = versions(
        canary(),
        [change("status", "lastTransitionTime", to="2026-11-21T10:00:00Z")],
        [change("status", "phase", to="Progressing"), change("status", "lastAppliedSpec", to="54c8f9d7b")],
        [change("status", "phase", to="Promoting")],
        [change("status", "phase", to="Finalising")],
        [change("status", "phase", to="Succeeded"), change("status", "lastPromotedSpec", to="54c8f9d7b")],
    )
    targets = [deployment(OLD), deployment(NEW, generation=5)]
    primaries = [{**each, "metadata": {**each["metadata"], "name": "app-primary"}} for each in WORKLOAD]
    health = {"type": "flagger", "flagger": {"name": "app", "namespace": "prod"}}
    seen = every_order(Flagger(), health, canaries, targets, primaries)
    combinations = list(product(canaries, targets, primaries))
    assert {each.state for each in seen} == {"progressing", "healthy"}
    assert seen[-1].state == "healthy"
    for verdict, (_, target, primary) in zip(seen, combinations, strict=True):
        assert verdict.state != "healthy" or (target is targets[-1] and primary is primaries[-1])


def test_a_release_its_kustomization_and_its_workload_in_every_order() -> None:
    kustomizations = versions(
        kustomization(),
        [change("status", "lastAppliedRevision", to=f"main@sha1:{BEFORE}")],
        [is_("Unknown", "Progressing")],
        [is_("True", "ReconciliationSucceeded")],
        [change("status", "lastAppliedRevision", to=f"main@sha1:{COMMIT}")],
    )
    releases = versions(
        helm_release(),
        [],
        [change("metadata", "generation", to=4)],
        [is_("Unknown", "Progressing", generation=4)],
        [is_("True", "UpgradeSucceeded", generation=4)],
        [change("status", "observedGeneration", to=4)],
    )
    health = {"type": "flux", "flux": {"kind": "HelmRelease", "name": "app", "namespace": "prod"}}
    seen = every_order(Flux(), health, kustomizations, releases, WORKLOAD)
    combinations = list(product(kustomizations, releases, WORKLOAD))
    assert {each.state for each in seen} == {"progressing", "healthy"}
    assert seen[-1].state == "healthy"
    for verdict, (above, _, workload) in zip(seen, combinations, strict=True):
        assert verdict.state != "healthy" or (above is kustomizations[-1] and workload is ROLLED_OUT)


def test_a_rollout_and_the_workload_it_refers_to_in_every_order() -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "app"}
    start = [remove("spec", "template"), change("spec", "workloadRef", to=reference)]
    before = [change("status", name, to="old") for name in ("currentPodHash", "stableRS")]
    rollouts = versions(
        rollout(),
        [*start, *before, change("status", "workloadObservedGeneration", to="4")],
        # Healthy of the version before, at the generation of this one, for some milliseconds.
        [change("status", "workloadObservedGeneration", to="5")],
        [change("status", "phase", to="Progressing"), change("status", "currentPodHash", to="789746c88d")],
        [change("status", "phase", to="Paused")],
        [change("status", "phase", to="Progressing")],
        [change("status", "phase", to="Healthy"), change("status", "stableRS", to="789746c88d")],
    )
    health = {"type": "argoRollouts", "argoRollouts": {"name": "app", "namespace": "prod"}}
    sets = (replica_set(OLD, hash_="old"), replica_set(NEW))
    seen = every_order(ArgoRollouts(), health, rollouts, WORKLOAD, sets)
    assert {each.state for each in seen} == {"progressing", "healthy"}
    assert seen[-1].state == "healthy"
    for verdict, (found, workload, made) in zip(seen, product(rollouts, WORKLOAD, sets), strict=True):
        proved = found is rollouts[-1] and workload is not WORKLOAD[0] and made is sets[-1]
        assert verdict.state != "healthy" or proved
