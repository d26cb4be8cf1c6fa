"""A tenant whose account may create Graphs, and lets a Graph make one that runs as a stronger account."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.objects import DEPLOYMENT, GRAPH, SERVICE_ACCOUNT, JsonObject
from tests.attacks.test_graph_accounts import A_MINUTE, deployment, graph, nodes, template
from tests.support.accounts import allow, make_account, rule
from tests.support.names import TEAM
from tests.support.programs import start_controller
from tests.support.world import World

GRAPHS = rule("*", on="graphs", group="experimental.kro.run")
DEPLOYMENTS = rule("*", on="deployments", group="apps")


def nested(name: str, *body: JsonObject, account: str = "deployer", **spec: Any) -> JsonObject:
    """Return a node that makes a Graph."""
    made = graph(*body, name=name, account=account)
    del made["metadata"]["namespace"]
    made["spec"] |= spec
    return template(made, node=name)


async def accepted(world: World, name: str) -> tuple[str, str]:
    """Return whether the engine has accepted a Graph, and why not."""
    await world.settle()
    conditions = (await world.get(GRAPH, name))["status"]["conditions"]
    [found] = [each for each in conditions if each["type"] == "Accepted"]
    return found["reason"], found["message"]


@pytest.fixture
async def accounts(world: World) -> None:
    """Make an account that may write Graphs alone, and a stronger one that the namespace lends, too."""
    await make_account(world, "deployer", GRAPHS)
    await make_account(world, "powerful", GRAPHS, DEPLOYMENTS)


@pytest.mark.usefixtures("accounts")
async def test_graph_makes_none_that_runs_as_a_stronger_account(world: World) -> None:
    await start_controller(world)
    await world.apply(graph(nested("inner", template(deployment()), account="powerful")))
    reason, message = await accepted(world, "inner")
    assert reason == "NotAdmitted"
    assert message.startswith("spec.nodes: Graph g runs as ServiceAccount deployer, which may not act as powerful")
    assert await world.find(DEPLOYMENT, "web") is None


@pytest.mark.usefixtures("accounts")
async def test_nested_graph_has_no_other_rights_than_its_account(world: World) -> None:
    await start_controller(world)
    await world.apply(graph(nested("inner", template(deployment()))))
    assert await nodes(world, "inner") == {"web": ("Error", "AccessDenied")}
    assert await world.find(DEPLOYMENT, "web") is None


@pytest.mark.virtual_time("rights are asked for again after a minute")
@pytest.mark.usefixtures("accounts")
async def test_account_that_may_act_as_another_one_may_name_it(world: World) -> None:
    await start_controller(world)
    await world.apply(graph(nested("inner", template(deployment()), account="powerful")))
    assert (await accepted(world, "inner"))[0] == "NotAdmitted"
    impersonate = rule("impersonate", on=SERVICE_ACCOUNT.plural, names=("powerful",))
    await allow(world, "deployer", GRAPHS, impersonate)
    await world.live(A_MINUTE)
    await world.live(A_MINUTE)
    assert await nodes(world, "inner") == {"web": ("Ready", "")}


@pytest.mark.usefixtures("accounts")
async def test_refused_graph_in_between_hides_no_account(world: World) -> None:
    await start_controller(world)
    innermost = nested("innermost", template(deployment()), account="powerful")
    [outer] = await world.apply(graph(name="outer"))
    reference = {"apiVersion": GRAPH.api_version, "kind": "Graph", "controller": True}
    middle = graph(name="middle", account="powerful")
    middle["metadata"]["ownerReferences"] = [reference | {f: outer["metadata"][f] for f in ("name", "uid")}]
    [middle] = await world.apply(middle)
    below = graph(name="innermost", account="powerful")
    below["spec"] = innermost["template"]["spec"]
    below["metadata"]["ownerReferences"] = [reference | {f: middle["metadata"][f] for f in ("name", "uid")}]
    await world.apply(below)
    assert (await accepted(world, "middle"))[0] == (await accepted(world, "innermost"))[0] == "NotAdmitted"
    assert await world.find(DEPLOYMENT, "web") is None


@pytest.mark.usefixtures("accounts")
async def test_graph_that_makes_itself_again_ends_at_the_eighth(world: World) -> None:
    await start_controller(world)
    body: tuple[JsonObject, ...] = ()
    for depth in range(10, 0, -1):
        body = (nested(f"deep{depth}", *body),)
    await world.apply(graph(*body))
    assert (await accepted(world, "deep8"))[0] == "Compiled"
    assert await accepted(world, "deep9") == (
        "NotAdmitted",
        "spec.nodes: it is nested deeper than 8 Graphs: make it by one above",
    )
    assert await world.find(GRAPH, "deep10") is None
    await world.delete(GRAPH, "g")
    await world.settle()
    assert await world.objects(GRAPH, TEAM) == []


@pytest.mark.usefixtures("accounts")
async def test_nested_graph_promotes_no_bundle(world: World) -> None:
    await start_controller(world)
    await world.apply(graph(nested("inner", bundleRef="app-1")))
    assert (await accepted(world, "inner"))[0] == "NotAdmitted"
