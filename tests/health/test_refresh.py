"""A tool is asked to look at the repository: once for each landing, where that is allowed, and nowhere else."""

from __future__ import annotations

import pytest

from kardinal.objects import JsonObject, Key, ResourceType
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_agent.health.detection import GIT_REPOSITORY
from kardinal_agent.health.flux_common import KUSTOMIZATION
from kardinal_agent.health.refresh import ARGOCD_REFRESH, FLUX_REQUEST, Refreshable, targets
from kardinal_agent.program import Agent
from tests.agent.promotion_steps import create, promotion_step, reached, start_agent, state
from tests.health.argocd_cases import application as compared_application
from tests.health.flux_cases import helm_release
from tests.health.flux_cases import kustomization as applied_kustomization
from tests.health.served_tools import annotate, application, git_repository, kustomization, put, serve
from tests.health.tools import BEFORE, LATER, change, objects_of, promotion
from tests.health.tools import promotion_step as judged_step
from tests.support.identities import RESOURCES, SYSTEM_NAMESPACE, documents_of
from tests.support.names import TEAM, of_run
from tests.support.repository import APPLICATION as APP
from tests.support.repository import GitRepository
from tests.support.world import World

TOOLS = of_run("tools")
CONFIG = Key("flux-system", "config")
ARGO_STEP = judged_step({"type": "argocd", "argocd": {"name": "app"}})
FLUX_STEP = judged_step({"type": "flux", "flux": {"name": "app"}})
HELM_STEP = judged_step({"type": "flux", "flux": {"kind": "HelmRelease", "name": "app", "namespace": "prod"}})
ASKED_OF_FLUX = (
    Refreshable(GIT_REPOSITORY, CONFIG, FLUX_REQUEST),
    Refreshable(KUSTOMIZATION, Key("flux-system", "app"), FLUX_REQUEST),
)


def stale_application() -> JsonObject:
    found = compared_application()
    change("status", "sync", "revision", to=BEFORE)(found)
    return found


def stale_kustomization(attempted: str = BEFORE) -> JsonObject:
    found = applied_kustomization()
    found["spec"]["sourceRef"] = {"kind": "GitRepository", "name": "config"}
    change("status", "lastAttemptedRevision", to=f"main@sha1:{attempted}")(found)
    return found


def test_an_application_is_asked_that_is_of_the_repository_and_has_not_seen_the_commit() -> None:
    stale = stale_application()
    other = stale_application()
    frozen = stale_application()
    change("spec", "source", "repoURL", to="https://git.example.com/acme/other")(other)
    change("metadata", "annotations", to={"argocd.argoproj.io/skip-reconcile": "true"})(frozen)
    assert targets(ARGO_STEP, promotion(), objects_of(stale)) == (
        Refreshable(APPLICATION, Key("argocd", "app"), ARGOCD_REFRESH),
    )
    for found in (compared_application(), other, frozen):
        assert targets(ARGO_STEP, promotion(), objects_of(found)) == ()
    assert targets(ARGO_STEP, promotion(), objects_of()) == ()


def test_the_source_of_a_kustomization_is_asked_before_itself() -> None:
    assert targets(FLUX_STEP, promotion(), objects_of(stale_kustomization())) == ASKED_OF_FLUX
    assert targets(HELM_STEP, promotion(), objects_of(helm_release(), stale_kustomization())) == ASKED_OF_FLUX
    assert targets(FLUX_STEP, promotion(), objects_of(stale_kustomization(LATER))) == ()
    assert targets(HELM_STEP, promotion(), objects_of(helm_release())) == ()
    artifact = stale_kustomization()
    change("spec", "sourceRef", "kind", to="OCIRepository")(artifact)
    assert targets(FLUX_STEP, promotion(), objects_of(artifact)) == ()


def test_workloads_are_not_asked() -> None:
    assert targets(judged_step({"type": "resource"}), promotion(), objects_of(stale_application())) == ()


async def allow(world: World, where: str) -> None:
    """Apply the Role in a namespace, as `kubectl apply -n` does."""
    for document in documents_of("tools/refresh/namespace.yaml"):
        metadata = {**document["metadata"], "namespace": where}
        await world.client.apply(RESOURCES[document["kind"]], {**document, "metadata": metadata}, field_manager="test")


async def asked(world: World, kind: ResourceType, where: str) -> str | None:
    """Return the annotation that asks an object."""
    await world.settle()
    annotations = (await world.client.get(kind, APP, where))["metadata"].get("annotations") or {}
    value: str | None = annotations.get(ARGOCD_REFRESH if kind == APPLICATION else FLUX_REQUEST)
    return value


async def land(world: World, repository: GitRepository, **health: object) -> Agent:
    """Bring a promotion to its proof."""
    agent = await start_agent(world)
    await create(world, promotion_step(repository, health=health))
    await reached(world, "HealthChecking")
    return agent


async def test_argo_cd_is_asked_once_for_each_landing(world: World, repository: GitRepository) -> None:
    await serve(world, APPLICATION)
    await annotate(world, TOOLS, TEAM)
    await allow(world, TOOLS)
    await put(world, APPLICATION, TOOLS, **application(repository, repository.head()))
    agent = await land(world, repository, type="argocd", argocd={"name": APP, "namespace": TOOLS})
    assert await asked(world, APPLICATION, TOOLS) == "normal"
    assert "refreshedAt" in (await state(world))["health"]
    # Argo CD takes the annotation off when it has looked; another process does not ask again.
    gone = {"metadata": {"annotations": {ARGOCD_REFRESH: None}}}
    await world.client.patch(APPLICATION, APP, TOOLS, gone)
    await put(world, APPLICATION, TOOLS, **application(repository, repository.head(), health="Progressing"))
    assert await asked(world, APPLICATION, TOOLS) is None
    await world.stop(agent)
    await start_agent(world)
    assert await asked(world, APPLICATION, TOOLS) is None


async def test_flux_is_asked_for_the_source_and_the_kustomization(world: World, repository: GitRepository) -> None:
    await serve(world, KUSTOMIZATION, GIT_REPOSITORY)
    await annotate(world, TOOLS, TEAM)
    await allow(world, TOOLS)
    await put(world, GIT_REPOSITORY, TOOLS, **git_repository(repository))
    await put(world, KUSTOMIZATION, TOOLS, **kustomization(repository.head()))
    await land(world, repository, type="flux", flux={"name": APP, "namespace": TOOLS})
    source = await asked(world, GIT_REPOSITORY, TOOLS)
    assert source is not None
    assert await asked(world, KUSTOMIZATION, TOOLS) == source


@pytest.mark.parametrize(("role", "annotated"), [(False, True), (True, False)], ids=["right", "annotation"])
async def test_nothing_is_written_without_the_right_or_where_the_pipeline_is_not_let_in(
    world: World, repository: GitRepository, role: bool, annotated: bool
) -> None:
    """A Pipeline can name an object of others as the proof, but not have it written to."""
    await serve(world, APPLICATION)
    await annotate(world, TOOLS, TEAM if annotated else None)
    if role:
        await allow(world, TOOLS)
    await put(world, APPLICATION, TOOLS, **application(repository, repository.head()))
    patches = world.audit.count(verbs=["patch"], resource="applications.argoproj.io", user=world.user("agent"))
    await land(world, repository, type="argocd", argocd={"name": APP, "namespace": TOOLS})
    assert await asked(world, APPLICATION, TOOLS) is None
    assert "health" not in await state(world)
    after = world.audit.count(verbs=["patch"], resource="applications.argoproj.io", user=world.user("agent"))
    assert after == patches


def test_the_role_opens_one_namespace_and_nothing_but_the_objects_that_are_asked() -> None:
    role, binding = documents_of("tools/refresh/namespace.yaml")
    assert (role["kind"], binding["kind"]) == ("Role", "RoleBinding")
    assert "namespace" not in role["metadata"]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"patch"}
    asked_kinds = {(kind.group, kind.plural) for kind in (APPLICATION, KUSTOMIZATION, GIT_REPOSITORY)}
    assert {(*rule["apiGroups"], *rule["resources"]) for rule in role["rules"]} == asked_kinds
    assert {each["namespace"] for each in binding["subjects"]} == {SYSTEM_NAMESPACE}
