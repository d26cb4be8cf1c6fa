"""Promote to a real cluster through a real Flux: what runs proves it, what cannot run ends it, the next repairs it.

These are the tests that are quick enough for every change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hack.flux.assets import FLUX
from hack.kube.assets import built
from kardinal.objects import DEPLOYMENT, JsonObject
from kardinal_agent.health.detection import GIT_REPOSITORY
from kardinal_agent.health.flux_common import KUSTOMIZATION
from kardinal_agent.health.refresh import FLUX_REQUEST
from tests.gitops.applications import Application, deployment, image_of
from tests.gitops.installation import Installation, running_installation
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import TEAM


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    if "GITOPS" not in os.environ or not built(FLUX):
        pytest.skip("needs `make test-gitops-fast`, which builds Flux and a real API server")
    with running_installation(tmp_path_factory.mktemp("gitops")) as running:
        yield running


def running_image(application: Application) -> str:
    """Return the image of a Deployment that is completely rolled out."""
    found = application.cluster.get(DEPLOYMENT, application.name, application.name)
    assert found is not None
    assert found["status"]["updatedReplicas"] == found["status"]["availableReplicas"] == found["spec"]["replicas"]
    image: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


def asked_of(application: Application) -> list[str | None]:
    """Return when the GitRepository and the Kustomization were asked to look."""
    found = [application.cluster.get(kind, application.tools, application.name) for kind in _ASKED]
    return [((each or {})["metadata"].get("annotations") or {}).get(FLUX_REQUEST) for each in found]


_ASKED = (GIT_REPOSITORY, KUSTOMIZATION)


def allow_to_ask(application: Application) -> None:
    """Apply the Role that lets kardinal ask Flux to look, as `kubectl apply -n` does."""
    for document in documents_of("tools/refresh/namespace.yaml"):
        metadata = {**document["metadata"], "namespace": application.tools}
        application.cluster.apply(RESOURCES[document["kind"]], {**document, "metadata": metadata})


@pytest.mark.timeout(200)
def test_a_workload_is_proved_fails_and_is_corrected(installation: Installation) -> None:
    health: JsonObject = {"resource": {"name": "workload"}}
    application = Application(installation, "workload", deployment("workload"), health=health)
    # Nothing has Flux look at a landing but its interval: kardinal is not let in.
    promoted = application.promote("2.0.0")
    application.says(promoted, "its pod template must run")
    installation.sources.poll()
    application.verified(promoted)
    assert running_image(application) == f"{image_of('workload')}:2.0.0"
    assert asked_of(application) == [None, None]

    promoted = application.promote("3.0.0-broken")
    application.says(promoted, "its pod template must run")
    installation.sources.poll()
    status = application.failed(promoted)
    assert status["health"]["reason"] == "ImagePullBackOff"

    promoted = application.promote("3.0.1")
    application.says(promoted, "its pod template must run")
    installation.sources.poll()
    application.verified(promoted)
    assert running_image(application) == f"{image_of('workload')}:3.0.1"


@pytest.mark.timeout(200)
def test_flux_is_found_is_asked_to_look_and_proves_it(installation: Installation) -> None:
    application = Application(installation, "found", deployment("found"), pipelines_from=TEAM, wait=True)
    allow_to_ask(application)
    promoted = application.promote("2.0.0")
    status = application.verified(promoted)
    found = {"type": "flux", "kind": "Kustomization", "name": "found", "namespace": "found-flux"}
    assert status["health"].items() >= found.items()
    assert status["message"].startswith(f"Kustomization found-flux/found has applied commit {status['commit'][:7]} ")
    assert running_image(application) == f"{image_of('found')}:2.0.0"
    source, own = asked_of(application)
    assert source is not None
    assert own == source
    handled = application.cluster.get(KUSTOMIZATION, application.tools, application.name)
    assert handled is not None
    assert handled["status"]["lastHandledReconcileAt"] == source

    status = application.failed(application.promote("3.0.0-broken"))
    assert status["health"]["reason"] in ("HealthCheckFailed", "ProgressDeadlineExceeded")
    assert status["conditions"][0]["reason"] == "HealthFailed"

    application.verified(application.promote("3.0.1"))
    assert running_image(application) == f"{image_of('found')}:3.0.1"
    assert asked_of(application)[0] not in (None, source)


@pytest.mark.timeout(200)
def test_without_the_right_flux_looks_when_its_interval_is_over(installation: Installation) -> None:
    health: JsonObject = {"flux": {"name": "waiting", "namespace": "waiting-flux"}}
    application = Application(installation, "waiting", deployment("waiting"), health=health, pipelines_from=TEAM)
    promoted = application.promote("2.0.0")
    application.says(promoted, "is without commit")
    assert asked_of(application) == [None, None]
    installation.sources.poll()
    status = application.verified(promoted)
    assert asked_of(application) == [None, None]
    assert "refreshedAt" not in status.get("health", {})
    assert running_image(application) == f"{image_of('waiting')}:2.0.0"
