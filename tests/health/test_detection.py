"""Which objects deploy an environment, and that what is noted of them is all that counts afterwards."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kardinal.objects import JsonObject, Key
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health import HealthStatus
from kardinal_agent.health import WatchedObjects, undetected
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_agent.health.detection import GIT_REPOSITORY, Detected, deployers, detected, settled
from kardinal_agent.health.flux_common import HELM_RELEASE, KUSTOMIZATION
from tests.health.argocd_cases import application
from tests.health.flux_cases import helm_release, kustomization
from tests.health.tools import REPOSITORY, change, promotion_step, remove

SOURCE = ("spec", "source")
STEP = promotion_step({"timeout": "10m"})
"""A step of environment prod at `apps/prod` of branch main, whose health names nothing."""


def git_repository(**ref: str) -> JsonObject:
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": "config", "namespace": "flux-system"},
        "spec": {"url": REPOSITORY, "ref": ref or {"branch": "main"}},
    }


def sourced_kustomization(**spec: Any) -> JsonObject:
    """Return a Kustomization that reads the repository."""
    made = kustomization()
    made["spec"] |= {"sourceRef": {"kind": "GitRepository", "name": "config"}, **spec}
    return made


def sourced_release(**chart: Any) -> JsonObject:
    """Return a HelmRelease whose chart is in the repository."""
    made = helm_release()
    source = {"kind": "GitRepository", "name": "config", "namespace": "flux-system"}
    made["spec"] = {"chart": {"spec": {"chart": "./apps/prod", "sourceRef": source, **chart}}}
    return made


def noted(status: JsonObject, health: JsonObject | None = None) -> PromotionStep:
    """Return a step whose status says how its proof stands."""
    step = promotion_step(health or {"timeout": "10m"})
    return step.model_copy(
        update={"status": step.status.model_copy(update={"health": HealthStatus.model_validate(status)})}
    )


def named(step: PromotionStep, *found: JsonObject) -> list[str]:
    """Return the objects that deploy the environment of a step."""
    kinds = {each.kind: each for each in (APPLICATION, KUSTOMIZATION, HELM_RELEASE, GIT_REPOSITORY)}
    objects = WatchedObjects({kind: [each for each in found if each["kind"] == name] for name, kind in kinds.items()})
    return [each.title for each in deployers(step, objects)]


@pytest.mark.parametrize(
    ("source", "deploys"),
    [
        ({}, True),
        ({"repoURL": f"{REPOSITORY}.git/"}, True),
        ({"repoURL": "ssh://git@git.example.com/acme/config.git"}, True),
        ({"repoURL": "https://git.example.com/acme/other"}, False),
        ({"repoURL": "https://git.example.com.evil.example/acme/config"}, False),
        ({"repoURL": ["x"]}, False),
        ({"path": "./apps/prod/"}, True),
        ({"path": "apps"}, True),
        ({"path": "."}, True),
        ({"path": "apps/pro"}, False),
        ({"path": "apps/prod/base"}, False),
        ({"path": "apps/staging"}, False),
        ({"path": "apps/staging/../prod"}, False),
        ({"path": ""}, False),
        ({"chart": "app"}, False),
        ({"targetRevision": "refs/heads/main"}, True),
        ({"targetRevision": "HEAD"}, True),
        ({"targetRevision": ""}, True),
        ({"targetRevision": "release"}, False),
        ({"targetRevision": "refs/tags/main"}, False),
        ({"targetRevision": "b" * 40}, False),
    ],
    ids=str,
)
def test_an_application_deploys_the_path_that_it_reads_or_one_above_it(source: JsonObject, deploys: bool) -> None:
    made = application()
    made["spec"]["source"] |= source
    assert named(STEP, made) == (["Application argocd/app"] if deploys else [])


def test_one_of_several_sources_is_enough_and_one_for_values_is_none() -> None:
    values = {"repoURL": REPOSITORY, "ref": "values", "targetRevision": "main"}
    own = application()["spec"]["source"]
    made = application()
    made["spec"] = {"sources": [{"repoURL": "https://charts.example.com", "chart": "app"}, own]}
    assert named(STEP, made) == ["Application argocd/app"]
    made["spec"] = {"sources": [{"repoURL": "https://charts.example.com", "chart": "app"}, values]}
    assert named(STEP, made) == []


@pytest.mark.parametrize("revision", ["", "HEAD", "main", "env/prod"])
def test_the_branch_of_an_environment_must_be_named(revision: str) -> None:
    own = STEP.model_copy(update={"spec": STEP.spec.model_copy(update={"branch": "env/prod"})})
    made = application()
    change(*SOURCE, "targetRevision", to=revision)(made)
    assert named(own, made) == (["Application argocd/app"] if revision == "env/prod" else [])


def test_hydrated_or_deleted_application_deploys_nothing() -> None:
    hydrated = application()
    deleted = application()
    change("spec", "sourceHydrator", to={"drySource": application()["spec"]["source"]})(hydrated)
    change("metadata", "deletionTimestamp", to="2026-11-21T11:00:00Z")(deleted)
    assert named(STEP, hydrated) == []
    assert named(STEP, deleted) == []


@pytest.mark.parametrize(
    ("reference", "deploys"),
    [
        ({"branch": "main"}, True),
        ({"name": "refs/heads/main"}, True),
        ({"branch": "release", "name": "refs/heads/main"}, True),
        ({"branch": "release"}, False),
        ({"name": "refs/pull/1/head"}, False),
        ({"branch": "main", "commit": "b" * 40}, False),
        ({"branch": "main", "tag": "v1"}, False),
        ({"semver": "*"}, False),
        ({"other": "x"}, False),
    ],
    ids=str,
)
def test_a_kustomization_deploys_what_its_source_reads_from_the_branch(
    reference: dict[str, str], deploys: bool
) -> None:
    found = named(STEP, sourced_kustomization(), git_repository(**reference))
    assert found == (["Kustomization flux-system/app"] if deploys else [])


def test_a_source_without_a_branch_is_of_the_one_that_flux_takes() -> None:
    master = STEP.model_copy(
        update={"spec": STEP.spec.model_copy(update={"git": STEP.spec.git.model_copy(update={"branch": "master"})})}
    )
    source = git_repository()
    remove("spec", "ref")(source)
    assert named(STEP, sourced_kustomization(), source) == []
    assert named(master, sourced_kustomization(), source) == ["Kustomization flux-system/app"]


@pytest.mark.parametrize(
    ("spec", "deploys"),
    [
        ({"path": ""}, True),
        ({"path": "apps"}, True),
        ({"path": "./apps/other"}, False),
        ({"sourceRef": {"kind": "OCIRepository", "name": "config"}}, False),
        ({"sourceRef": {"kind": "GitRepository", "name": "config", "namespace": "other"}}, False),
        ({"sourceRef": {"kind": "GitRepository"}}, False),
        ({"sourceRef": "config"}, False),
    ],
    ids=str,
)
def test_a_kustomization_deploys_its_path_of_its_source(spec: JsonObject, deploys: bool) -> None:
    found = named(STEP, sourced_kustomization(**spec), git_repository())
    assert found == (["Kustomization flux-system/app"] if deploys else [])


def test_a_release_deploys_the_path_of_its_chart() -> None:
    assert named(STEP, sourced_release(), git_repository()) == ["HelmRelease prod/app"]
    assert named(STEP, sourced_release(chart="charts/app"), git_repository()) == []
    assert named(STEP, sourced_release(sourceRef={"kind": "HelmRepository", "name": "config"}), git_repository()) == []


def test_argo_cd_comes_before_flux_and_several_of_one_tool_are_all_named() -> None:
    flux = (sourced_kustomization(), sourced_release(), git_repository())
    other = copy.deepcopy(application())
    change("metadata", "name", to="all")(other)
    change(*SOURCE, "path", to="apps")(other)
    assert named(STEP, *flux) == ["Kustomization flux-system/app", "HelmRelease prod/app"]
    assert named(STEP, *flux, application()) == ["Application argocd/app"]
    assert named(STEP, application(), other) == ["Application argocd/all", "Application argocd/app"]


FOUND = (
    Detected(APPLICATION, Key("argocd", "app")),
    Detected(KUSTOMIZATION, Key("flux-system", "app")),
    Detected(HELM_RELEASE, Key("prod", "app")),
)


@pytest.mark.parametrize("found", FOUND, ids=lambda each: each.title)
def test_detected_object_is_judged_as_a_named_one(found: Detected) -> None:
    step = noted(found.status.to_json())
    assert undetected(STEP)
    assert not undetected(step)
    assert detected(step) == found
    health = settled(step).spec.health
    chosen = health.argocd if found.tool == "argocd" else health.flux
    assert health.type == found.tool
    assert chosen is not None
    assert Key(chosen.namespace, chosen.name) == found.key


def test_without_a_tool_the_workloads_of_the_environment_prove_it() -> None:
    health = settled(noted({"type": "resource"})).spec.health
    assert health.type == "resource"
    assert health.resource is not None
    assert health.resource.namespace == "prod"


def test_named_object_is_not_replaced_by_a_detected_one() -> None:
    forged = {"type": "flux", "kind": "Kustomization", "name": "other", "namespace": "team"}
    explicit = noted(forged, {"type": "argocd", "argocd": {"name": "app"}})
    assert settled(explicit) is explicit
    assert detected(explicit) is None
    assert not undetected(explicit)


@pytest.mark.parametrize(
    "status",
    [
        {"type": "flagger"},
        {"type": "argocd"},
        {"type": "argocd", "kind": "Kustomization", "name": "app", "namespace": "team"},
        {"kind": "Application", "name": "app", "namespace": "team"},
        {"failingSince": "2026-11-21T11:00:00Z"},
    ],
    ids=str,
)
def test_a_status_that_detection_does_not_write_counts_for_nothing(status: JsonObject) -> None:
    assert undetected(noted(status))
