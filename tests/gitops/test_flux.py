"""Judge a real Flux while versions come and go: each promotion ends as it should, and none before its time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hack.flux.assets import FLUX
from hack.kube.assets import built
from kardinal.objects import DEPLOYMENT, JsonObject
from kardinal_agent.health import Verdict
from kardinal_agent.health.flux import Flux
from kardinal_agent.health.flux_common import KUSTOMIZATION
from tests.gitops.flux import NAMESPACE, RunningFlux, running_flux
from tests.health.tools import judged, promotion, promotion_step

STEP = promotion_step({"type": "flux", "flux": {"name": "app"}}, promotedAt="2020-01-01T00:00:00Z")
REPOSITORY = "registry.example.com/app"
PATIENCE = 120.0
"""Seconds until a version has ended."""


@pytest.fixture
def flux(tmp_path: Path) -> Iterator[RunningFlux]:
    if "GITOPS" not in os.environ or not built(FLUX):
        pytest.skip("needs `make test-gitops`, which builds Flux and a real API server")
    with running_flux(tmp_path) as running:
        yield running


def manifests(tag: str, **spec: object) -> dict[str, str]:
    labels = {"app": "app"}
    containers = [{"name": "main", "image": f"{REPOSITORY}:{tag}"}]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "app", "namespace": "prod"},
        "spec": {
            "replicas": 2,
            "progressDeadlineSeconds": 5,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
            **spec,
        },
    }
    return {"app/deployment.yaml": json.dumps(deployment)}


class History:
    """The commits of the branch, and the promotion of the last one."""

    def __init__(self, flux: RunningFlux) -> None:
        self.flux = flux
        self._commits: list[str] = []
        self._tag = ""

    def push(self, tag: str, files: dict[str, str]) -> None:
        self._commits.append(f"{len(self._commits) + 1:040x}")
        self._tag = tag
        self.flux.push(self._commits[-1], files)

    def verdict(self) -> Verdict:
        """Return the verdict on the last commit, and hold it against what is there."""
        last = len(self._commits) - 1
        promoted = promotion(
            f"{REPOSITORY}:{self._tag}",
            contains=lambda commit: commit in self._commits and self._commits.index(commit) >= last,
        )
        looked_at = (
            self.flux.cluster.get(KUSTOMIZATION, NAMESPACE, "app"),
            self.flux.cluster.get(DEPLOYMENT, "prod", "app"),
        )
        found: list[JsonObject] = [each for each in looked_at if each is not None]
        answer = judged(Flux(), STEP, promoted, *found)
        if answer.state == "healthy":
            assert found[0]["status"]["lastAppliedRevision"].endswith(self._commits[-1])
            containers = found[1]["spec"]["template"]["spec"]["containers"]
            assert containers[0]["image"] == f"{REPOSITORY}:{self._tag}"
        return answer

    def until(self, wanted: Callable[[Verdict], bool], *, never: str) -> Verdict:
        """Judge as often as can be until a verdict is as wanted; `never` is the state that must not come before."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            answer = self.verdict()
            if wanted(answer):
                return answer
            assert answer.state != never, answer
        raise AssertionError(f"not within {PATIENCE} s; the last verdict: {answer}")


def healthy(verdict: Verdict) -> bool:
    return verdict.state == "healthy"


def failed(verdict: Verdict) -> bool:
    return verdict.state == "failed"


@pytest.mark.timeout(600)
def test_versions_come_and_go(flux: RunningFlux) -> None:
    history = History(flux)
    history.push("v1", manifests("v1"))
    flux.kustomization()
    history.until(healthy, never="failed")

    history.push("v2", manifests("v2"))
    history.until(healthy, never="failed")

    history.push("broken", manifests("broken"))
    assert history.until(failed, never="healthy").reason in ("ProgressDeadlineExceeded", "HealthCheckFailed")

    history.push("v3", manifests("v3"))
    history.until(healthy, never="failed")

    history.push("v4", manifests("v4", replicas="many"))
    assert history.until(failed, never="healthy").reason == "ReconciliationFailed"

    history.push("v5", {"app/deployment.yaml": "kind: [\n"})
    assert history.until(failed, never="healthy").reason == "BuildFailed"

    history.push("v5", manifests("v5"))
    history.until(healthy, never="failed")

    flux.kustomization(suspend=True)
    history.push("v6", manifests("v6"))
    history.until(lambda answer: "it is suspended" in answer.message, never="healthy")

    flux.kustomization(suspend=False)
    history.until(healthy, never="failed")

    # Flux may see a commit before it sees a change of the path, and then applies it from the path before.
    flux.kustomization(path="./other")
    history.until(lambda answer: "it is not Ready: its source is missing" in answer.message, never="failed")
    history.push("v7", manifests("v7"))
    history.until(lambda answer: "or has no such path" in answer.message, never="healthy")

    flux.kustomization(dependsOn=[{"name": "missing"}])
    history.until(lambda answer: "it waits for other Kustomizations" in answer.message, never="healthy")

    flux.kustomization(dependsOn=[])
    history.until(healthy, never="failed")
