"""Chains that end in a Bundle with a commit: of type `config`, and of type `mixed` with an image, up to prod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api.names import LABEL_PIPELINE
from kardinal.promotion.kinds import BUNDLE
from kardinal_supplychain.api.kinds import WORKLOAD
from tests.supplychain.chains import Chains, blueprint, condition, config_map, resource, template, workload
from tests.support.accounts import rule
from tests.support.names import DEV, PROD, TEAM
from tests.support.objects import environment, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import APPLICATION, IMAGE, GitRepository, create_repository

LIMITS = "configs/limits.yaml"

SOURCE = template(
    "source",
    config_map("$(workload.metadata.name)$-source", url="$(params.url)$", revision="$(params.revision)$"),
    kind="ClusterSourceTemplate",
    urlPath="data.url",
    revisionPath="data.revision",
)
BUILT = template(
    "image",
    config_map("$(workload.metadata.name)$-image", image=f"{IMAGE}:$(params.tag)$"),
    kind="ClusterImageTemplate",
    imagePath="data.image",
)


def bundle_of(type_: str, **artifacts: Any) -> JsonObject:
    """Return the template of a Bundle with the commit of the input `source`."""
    commit = {"repository": "$(sources.source.url)$", "sha": "$(sources.source.revision)$", "message": "Limits"}
    labels = {LABEL_PIPELINE: APPLICATION}
    body = {
        "apiVersion": "kardinal.io/v1alpha1",
        "kind": "Bundle",
        "metadata": {"generateName": "$(workload.metadata.name)$-", "labels": labels},
        "spec": {"type": type_, "artifacts": {"gitCommit": commit, **artifacts}},
    }
    return template("bundle", body, kind="ClusterTemplate", healthRule={"singleConditionType": "Ready"})


@pytest.fixture
def configuration(tmp_path: Path) -> GitRepository:
    return create_repository(tmp_path / "config.git", {LIMITS: "cpu: 1\n"})


@pytest.fixture
async def promoting(chains: Chains, repository: GitRepository, configuration: GitRepository) -> Chains:
    """Return a world with a Pipeline that overlays the environments with the configuration."""
    bundles = rule("get", "create", on="bundles", group="kardinal.io")
    await chains.account("dev", rule("*", on="configmaps"), bundles)
    await start_controller(chains.world)
    await start_simulator(chains.world)
    config = {"repository": configuration.url, "from": "configs", "strategy": "overlay"}
    places = [environment(name, update={"config": config}) for name in (DEV, PROD)]
    await chains.world.apply(pipeline(repository, environments=places))
    await chains.apply(SOURCE, BUILT)
    return chains


def web(configuration: GitRepository, sha: str, **params: str) -> JsonObject:
    """Return a Workload whose source is at a commit, as a source-controller reports it."""
    values = {"url": configuration.url, "revision": f"main@sha1:{sha}", **params}
    return workload(params=[{"name": name, "value": value} for name, value in values.items()])


async def shipped(chains: Chains, *objects: JsonObject) -> JsonObject:
    """Apply objects, and return the spec of the Bundle that is Verified in prod because of them."""
    before = {each["metadata"]["name"] for each in await chains.world.objects(BUNDLE, TEAM)}
    await chains.apply(*objects)

    async def is_ready() -> bool:
        found = (await chains.world.get(WORKLOAD, "web")).get("status") or {}
        named = {(each.get("stampedRef") or {}).get("name") for each in found.get("resources") or ()}
        made = {each["metadata"]["name"] for each in await chains.world.objects(BUNDLE, TEAM)} - before
        return bool(made & named) and condition(found, "Ready")[0] == "True"

    await chains.world.until(is_ready)
    [made] = [each for each in await chains.world.objects(BUNDLE, TEAM) if each["metadata"]["name"] not in before]
    assert made["status"]["phase"] == "Verified"
    spec: JsonObject = made["spec"]
    return spec


async def test_bundle_of_a_commit_brings_its_files_to_prod(
    promoting: Chains, repository: GitRepository, configuration: GitRepository
) -> None:
    chain = blueprint(
        resource("source", kind="ClusterSourceTemplate"),
        resource("bundle", kind="ClusterTemplate", sources=[{"name": "source", "resource": "source"}]),
        serviceAccountRef={"name": "dev"},
    )
    first = configuration.commit({LIMITS: "cpu: 2\n"})
    spec = await shipped(promoting, bundle_of("config"), chain, web(configuration, first))
    assert (spec["type"], spec["artifacts"]["gitCommit"]["sha"]) == ("config", first)
    for name in (DEV, PROD):
        assert repository.read(f"environments/{name}/limits.yaml") == "cpu: 2\n"
    second = configuration.commit({LIMITS: "cpu: 3\n"})
    spec = await shipped(promoting, web(configuration, second))
    assert spec["artifacts"]["gitCommit"]["sha"] == second
    assert repository.read(f"environments/{PROD}/limits.yaml") == "cpu: 3\n"


async def test_bundle_of_an_image_and_a_commit_brings_both_to_prod(
    promoting: Chains, repository: GitRepository, configuration: GitRepository
) -> None:
    chain = blueprint(
        resource("source", kind="ClusterSourceTemplate"),
        resource("image", kind="ClusterImageTemplate", sources=[{"name": "source", "resource": "source"}]),
        resource(
            "bundle",
            kind="ClusterTemplate",
            sources=[{"name": "source", "resource": "source"}],
            images=[{"name": "image", "resource": "image"}],
        ),
        serviceAccountRef={"name": "dev"},
    )
    mixed = bundle_of("mixed", images=[{"reference": "$(image)$"}])
    sha = configuration.commit({LIMITS: "cpu: 2\n"})
    spec = await shipped(promoting, mixed, chain, web(configuration, sha, tag="1.1.0"))
    assert spec["type"] == "mixed"
    assert spec["artifacts"]["images"] == [{"reference": f"{IMAGE}:1.1.0"}]
    for name in (DEV, PROD):
        directory = f"environments/{name}"
        assert repository.read(f"{directory}/limits.yaml") == "cpu: 2\n"
        assert 'newTag: "1.1.0"' in repository.read(f"{directory}/kustomization.yaml")
    later = configuration.commit({LIMITS: "cpu: 3\n"})
    spec = await shipped(promoting, web(configuration, later, tag="1.1.0"))
    assert spec["artifacts"]["gitCommit"]["sha"] == later
    assert repository.read(f"environments/{PROD}/limits.yaml") == "cpu: 3\n"
    assert 'newTag: "1.1.0"' in repository.read(f"environments/{PROD}/kustomization.yaml")
