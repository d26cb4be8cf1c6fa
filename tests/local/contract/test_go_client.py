"""A controller in Go, with informers, leader election and protobuf, works on the server.

It is built from hack/goclient; what it does is described there.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from hack.kube.assets import locate
from tests.local.contract.conftest import Cluster
from tests.local.contract.examples import config_map
from tests.local.contract.wire import Api

DEADLINE = 40.0


@pytest.fixture(scope="session")
def go_client() -> Path:
    """The program, where it was built."""
    assets = locate()
    if "goclient" not in assets.binaries:
        pytest.skip("the Go client is not built: `make assets` builds it")
    return assets["goclient"]


async def test_a_go_controller_elects_watches_writes_applies_and_records(
    api: Api, cluster: Cluster, go_client: Path
) -> None:
    silent = api.silent
    await silent.post(api.path("secrets"), {"metadata": {"name": "order", "labels": {"kind": "order"}}})
    await silent.post(api.path("configmaps"), config_map("order", image="app:1"))
    process = await asyncio.create_subprocess_exec(
        go_client,
        f"-kubeconfig={cluster.kubeconfig}",
        f"-namespace={api.namespace}",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(DEADLINE):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()[-2000:]
    assert orjson.loads(out) == {
        "image": "app:1",
        "replicas": 2,
        "conditions": ["Ordered"],
        "appliedData": "go",
        "appliedManager": "goclient/Apply",
        "secretLabels": ["kind=order"],
    }
    lease = await silent.get(api.path("leases", "goclient.kardinal.io", group="coordination.k8s.io"))
    assert lease.body["spec"]["holderIdentity"] == "", "the leader gave its lease back"
    events = await silent.get(api.path("events"))
    assert [one["reason"] for one in events.body["items"] if one["involvedObject"]["kind"] == "ConfigMap"] == [
        "Ordered"
    ]
