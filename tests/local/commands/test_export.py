"""An export that is applied to a fresh plane where everything runs: nothing is promoted again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.kube import Client
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal_local.exclusions import exclusion
from tests.resilience.processes import Local, Shell, make_namespace, phase, state, wait_for
from tests.support.commands import KARDINAL
from tests.support.names import DEV, PROD, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.repository import GitRepository
from tests.support.world import KINDS


def _managed(kind: str, *managers: str, namespace: str = "default", **fields: Any) -> JsonObject:
    metadata = {"name": "x", "namespace": namespace, "managedFields": [{"manager": name} for name in managers]}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


def _bundle(phase: str, **entry: str) -> JsonObject:
    return bundle("app-1") | {"status": {"phase": phase, "environments": {"dev": {"state": "Verified", **entry}}}}


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (_managed("Deployment", "kardinal-simulator"), "that the simulator makes again"),
        (_managed("Deployment", "kardinal-simulator", "kubectl-edit"), ""),
        (_managed("ConfigMap", "kardinal-local", namespace="kardinal-system"), "that `kardinal local up` makes again"),
        (
            _managed("Secret", "kardinal-controller", namespace="kardinal-system"),
            "that `kardinal local up` makes again",
        ),
        (_managed("Secret", "kardinal-controller"), ""),
        (_managed("Secret", "kubectl-create"), ""),
        (_managed("ConfigMap", "kube-controller-manager"), "that the server makes itself"),
        (bundle("app-1"), ""),
        (_bundle("Promoting"), ""),
        (_bundle("Promoting", replacedAt="2026-03-03T10:00:00Z"), "Bundles under way that a newer one has overtaken"),
        (_bundle("Promoting", displacedBy="app-2"), "Bundles under way that a newer one has overtaken"),
        *((_bundle(ended), "Bundles that have ended") for ended in ("Verified", "Failed", "Superseded", "SkipDenied")),
    ],
)
def test_object_that_is_made_again_or_must_not_be_is_left_out(document: JsonObject, why: str) -> None:
    found = exclusion(document)
    assert found.startswith(why) if why else not found


@pytest.mark.local_only("two planes of its own")
@pytest.mark.timeout(240)
async def test_exported_objects_promote_nothing_again(shell: Shell, repository: GitRepository, tmp_path: Path) -> None:
    old = Local(shell, tmp_path / "old", "--simulate")
    await old.up()
    async with old.client() as client:
        await make_namespace(client)
        await client.apply(*_of(gate("open", "true")), field_manager="test")
        await client.apply(
            *_of(pipeline(repository, environments=[DEV, environment(PROD, approval="pr-review")])),
            field_manager="test",
        )
        await client.apply(*_of(bundle("app-1", tag="1.1.0", intent={"target": DEV})), field_manager="test")
        await wait_for(client, BUNDLE, phase("Verified"), "app-1")
        for name, tag in (("app-3", "1.2.0"), ("app-2", "1.3.0")):
            await client.apply(*_of(bundle(name, tag=tag)), field_manager="test")
            await wait_for(client, PROMOTION_STEP, state("WaitingForMerge"), f"{name}-{PROD}")
        await wait_for(client, BUNDLE, phase("Superseded"), "app-3")
    documents, told = await _export(old.directory)
    await old.kill()
    kinds = {(document["kind"], document["metadata"]["name"]) for document in documents}
    assert {name for kind, name in kinds if kind == "Bundle"} == {"app-2"}
    assert not {name for kind, name in kinds if kind in ("Deployment", "CustomResourceDefinition", "ClusterRole")}
    assert ("ConfigMap", "kardinal-info") not in kinds
    assert "left out 2 Bundles that have ended" in told
    order = [document["kind"] for document in documents if document["apiVersion"].startswith("kardinal.io/")]
    assert order == ["PolicyGate", "Pipeline", "Bundle"]

    head = repository.head()
    commits = len(repository.commits())
    fresh = Local(shell, tmp_path / "fresh", "--simulate")
    await fresh.up()
    async with fresh.client() as client:
        await _apply(client, documents)
        await wait_for(client, PROMOTION_STEP, state("Verified"), f"app-2-{DEV}")
        await wait_for(client, PROMOTION_STEP, state("WaitingForMerge"), f"app-2-{PROD}")
    assert (repository.head(), len(repository.commits())) == (head, commits)
    # The pull request that waited is the one that goes on.
    numbers = repository.git("for-each-ref", "--format=%(refname)", "refs/kardinal/pull/*/meta").splitlines()
    assert len(numbers) == 2
    await shell.run("kardinal", "pr", "merge", "2", "-n", TEAM, kubeconfig=fresh.kubeconfig)
    async with fresh.client() as client:
        await wait_for(client, BUNDLE, phase("Verified"), "app-2")


def _of(document: JsonObject) -> tuple[Any, JsonObject]:
    return KINDS[document["apiVersion"], document["kind"]], document


async def _apply(client: Client, documents: Sequence[JsonObject]) -> None:
    for document in documents:
        await client.apply(*_of(document), field_manager="test")


async def _export(directory: Path) -> tuple[list[JsonObject], str]:
    """Return the documents, and what is said about those that are left out."""
    process = await asyncio.create_subprocess_exec(
        *(KARDINAL, "local", "export", "--dir", directory),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err
    return list(yaml.safe_load_all(out)), err.decode()
