"""A real API server is met as new by every test, whatever the one before did to it."""

from __future__ import annotations

from contextlib import closing

import orjson
import pytest

from kardinal.kube import PatchType
from kardinal.objects import CONFIG_MAP, DEPLOYMENT, NAMESPACE
from kardinal.promotion.kinds import BUNDLE
from tests.support.administrator import Administrator
from tests.support.names import POLICIES, TEAM, of_run
from tests.support.objects import bundle, namespace
from tests.support.real import RealServer
from tests.support.store import Etcd, Stored
from tests.support.world import World

OTHER = of_run("other")


async def test_a_server_is_put_back_whatever_was_done_to_it(world: World, real_server: RealServer | None) -> None:
    if real_server is None:
        pytest.skip("a local plane is made anew for each test")
    before = {obj["metadata"]["name"] for obj in await world.objects(NAMESPACE)}
    assert not any(name.startswith("contract-") for name in before)
    held = bundle("held")
    held["metadata"]["finalizers"] = ["example.com/for-ever"]
    await world.apply(namespace(OTHER), held)
    await world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": OTHER}})
    labels = {"metadata": {"labels": {"touched": "yes"}}}
    await world.client.patch(NAMESPACE, POLICIES, None, labels, kind=PatchType.MERGE)
    await world.delete(BUNDLE, "held")
    assert world.audit.writes > 0

    real_server.reset()

    assert {obj["metadata"]["name"] for obj in await world.objects(NAMESPACE)} == before
    assert "touched" not in (await world.get(NAMESPACE, POLICIES))["metadata"]["labels"]
    assert await world.objects(BUNDLE) == await world.objects(CONFIG_MAP, OTHER) == []
    assert world.audit.writes == 0


@pytest.mark.usefixtures("api_server")
def test_a_server_no_longer_remembers_what_is_gone_when_it_is_put_back(real_server: RealServer | None) -> None:
    if real_server is None:
        pytest.skip("a local plane is made anew for each test")
    names = [f"many-{number}" for number in range(2000)]
    with closing(Etcd(real_server.kubeconfig.with_name("store-url").read_text())) as store:
        store.write(put=[Stored(f"kardinal.io/bundles/{TEAM}/{name}", 0, orjson.dumps(bundle(name))) for name in names])

    real_server.reset()

    # Not by a get: a list is what the watch cache of the server answers.
    with closing(Administrator(real_server.kubeconfig)) as administrator:
        assert administrator.cached(BUNDLE) == []


async def test_a_world_rests_when_its_pods_run_or_never_will(world: World) -> None:
    if not world.server.runs_workloads:
        pytest.skip("nothing runs on a local plane by itself")
    for name, image in (("good", "example.com/app:1"), ("bad", "example.com/app:broken")):
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "app", "image": image}]}}
        await world.apply(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": TEAM},
                "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template},
            }
        )

    await world.settle()

    good, bad = [(await world.get(DEPLOYMENT, name))["status"] for name in ("good", "bad")]
    assert (good.get("availableReplicas", 0), bad.get("availableReplicas", 0)) == (2, 0)
