"""A tenant who may write Graphs in one namespace, and patches what their account may not write."""

from __future__ import annotations

import pytest

from kardinal.objects import DEPLOYMENT, GRAPH, JsonObject
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from tests.attacks.test_graph_accounts import VICTIM, deployment, graph, message, nodes
from tests.support.accounts import make_account, rule
from tests.support.names import TEAM
from tests.support.objects import bundle, gate
from tests.support.programs import start_controller
from tests.support.world import World

WRITES = ("get", "list", "patch")


def patch(body: JsonObject | str, node: str = "p") -> JsonObject:
    return {"id": node, "patch": body}


def waiting(*, namespace: str = TEAM, name: str = "web") -> JsonObject:
    """Return a field of a Deployment that is not set."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"minReadySeconds": 5}}


def own_metadata(obj: JsonObject) -> JsonObject:
    """Return labels, annotations, finalizers and owners of an object, without those of the controller of its kind."""
    metadata = obj["metadata"]
    annotations = (each for each in metadata.get("annotations", {}) if not each.startswith("deployment.kubernetes.io/"))
    found = {field: metadata.get(field) for field in ("labels", "finalizers", "ownerReferences")}
    return {field: value for field, value in {**found, "annotations": list(annotations)}.items() if value}


async def test_account_patches_what_it_may_patch_and_nothing_else(world: World) -> None:
    await make_account(world, "deployer", rule("get", on="deployments", group="apps"))
    await world.apply(deployment(namespace=TEAM), deployment(namespace=VICTIM))
    await start_controller(world)
    await world.apply(graph(patch(waiting()), patch(waiting(namespace=VICTIM), "elsewhere")))
    found = await nodes(world)
    assert found == {"p": ("Error", "Forbidden"), "elsewhere": ("Error", "AccessDenied")}
    for namespace in (TEAM, VICTIM):
        assert "minReadySeconds" not in (await world.client.get(DEPLOYMENT, "web", namespace))["spec"]


async def test_kind_of_kardinal_is_not_patched_whatever_the_account_may(world: World) -> None:
    rules = [rule("*", on="*", group="kardinal.io"), rule("*", on="*", group="experimental.kro.run")]
    await make_account(world, "deployer", *rules)
    await start_controller(world)
    await world.apply(gate("soak", "false"), bundle("app-1"))
    kinds = {"gate": (POLICY_GATE, "soak"), "bundle": (BUNDLE, "app-1"), "graph": (GRAPH, "g")}
    opened = [
        patch(
            {
                "apiVersion": kind.api_version,
                "kind": kind.kind,
                "metadata": {"name": name},
                "spec": {"expression": "true"},
                "status": {"ready": True},
            },
            node,
        )
        for node, (kind, name) in kinds.items()
    ]
    await world.apply(graph(*opened))
    assert await nodes(world) == dict.fromkeys(kinds, ("Error", "ReservedKind"))
    assert (await world.get(POLICY_GATE, "soak"))["spec"]["expression"] == "false"


@pytest.mark.parametrize(
    "metadata",
    [
        "{'name': 'web', 'finalizers': ['attacker.example/hold']}",
        "{'name': 'web', 'ownerReferences': []}",
        "{'name': 'web', 'labels': {'internal.kro.run/graph': '0123456789ab'}}",
        "{'name': 'web', 'annotations': {'web.g.team.internal.kro.run/type': 'template'}}",
    ],
)
async def test_computed_patch_sets_neither_owner_finalizer_nor_mark(world: World, metadata: str) -> None:
    await make_account(world, "deployer", rule(*WRITES, on="deployments", group="apps"))
    [before] = await world.apply(deployment(namespace=TEAM))
    await start_controller(world)
    await world.apply(graph(patch(f"${{{{'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {metadata}}}}}")))
    assert await nodes(world) == {"p": ("Error", "InvalidObject")}
    after = await world.get(DEPLOYMENT, "web")
    assert [own_metadata(obj) for obj in (after, before)] == [{}, {}]


async def test_forged_mark_of_a_patch_holds_up_no_graph(world: World) -> None:
    await make_account(world, "deployer", rule(*WRITES, on="deployments", group="apps"))
    await world.apply(deployment(namespace=TEAM))
    await start_controller(world)
    await world.apply(graph(patch(waiting())))
    assert await nodes(world) == {"p": ("Ready", "")}
    patched = await world.get(DEPLOYMENT, "web")
    assert patched["spec"]["minReadySeconds"] == 5
    forged = deployment(namespace=VICTIM)
    forged["metadata"]["labels"] = patched["metadata"]["labels"]
    forged["metadata"]["finalizers"] = ["attacker.example/hold"]
    await world.apply(forged)
    before = await world.client.get(DEPLOYMENT, "web", VICTIM)
    await world.delete(GRAPH, "g")
    await world.settle()
    assert await world.find(GRAPH, "g") is None
    assert "minReadySeconds" not in (await world.get(DEPLOYMENT, "web"))["spec"]
    after = await world.client.get(DEPLOYMENT, "web", VICTIM)
    assert (after["spec"], own_metadata(after)) == (before["spec"], own_metadata(before))


async def test_patch_with_data_of_a_secret_tells_no_name(world: World) -> None:
    rules = [rule("get", on="deployments", group="apps"), rule("get", on="secrets", names=("keys",))]
    await make_account(world, "deployer", *rules)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": TEAM}}
    await world.apply({**secret, "stringData": {"name": "web"}}, deployment(namespace=TEAM))
    await start_controller(world)
    read = {"id": "read", "ref": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}}
    named = waiting(name="${string(base64.decode(read.data.name))}")
    await world.apply(graph(read, patch(named)))
    assert (await nodes(world))["p"] == ("Error", "Forbidden")
    assert (await message(world, "p")).startswith("not told")
