"""Objects outside the namespace of a Graph: made as its account, known by uid, and nothing of others is touched."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.graph.identity import GRAPH_UID
from kardinal.objects import DEPLOYMENT, GRAPH, GRAPH_REVISION, NAMESPACE, JsonObject
from tests.attacks.test_graph_accounts import VICTIM, WRITES, deployment, graph, message, nodes, template
from tests.support.accounts import allow, make_account, rule
from tests.support.identities import ACCOUNTS, RESOURCES, SYSTEM_NAMESPACE
from tests.support.names import TEAM, of_run
from tests.support.people import people_of
from tests.support.programs import start_controller
from tests.support.world import World

A_LITTLE_LATER = timedelta(seconds=6)


@pytest.fixture(autouse=True)
async def deployer(world: World) -> None:
    """Make an account that may write Deployments of its namespace and of another one."""
    rights = rule(*WRITES, on="deployments", group="apps")
    await make_account(world, "deployer", rights)
    await allow(world, "deployer", rights, namespace=VICTIM, home=TEAM)


async def found(world: World, name: str = "web") -> JsonObject | None:
    """Return a Deployment of the other namespace."""
    return next((obj for obj in await world.objects(DEPLOYMENT, VICTIM) if obj["metadata"]["name"] == name), None)


async def recorded(world: World) -> list[tuple[str, str]]:
    """Return namespace and name of the objects in the record of the newest revision."""
    revisions = sorted(await world.objects(GRAPH_REVISION, TEAM), key=lambda each: each["metadata"]["name"])
    objects = (revisions[-1].get("status") or {}).get("objects", ())
    return [(each["namespace"], each["name"]) for each in objects]


def outside(name: str = "web", **spec: int) -> JsonObject:
    return template(deployment(name, namespace=VICTIM, **spec), node=name)


@pytest.mark.virtual_time("what is outside is looked for again after some seconds")
async def test_object_outside_is_made_recorded_and_deleted_with_the_graph(world: World) -> None:
    await start_controller(world)
    await world.apply(graph(outside(), outside("more")))
    assert await nodes(world) == {"web": ("Ready", ""), "more": ("Ready", "")}
    made = await found(world)
    assert made is not None
    assert "ownerReferences" not in made["metadata"]
    assert sorted(await recorded(world)) == [(VICTIM, "more"), (VICTIM, "web")]
    await world.apply(graph(outside(minReadySeconds=3)))
    await world.live(A_LITTLE_LATER)
    changed = await found(world)
    assert changed is not None
    assert (changed["metadata"]["uid"], changed["spec"]["minReadySeconds"]) == (made["metadata"]["uid"], 3)
    assert await found(world, "more") is None
    assert await recorded(world) == [(VICTIM, "web")]
    await world.delete(GRAPH, "g")
    await world.live(A_LITTLE_LATER)
    assert await found(world) is None
    assert await world.find(GRAPH, "g") is None


@pytest.mark.virtual_time("what is outside is looked for again after some seconds")
async def test_restart_knows_what_is_outside(world: World) -> None:
    controller = await start_controller(world)
    await world.apply(graph(outside(), template(deployment("inside"), "inside")))
    assert set((await nodes(world)).values()) == {("Ready", "")}
    await world.delete(GRAPH_REVISION, "g-g00001")
    await world.settle()
    assert await recorded(world) == [(VICTIM, "web")]
    await world.stop(controller)
    await world.apply(graph(template(deployment("inside"), "inside")))
    await start_controller(world)
    await world.live(A_LITTLE_LATER)
    assert await found(world) is None
    assert await recorded(world) == []


@pytest.mark.virtual_time("what is outside is looked for again after some seconds")
async def test_object_of_others_is_neither_taken_nor_deleted(world: World) -> None:
    theirs = deployment(namespace=VICTIM)
    [uid] = [obj["metadata"]["uid"] for obj in await world.apply(graph(name="g", account=None))]
    theirs["metadata"]["annotations"] = {GRAPH_UID: uid}
    await world.apply(theirs)
    await start_controller(world)
    await world.apply(graph(outside(minReadySeconds=3)))
    assert await nodes(world) == {"web": ("Conflict", "ForeignObject")}
    await world.delete(GRAPH, "g")
    await world.live(A_LITTLE_LATER)
    kept = await found(world)
    assert kept is not None
    assert "minReadySeconds" not in kept["spec"]
    assert await world.find(GRAPH, "g") is None


@pytest.mark.virtual_time("what is outside is looked for again after some seconds")
async def test_object_that_was_made_again_by_others_is_theirs(world: World) -> None:
    controller = await start_controller(world)
    await world.apply(graph(outside()))
    assert await nodes(world) == {"web": ("Ready", "")}
    made = await found(world)
    assert made is not None
    await world.stop(controller)
    await world.client.delete(DEPLOYMENT, "web", VICTIM)
    forged = deployment(namespace=VICTIM)
    forged["metadata"] |= {field: made["metadata"][field] for field in ("labels", "annotations")}
    await world.until(lambda: _gone(world))
    await world.apply(forged)
    await start_controller(world)
    assert await nodes(world) == {"web": ("Conflict", "ForeignObject")}
    await world.delete(GRAPH, "g")
    await world.live(A_LITTLE_LATER)
    assert await found(world) is not None
    assert await world.find(GRAPH, "g") is None


async def _gone(world: World) -> bool:
    return await found(world) is None


async def _everywhere(world: World, name: str, *verbs: str, account: str, namespace: str) -> None:
    """Give an account a right on namespaces of the whole cluster."""
    group = "rbac.authorization.k8s.io"
    metadata = {"name": of_run(name)}
    version = f"{group}/v1"
    rules = [rule(*verbs, on="namespaces")]
    role: JsonObject = {"apiVersion": version, "kind": "ClusterRole", "metadata": metadata, "rules": rules}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": of_run(name)}
    binding: JsonObject = {
        "apiVersion": version,
        "kind": "ClusterRoleBinding",
        "metadata": metadata,
        "roleRef": reference,
        "subjects": [subject],
    }
    for obj in (role, binding):
        await world.client.apply(RESOURCES[str(obj["kind"])], obj, field_manager="test", force=True)
    async with people_of(world) as people:
        user = f"system:serviceaccount:{namespace}:{account}"
        await people.until_allowed(user, *((verb, "namespaces") for verb in verbs), namespace="")


@pytest.mark.local_only("a real API server keeps a namespace until its controller has emptied it")
@pytest.mark.virtual_time("what is outside is looked for again after some seconds")
async def test_object_of_the_cluster_is_made_and_deleted(world: World) -> None:
    await _everywhere(world, "makes-namespaces", "get", "create", "patch", "delete", account="deployer", namespace=TEAM)
    await _everywhere(world, "sees", "list", "watch", account=ACCOUNTS["controller"], namespace=SYSTEM_NAMESPACE)
    await start_controller(world)
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": of_run("made")}}
    await world.apply(graph(template(made, "made")))
    assert await nodes(world) == {"made": ("Ready", "")}
    assert await _has_namespace(world)
    await world.delete(GRAPH, "g")
    await world.live(A_LITTLE_LATER)
    assert not await _has_namespace(world)
    assert await world.find(GRAPH, "g") is None


async def _has_namespace(world: World) -> bool:
    listed = await world.client.list(NAMESPACE)
    return of_run("made") in {each["metadata"]["name"] for each in listed.items}


async def test_account_without_rights_there_makes_nothing(world: World) -> None:
    await make_account(world, "intern", rule(*WRITES, on="deployments", group="apps"))
    await start_controller(world)
    await world.apply(graph(outside(), account="intern"))
    assert await nodes(world) == {"web": ("Error", "AccessDenied")}
    assert await found(world) is None


async def test_secrets_and_graphs_are_made_inside_alone(world: World) -> None:
    rules = [rule("*", on="graphs", group="experimental.kro.run"), rule("*", on="secrets")]
    for namespace in (TEAM, VICTIM):
        await allow(world, "deployer", *rules, namespace=namespace, home=TEAM)
    await start_controller(world)
    inner = graph(name="inner")
    inner["metadata"]["namespace"] = VICTIM
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": VICTIM}}
    await world.apply(graph(template(inner, "inner"), template(secret, "secret")))
    assert await nodes(world) == dict.fromkeys(("inner", "secret"), ("Error", "InvalidObject"))
    assert "in its own namespace only" in await message(world, "inner")
