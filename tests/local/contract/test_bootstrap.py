"""What is there before anybody asks."""

from __future__ import annotations

import pytest

from hack.kube.bootstrap_policy import BINDINGS, ROLES
from tests.local.contract.grants import RBAC
from tests.local.contract.wire import Api

covers = pytest.mark.covers


@covers("bootstrap", "get", "success")
@pytest.mark.parametrize("name", ["default", "kube-node-lease", "kube-public", "kube-system"])
async def test_the_namespaces_of_every_cluster_are_there(api: Api, name: str) -> None:
    assert (await api.get(f"/api/v1/namespaces/{name}")).status == 200
    path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    await api.until(lambda: _found(api, path))
    assert (await api.get(path)).status == 200


async def _found(api: Api, path: str) -> bool:
    return (await api.silent.get(path)).status == 200


@covers("bootstrap", "get", "success")
@pytest.mark.parametrize("name", ROLES)
async def test_the_roles_of_every_cluster_are_there_word_for_word(api: Api, name: str) -> None:
    assert (await api.get(api.path("clusterroles", name, group=RBAC, namespace=None))).body["rules"]


@covers("bootstrap", "get", "success")
@pytest.mark.parametrize("name", BINDINGS)
async def test_the_bindings_of_every_cluster_are_there_word_for_word(api: Api, name: str) -> None:
    assert (await api.get(api.path("clusterrolebindings", name, group=RBAC, namespace=None))).body["subjects"]
