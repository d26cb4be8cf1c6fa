"""Promote through a real Argo CD: each promotion ends as it should, and none before its time.

Every version of the Application that Argo CD wrote meanwhile is judged as well: what kardinal did not happen to see
must not mislead it either.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hack.argocd.assets import ARGO_CD, DEFINITIONS, missing
from hack.kube.assets import obtain
from hack.renderers.assets import find
from kardinal.kube import Client, load_connection
from kardinal.objects import JsonObject
from kardinal_agent.health.argocd import ArgoCD
from kardinal_agent.health.argocd_application import APPLICATION
from tests.gitops.argo_cd import NAMESPACE, application, running_argo_cd, source
from tests.gitops.cluster import Cluster, definitions_of, running_cluster
from tests.gitops.environments import Environment, changed, recorded
from tests.gitops.installation import running_kardinal
from tests.support.identities import ACCOUNTS, RESOURCES, SYSTEM_NAMESPACE, documents_of
from tests.support.names import TEAM, of_run
from tests.support.repository import IMAGE, create_repository, sample_files
from tests.support.requests import FollowedLog
from tests.support.target import DEFINITIONS as OWN_DEFINITIONS

STRANGERS = of_run("strangers")
"""A namespace whose Pipelines are not let into the one of Argo CD."""

ACCOUNT = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{ACCOUNTS['controller']}"
"""The name of kardinal in the log of requests."""

GRACE = {"failureGrace": "2s", "timeout": "3m"}
DEPLOYMENT = "base/deployment.yaml"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster in which Argo CD and kardinal run."""
    if "GITOPS" not in os.environ:
        pytest.skip("needs `make test-gitops`, which builds Argo CD and a real API server")
    if (problem := missing()) is not None:
        pytest.skip(problem)
    if find("kustomize") is None:
        pytest.skip("there is no kustomize: `make renderers` builds it")
    directory = tmp_path_factory.mktemp("argocd")
    paths = [*OWN_DEFINITIONS.glob("*.yaml"), *(obtain(ARGO_CD) / name for name in DEFINITIONS)]
    definitions = definitions_of(directory / "definitions", paths)
    with (
        running_cluster(definitions) as running,
        running_kardinal(running, directory),
        running_argo_cd(running, directory, pipelines_from=TEAM),
    ):
        allow_to_ask(running)
        yield running


def allow_to_ask(cluster: Cluster) -> None:
    """Apply the Role that lets kardinal ask Argo CD to look, as `kubectl apply -n` does."""
    for document in documents_of("tools/refresh/namespace.yaml"):
        metadata = {**document["metadata"], "namespace": NAMESPACE}
        cluster.apply(RESOURCES[document["kind"]], {**document, "metadata": metadata})


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with Client(await load_connection(cluster.kubeconfig), user_agent="kardinal-test") as client:
        yield client


@pytest.fixture
def requests(cluster: Cluster) -> Iterator[FollowedLog]:
    """Return the log of the requests that the API server has answered."""
    log = FollowedLog(cluster.kubeconfig.with_name("audit.log"))
    yield log
    log.close()


@pytest.fixture
def environment(request: pytest.FixtureRequest, client: Client, tmp_path: Path) -> Environment:
    """Return an environment named after the test, whose Deployment gives up on a rollout soon."""
    name = request.node.name.removeprefix("test_").replace("_", "-").replace("[", "-").removesuffix("]")
    files = sample_files([name])
    files[DEPLOYMENT] = files[DEPLOYMENT].replace("replicas: 2", "replicas: 2\n  progressDeadlineSeconds: 5")
    return Environment(client, create_repository(tmp_path / "gitops.git", files), name)


async def deploy(environment: Environment, **policy: Any) -> None:
    """Have Argo CD deploy the environment."""
    made = application(environment.name, own_source(environment), **policy)
    await environment.client.apply(APPLICATION, made, field_manager="test")


def own_source(environment: Environment) -> JsonObject:
    """Return the source that a promotion writes to."""
    return source(environment.repository.url, f"environments/{environment.name}")


def asked(requests: FollowedLog) -> int:
    """Return how often kardinal has written to an Application."""
    return requests.count(verbs=["patch", "update"], resource="applications.argoproj.io", user=ACCOUNT)


def named(environment: Environment) -> JsonObject:
    return {"argocd": {"name": environment.name, "namespace": NAMESPACE}, **GRACE}


async def verified(environment: Environment, tag: str, *, never_failed: bool = True) -> JsonObject:
    """Promote to the proof, and hold it against what is there; returns the PromotionStep."""
    async with recorded(environment.client, APPLICATION, NAMESPACE, environment.name) as versions:
        name = await environment.promote(tag)
        step = await environment.end_of(name)
    assert step["status"]["state"] == "Verified", step["status"]["message"]
    commit = step["status"]["commit"]
    message = step["status"]["message"]
    assert message.startswith(f"Application {NAMESPACE}/{environment.name} is Synced to commit {commit[:7]} ")
    found = await environment.client.get(APPLICATION, environment.name, NAMESPACE)
    assert (found["status"]["sync"]["status"], found["status"]["health"]["status"]) == ("Synced", "Healthy")
    assert await environment.image() == f"{IMAGE}:{tag}"
    states = judged(environment, step, versions)
    assert "healthy" in states
    assert not (never_failed and "failed" in states)
    return step


def judged(environment: Environment, step: JsonObject, versions: Sequence[JsonObject]) -> list[str]:
    """Return the verdicts on what Argo CD wrote; a proof is of the promoted commit and its images."""
    verdicts = environment.verdicts(ArgoCD(), step, versions)
    for version, verdict in zip(versions, verdicts, strict=True):
        if verdict.state == "healthy":
            sync = version["status"]["sync"]
            revision = sync.get("revision") or sync["revisions"][-1]
            assert revision in environment.since(step["status"]["commit"])
    return [verdict.state for verdict in verdicts]


async def failed(environment: Environment, tag: str) -> tuple[str, str]:
    """Promote to the failure, which nothing that Argo CD says may hide; returns its reason and its message."""
    async with recorded(environment.client, APPLICATION, NAMESPACE, environment.name) as versions:
        step = await environment.end_of(await environment.promote(tag))
    assert step["status"]["state"] == "Failed", step["status"]["message"]
    assert "healthy" not in judged(environment, step, versions)
    (ready,) = [each for each in step["status"]["conditions"] if each["type"] == "Ready"]
    return ready["reason"], step["status"]["message"]


async def waits(environment: Environment, step: str, words: str) -> JsonObject:
    """Return the PromotionStep when it says what it waits for."""
    return await environment.until(step, lambda status: words in status.get("message", ""))


async def test_named_and_promoted(environment: Environment, requests: FollowedLog) -> None:
    await environment.open(**named(environment))
    await deploy(environment, automated={"prune": True})
    before = asked(requests)
    for count, tag in enumerate(("1.1.0", "1.2.0"), start=1):
        step = await verified(environment, tag)
        assert "refreshedAt" in step["status"]["health"]
        assert asked(requests) - before == count


async def test_found_and_promoted(environment: Environment) -> None:
    await environment.open()
    await deploy(environment, automated={"prune": True})
    await application_is(environment, "Synced")
    step = await verified(environment, "1.1.0")
    found = {field: step["status"]["health"][field] for field in ("type", "kind", "name", "namespace")}
    assert found == {"type": "argocd", "kind": "Application", "name": environment.name, "namespace": NAMESPACE}


async def application_is(environment: Environment, *wanted: str) -> None:
    """Return when Argo CD says that the Application is Synced, or OutOfSync."""

    def accepts(found: JsonObject) -> bool:
        return found.get("status", {}).get("sync", {}).get("status") in wanted

    await changed(environment.client, APPLICATION, NAMESPACE, environment.name, accepts)


async def test_degraded_and_repaired(environment: Environment, requests: FollowedLog) -> None:
    """Argo CD is not asked to look, so the old failure outlives its grace before Argo CD sees the repair."""
    environment.team = STRANGERS
    await environment.open(**named(environment))
    await deploy(environment, automated={"prune": True})
    before = asked(requests)
    await verified(environment, "1.1.0")
    reason, message = await failed(environment, "broken-1")
    assert reason == "HealthFailed"
    assert message.startswith(f"health-check: Degraded: Application {NAMESPACE}/{environment.name}: it is Degraded")
    step = await verified(environment, "1.2.0", never_failed=False)
    assert "refreshedAt" not in step["status"].get("health", {})
    assert asked(requests) == before


async def test_a_manifest_that_cannot_be_applied(environment: Environment) -> None:
    await environment.open(**named(environment))
    await deploy(environment, automated={"prune": True}, retry={"limit": 1, "backoff": {"duration": "1s"}})
    await verified(environment, "1.1.0")
    good = environment.repository.read(DEPLOYMENT)
    environment.repository.commit({DEPLOYMENT: good.replace("replicas: 2", "replicas: many")})
    reason, message = await failed(environment, "1.2.0")
    assert reason == "HealthFailed"
    assert message.startswith(f"health-check: SyncFailed: Application {NAMESPACE}/{environment.name}: the sync of ")
    assert "one or more objects failed to apply" in message
    environment.repository.commit({DEPLOYMENT: good})
    await verified(environment, "1.3.0", never_failed=False)


async def test_a_manifest_that_cannot_be_built(environment: Environment) -> None:
    await environment.open(**named(environment))
    await deploy(environment, automated={"prune": True})
    await verified(environment, "1.1.0")
    good = environment.repository.read(DEPLOYMENT)
    environment.repository.commit({DEPLOYMENT: "kind: [\n"})
    name = await environment.promote("1.2.0")
    await waits(environment, name, "cannot compare it (ComparisonError)")
    environment.repository.commit({DEPLOYMENT: good})
    step = await environment.end_of(name)
    assert step["status"]["state"] == "Verified", step["status"]["message"]
    assert await environment.image() == f"{IMAGE}:1.2.0"


async def test_a_person_must_sync(environment: Environment) -> None:
    await environment.open(**named(environment))
    await deploy(environment)
    await application_is(environment, "OutOfSync")
    async with recorded(environment.client, APPLICATION, NAMESPACE, environment.name) as versions:
        name = await environment.promote("1.1.0")
        step = await waits(environment, name, "has no automated sync")
        commit = step["status"]["commit"]
        operation = {"initiatedBy": {"username": "somebody"}, "sync": {"revision": commit}}
        await environment.client.patch(APPLICATION, environment.name, NAMESPACE, {"operation": operation})
        step = await environment.end_of(name)
    assert step["status"]["state"] == "Verified", step["status"]["message"]
    assert "failed" not in judged(environment, step, versions)
    assert await environment.image() == f"{IMAGE}:1.1.0"


async def test_several_sources(environment: Environment, tmp_path: Path) -> None:
    """Argo CD leaves a revision of several sources alone that it could not sync when it first saw it."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    other = create_repository(tmp_path / "other.git", {"config/other.json": json.dumps(config)})
    await environment.open(**named(environment))
    sources = (source(other.url, "config"), own_source(environment))
    made = application(environment.name, *sources, automated={"prune": True})
    await environment.client.apply(APPLICATION, made, field_manager="test")
    await application_is(environment, "Synced")
    await verified(environment, "1.1.0")
    await automate(environment, None)
    name = await environment.promote("1.2.0")
    await waits(environment, name, "has no automated sync")
    await automate(environment, {"prune": True})
    await waits(environment, name, "or set selfHeal")
    await automate(environment, {"prune": True, "selfHeal": True})
    step = await environment.end_of(name)
    assert step["status"]["state"] == "Verified", step["status"]["message"]
    assert await environment.image() == f"{IMAGE}:1.2.0"


async def automate(environment: Environment, automated: JsonObject | None) -> None:
    """Set how the Application syncs by itself."""
    spec = {"spec": {"syncPolicy": {"automated": automated}}}
    await environment.client.patch(APPLICATION, environment.name, NAMESPACE, spec)


async def test_an_application_of_applications(environment: Environment) -> None:
    """The one that is named deploys no workload; its health says nothing about the one that does."""
    child = f"{environment.name}-child"
    made = application(child, own_source(environment), into=environment.name, automated={"prune": True})
    environment.repository.commit({"apps/child.json": json.dumps(made)})
    parent = application(environment.name, source(environment.repository.url, "apps"), into=NAMESPACE, automated={})
    await environment.open(**named(environment))
    await environment.client.apply(APPLICATION, parent, field_manager="test")
    await changed(environment.client, APPLICATION, NAMESPACE, child, lambda found: "sync" in found.get("status", {}))
    step = await environment.end_of(await environment.promote("1.1.0"))
    assert step["status"]["state"] == "Verified", step["status"]["message"]
    assert await environment.image() == f"{IMAGE}:1.1.0"
    found = await environment.client.get(APPLICATION, child, NAMESPACE)
    assert found["status"]["sync"]["revision"] in environment.since(step["status"]["commit"])
    reason, message = await failed(environment, "broken-1")
    assert (reason, "it is Degraded" in message) == ("HealthFailed", True)
