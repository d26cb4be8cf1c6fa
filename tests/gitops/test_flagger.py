"""Promote to a real Flagger without a mesh: blue and green, with an analysis of metrics that a test chooses."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hack.flagger.assets import DEFINITIONS, FLAGGER
from hack.flux.assets import FLUX
from hack.kube.assets import built, obtain
from kardinal.objects import DEPLOYMENT, JsonObject
from kardinal_agent.health.flagger import CANARY
from tests.gitops.applications import FIRST, Application, deployment, image_of
from tests.gitops.cluster import running_controller
from tests.gitops.installation import Installation, running_installation
from tests.gitops.metrics import Metrics, running_metrics
from tests.support.names import TEAM

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def metrics() -> Iterator[Metrics]:
    if "GITOPS" not in os.environ or not (built(FLUX) and built(FLAGGER)):
        pytest.skip("needs `make test-gitops`, which builds Flux, Flagger and a real API server")
    with running_metrics() as running:
        yield running


@pytest.fixture(scope="module")
def installation(metrics: Metrics, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    directory = tmp_path_factory.mktemp("gitops")
    kept = obtain(FLAGGER)
    with running_installation(directory, definitions=[kept / DEFINITIONS]) as running:
        command = [str(kept / "flagger"), f"-kubeconfig={running.cluster.kubeconfig}", "-mesh-provider=kubernetes"]
        command += [f"-metrics-server={metrics.url}", "-control-loop-interval=1s", "-port=0", "-log-level=info"]
        with running_controller(running.cluster, command, directory / "flagger.log"):
            yield running


def canary(name: str) -> JsonObject:
    """Return a Canary that analyses a version for as short as Flagger can."""
    rate = {"name": "request-success-rate", "interval": "1m", "thresholdRange": {"min": 99}}
    spec = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "progressDeadlineSeconds": 30,
        "service": {"port": 80},
        "analysis": {"interval": "10s", "threshold": 1, "iterations": 1, "metrics": [rate]},
    }
    return {"apiVersion": CANARY.api_version, "kind": CANARY.kind, "metadata": {"name": name}, "spec": spec}


def target(name: str) -> JsonObject:
    """Return the target of a Canary, whose replicas are Flagger's business."""
    made = deployment(name)
    del made["spec"]["replicas"]
    return made


def primary_runs(application: Application, tag: str) -> None:
    """Hold a Canary against a version that was Verified: its primary runs it completely."""
    found = application.cluster.get(DEPLOYMENT, application.name, f"{application.name}-primary")
    assert found is not None
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == f"{image_of(application.name)}:{tag}"
    assert found["status"]["availableReplicas"] == found["status"]["updatedReplicas"] == found["spec"]["replicas"]


def deployed(
    installation: Installation, name: str, *, health: JsonObject | None = None, delegate: str = "none"
) -> Application:
    """Return an application that Flux deploys soon after a landing, and whose first version is the primary."""
    application = Application(
        installation,
        name,
        target(name),
        canary(name),
        health={"timeout": "5m", **({"flagger": {"name": name}} if health is None else health)},
        pipelines_from=TEAM,
        interval="1s",
        delivery={"delegate": delegate},
    )
    application.until(CANARY, name, lambda found: bool(found.get("status", {}).get("phase") == "Initialized"))
    primary_runs(application, FIRST)
    return application


def test_a_version_is_promoted_one_fails_its_analysis_and_the_next_repairs_it(
    installation: Installation, metrics: Metrics
) -> None:
    application = deployed(installation, "analysed")
    application.verified(application.promote("2.0.0"))
    primary_runs(application, "2.0.0")

    metrics.success_rate = 50.0
    status = application.failed(application.promote("3.0.0"))
    assert status["health"]["reason"] == "CanaryFailed"
    assert "its analysis failed" in status["message"]
    primary_runs(application, "2.0.0")

    metrics.success_rate = 100.0
    application.verified(application.promote("3.0.1"))
    primary_runs(application, "3.0.1")


def test_a_broken_image_fails_and_a_return_to_what_the_primary_runs_is_proved(installation: Installation) -> None:
    application = deployed(installation, "returned")
    status = application.failed(application.promote("2.0.0-broken"))
    assert status["health"]["reason"] == "ImagePullBackOff"
    application.until(CANARY, application.name, lambda found: bool(found["status"]["phase"] == "Failed"))
    application.verified(application.promote(FIRST))
    primary_runs(application, FIRST)
    found = application.cluster.get(CANARY, application.name, application.name)
    assert found is not None
    assert found["status"]["phase"] == "Failed"


def test_a_canary_is_waited_for_beside_flux(installation: Installation) -> None:
    application = deployed(installation, "delegate", health={}, delegate="flagger")
    promoted = application.promote("2.0.0")
    status = application.reached(promoted, lambda found: found.get("delegatedStatus") == "Progressing")
    assert status["delegatedTo"] == "flagger"
    status = application.verified(promoted)
    assert (status["delegatedStatus"], status["health"]["type"]) == ("Succeeded", "flux")
    primary_runs(application, "2.0.0")
