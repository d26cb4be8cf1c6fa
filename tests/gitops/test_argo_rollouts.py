"""Promote to a real Argo Rollouts: versions that are promoted, paused, broken, aborted, and repaired by the next."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hack.flux.assets import FLUX
from hack.kube.assets import built, obtain
from hack.rollouts.assets import DEFINITIONS, ROLLOUTS
from kardinal.objects import DEPLOYMENT, POD, JsonObject
from kardinal_agent.health.argo_rollouts import ROLLOUT
from tests.gitops.applications import FIRST, Application, deployment, image_of
from tests.gitops.cluster import running_controller
from tests.gitops.installation import Installation, running_installation
from tests.gitops.metrics import Metrics, running_metrics
from tests.support.names import TEAM

PAUSED = "paused at a step"
STEPS: JsonObject = {"canary": {"steps": [{"setWeight": 50}, {"pause": {}}]}}


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    if "GITOPS" not in os.environ or not (built(FLUX) and built(ROLLOUTS)):
        pytest.skip("needs `make test-gitops`, which builds Flux, Argo Rollouts and a real API server")
    directory = tmp_path_factory.mktemp("gitops")
    kept = obtain(ROLLOUTS)
    command = [str(kept / "rollouts-controller"), "--leader-elect=false", "--metricsPort=0", "--healthzPort=0"]
    with running_installation(directory, definitions=(kept / DEFINITIONS).glob("*-crd.yaml")) as running:
        running.cluster.namespace("argo-rollouts")
        with running_controller(running.cluster, command, directory / "argo-rollouts.log"):
            yield running


def rollout(name: str, strategy: JsonObject = STEPS, **spec: object) -> JsonObject:
    """Return a Rollout as it stands in the repository, which gives up soon."""
    made = deployment(name, strategy=strategy, **spec)
    return {**made, "apiVersion": ROLLOUT.api_version, "kind": ROLLOUT.kind}


def analysis(name: str, metrics: Metrics) -> JsonObject:
    """Return an AnalysisTemplate that asks once which share of the requests succeeds."""
    web = {"url": f"{metrics.url}/query", "jsonPath": "{$.data.result[0].value[1]}"}
    conditions = {"successCondition": "asFloat(result) >= 99", "failureCondition": "asFloat(result) < 80"}
    metric = {"name": "success-rate", **conditions, "provider": {"web": web}}
    head = {"apiVersion": ROLLOUT.api_version, "kind": "AnalysisTemplate", "metadata": {"name": name}}
    return {**head, "spec": {"metrics": [metric]}}


def service(name: str) -> JsonObject:
    """Return a Service of an application, whose selector Argo Rollouts completes and Flux must not put back."""
    metadata = {"name": name, "annotations": {"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}}
    spec = {"selector": {"app": name.partition("-")[0]}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def promoted_by(application: Application) -> None:
    """Promote a Rollout that is paused, as the kubectl plugin does for a person."""
    application.cluster.set_status(ROLLOUT, application.name, application.name, {"pauseConditions": None})


def aborted_by(application: Application) -> None:
    """Abort a Rollout, as the kubectl plugin does for a person."""
    application.cluster.set_status(ROLLOUT, application.name, application.name, {"abort": True})


def stable(application: Application, tag: str) -> None:
    """Hold a Rollout against a version that was Verified: all of it runs there, and it is the stable one."""
    found = application.cluster.get(ROLLOUT, application.name, application.name)
    assert found is not None
    workload = application.cluster.get(DEPLOYMENT, application.name, application.name) or found
    assert workload["spec"]["template"]["spec"]["containers"][0]["image"] == f"{image_of(application.name)}:{tag}"
    status = found["status"]
    assert (status["phase"], status["currentPodHash"]) == ("Healthy", status["stableRS"])
    assert {image_of(application.name) + f":{tag}"} == images_of(application, status["stableRS"])
    assert status["availableReplicas"] == found["spec"]["replicas"]


def images_of(application: Application, stable_hash: str) -> set[str]:
    """Return the images that the pods of a version run."""
    pods = application.cluster.list(POD, application.name)
    own = [each for each in pods if each["metadata"]["labels"].get("rollouts-pod-template-hash") == stable_hash]
    return {container["image"] for pod in own for container in pod["spec"]["containers"]}


def deployed(
    installation: Installation,
    name: str,
    *manifests: JsonObject,
    health: JsonObject | None = None,
    delegate: str = "none",
    grace: str = "2s",
) -> Application:
    """Return an application that Flux deploys soon after a landing, and whose first version is the stable one.

    A `grace` that is longer than its progress deadline lets Argo Rollouts say what a broken image comes to.
    """
    proof = {"argoRollouts": {"name": name}} if health is None else health
    application = Application(
        installation,
        name,
        *manifests,
        health={"failureGrace": grace, **proof},
        pipelines_from=TEAM,
        interval="1s",
        delivery={"delegate": delegate},
    )
    application.until(ROLLOUT, name, lambda found: bool(found.get("status", {}).get("phase") == "Healthy"))
    stable(application, FIRST)
    return application


@pytest.mark.timeout(400)
def test_a_canary_is_promoted_by_a_person_and_repaired_after_a_broken_image(installation: Installation) -> None:
    application = deployed(installation, "canary", rollout("canary"), grace="8s")
    promoted = application.promote("2.0.0")
    application.says(promoted, PAUSED)
    promoted_by(application)
    application.verified(promoted)
    stable(application, "2.0.0")

    status = application.failed(application.promote("3.0.0-broken"))
    assert status["health"]["reason"] == "ProgressDeadlineExceeded"

    promoted = application.promote("3.0.1")
    application.says(promoted, PAUSED)
    promoted_by(application)
    application.verified(promoted)
    stable(application, "3.0.1")


@pytest.mark.timeout(400)
def test_aborted_rollout_fails_and_is_repaired(installation: Installation) -> None:
    application = deployed(installation, "aborted", rollout("aborted", progressDeadlineAbort=True), grace="8s")
    promoted = application.promote("2.0.0")
    application.says(promoted, PAUSED)
    aborted_by(application)
    status = application.failed(promoted)
    assert status["health"]["reason"] == "Aborted"
    assert "it was aborted" in status["message"]

    status = application.failed(application.promote("3.0.0-broken"))
    assert status["health"]["reason"] == "Aborted"

    # The version that is still the stable one: nothing is rolled out, and no person has to promote it.
    application.verified(application.promote(FIRST))
    stable(application, FIRST)

    promoted = application.promote("3.0.1")
    application.says(promoted, PAUSED)
    promoted_by(application)
    application.verified(promoted)
    stable(application, "3.0.1")


@pytest.mark.timeout(400)
def test_blue_and_green_wait_for_a_person(installation: Installation) -> None:
    strategy = {"activeService": "green-active", "previewService": "green-preview", "autoPromotionEnabled": False}
    manifests = [rollout("green", {"blueGreen": strategy}), service("green-active"), service("green-preview")]
    application = deployed(installation, "green", *manifests)
    promoted = application.promote("2.0.0")
    application.says(promoted, "the new version is ready")
    promoted_by(application)
    application.verified(promoted)
    stable(application, "2.0.0")


@pytest.mark.timeout(400)
def test_a_rollout_is_waited_for_beside_flux(installation: Installation) -> None:
    """The Kustomization is found, and applies no workload but the Rollout, which proves what runs."""
    application = deployed(installation, "delegate", rollout("delegate"), health={}, delegate="argoRollouts")
    promoted = application.promote("2.0.0")
    status = application.says(promoted, PAUSED)
    assert (status["delegatedTo"], status["delegatedStatus"]) == ("argoRollouts", "Paused")
    assert (status["health"]["type"], status["health"]["kind"]) == ("flux", "Kustomization")
    promoted_by(application)
    status = application.verified(promoted)
    assert status["delegatedStatus"] == "Healthy"
    stable(application, "2.0.0")

    promoted = application.promote("2.1.0")
    application.says(promoted, PAUSED)
    aborted_by(application)
    status = application.failed(promoted)
    assert (status["delegatedStatus"], status["health"]["reason"]) == ("Degraded", "Aborted")

    status = application.failed(application.promote("2.2.0-broken"))
    assert status["health"]["reason"] == "ImagePullBackOff"


@pytest.mark.timeout(400)
def test_the_template_of_a_deployment_that_a_rollout_refers_to_is_proved(installation: Installation) -> None:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "referred"}
    made = rollout("referred", {"canary": {"steps": [{"setWeight": 50}]}}, workloadRef=reference)
    del made["spec"]["template"]
    application = deployed(installation, "referred", made, deployment("referred", replicas=0))
    application.verified(application.promote("2.0.0"))
    stable(application, "2.0.0")


@pytest.mark.timeout(400)
def test_an_analysis_decides(installation: Installation) -> None:
    with running_metrics() as metrics:
        steps = [{"setWeight": 50}, {"analysis": {"templates": [{"templateName": "analysed"}]}}]
        manifests = [rollout("analysed", {"canary": {"steps": steps}}), analysis("analysed", metrics)]
        application = deployed(installation, "analysed", *manifests)
        application.verified(application.promote("2.0.0"))
        stable(application, "2.0.0")

        metrics.success_rate = 50.0
        status = application.failed(application.promote("3.0.0"))
        assert status["health"]["reason"] == "Aborted"

        metrics.success_rate = 90.0
        promoted = application.promote("3.0.1")
        application.says(promoted, "its analysis is inconclusive")
        # Going on repeats the analysis.
        metrics.success_rate = 100.0
        promoted_by(application)
        application.verified(promoted)
        stable(application, "3.0.1")


@pytest.mark.timeout(400)
def test_a_pause_that_ends_in_the_commit_of_a_promotion_proves_nothing(installation: Installation) -> None:
    """Argo Rollouts notes the generation as observed and the version before as Healthy, and then looks at images."""
    application = deployed(installation, "resumed", rollout("resumed", {"canary": {"steps": [{"setWeight": 50}]}}))
    path = "environments/resumed/rollout-resumed.yaml"
    going_on = application.repository.read(path)
    application.repository.commit({path: going_on.replace("spec:\n", "spec:\n  paused: true\n", 1)})
    application.until(ROLLOUT, "resumed", lambda found: found["status"]["phase"] == "Paused")
    application.suspend(True)
    promoted = application.promote("2.0.0")
    application.says(promoted, "its pod template must run")
    application.repository.commit({path: going_on})
    application.suspend(False)
    application.verified(promoted)
    stable(application, "2.0.0")
