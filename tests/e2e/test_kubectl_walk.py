"""A promotion with nothing but kubectl, `kardinal local up --simulate` and a bare repository."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from kardinal.promotion.kinds import PROMOTION_STEP
from tests.resilience.installation import Install
from tests.resilience.processes import state, wait_for
from tests.support.kubectl import Kubectl, kubectl_versions
from tests.support.names import DEV, PROD, STAGING, of_run
from tests.support.repository import GitRepository

NEWEST = list(kubectl_versions() or ["none found"])[-1]
"""One version is enough here: how each of them talks to the API server is tested with the local plane."""

ENVIRONMENTS = [DEV, STAGING, PROD]
SHOP = of_run("shop")
IN_SHOP = ("-n", SHOP)
READY = ("wait", "--for=condition=Ready", "bundle/my-app-2", *IN_SHOP)

MANIFESTS = f"""
apiVersion: v1
kind: Namespace
metadata:
  name: {SHOP}
---
apiVersion: kardinal.io/v1alpha1
kind: Pipeline
metadata:
  name: my-app
  namespace: {SHOP}
spec:
  git:
    url: {{repository}}
    provider: local
  environments:
    - name: {DEV}
      path: environments/{DEV}
    - name: {STAGING}
      path: environments/{STAGING}
    - name: {PROD}
      path: environments/{PROD}
      approval: pr-review
---
apiVersion: kardinal.io/v1alpha1
kind: PolicyGate
metadata:
  name: short-soak
  namespace: {SHOP}
  labels:
    kardinal.io/applies-to: {PROD}
spec:
  expression: bundle.upstreamSoakMinutes >= 0.02
---
apiVersion: kardinal.io/v1alpha1
kind: Bundle
metadata:
  name: my-app-2
  namespace: {SHOP}
  labels:
    kardinal.io/pipeline: my-app
spec:
  type: image
  artifacts:
    images:
      - name: app
        reference: ghcr.io/acme/my-app:2.0.0
"""


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kubectl", [NEWEST], indirect=True)
async def test_a_bundle_is_ready_when_and_only_when_every_environment_is_verified(
    kubectl: Callable[[Path], Kubectl], install: Install, repository: GitRepository
) -> None:
    local = install()
    await local.up()
    run = kubectl(local.kubeconfig)
    await run("apply", "-f", "-", stdin=MANIFESTS.format(repository=repository.url))
    async with local.client() as client:
        await wait_for(client, PROMOTION_STEP, state("WaitingForMerge"), f"my-app-2-{PROD}", namespace=SHOP)

    # All but prod are there, and prod waits for a person.
    too_early = await run.attempt(*READY, "--timeout=1s")
    assert too_early.code == 1
    assert "timed out" in too_early.err
    assert repository.promotions(PROD) == []

    waiting = asyncio.create_task(run(*READY, "--timeout=25s"))
    await local.kardinal("pr", "merge", "1", *IN_SHOP)
    await waiting
    status = orjson.loads(await run("get", "bundle", "my-app-2", *IN_SHOP, "-o", "json"))["status"]
    assert status["phase"] == "Verified"
    assert sorted(status["environments"]) == sorted(ENVIRONMENTS)
    for name in ENVIRONMENTS:
        assert status["environments"][name]["state"] == "Verified"
        (commit,) = repository.promotions(name)
        assert commit.trailers["Kardinal-Bundle"] == "my-app-2"
        assert commit.trailers["Kardinal-Step"] == f"{SHOP}/my-app-2-{name}"
        assert commit.sha == status["environments"][name]["commit"]

    everything = await run("get", "kardinal", *IN_SHOP)
    (row,) = [line.split() for line in everything.splitlines() if line.startswith("bundle.kardinal.io/")]
    assert row[:5] == ["bundle.kardinal.io/my-app-2", "my-app", "2.0.0", "Verified", "True"]
    for kind in ("pipeline", "promotionstep", "policygate"):
        assert f"{kind}.kardinal.io/my-app" in everything
    described = await run("describe", "bundle", "my-app-2", *IN_SHOP)
    assert f"Verified in {DEV}, {STAGING}, {PROD}" in described
    assert "kardinal-controller" in described
