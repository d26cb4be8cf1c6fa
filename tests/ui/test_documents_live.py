"""Documents of the page on objects as controller and agent write them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.views.api_reader import ApiReader
from kardinal.promotion.views.reading import PipelineObjects, read_objects
from kardinal_controller.ui.documents import (
    bundle_document,
    environment_document,
    gate_document,
    graph_document,
    graph_row,
    pipeline_document,
    pipeline_row,
)
from tests.agent.promotion_steps import deploy
from tests.bundles.reading import phase
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

REPOSITORY = "https://git.example.com/acme/gitops.git"


async def read(world: World) -> PipelineObjects:
    return await read_objects(ApiReader(world.client), TEAM, "my-app")


def in_state(state: str) -> Callable[[JsonObject], bool]:
    return lambda stored: (stored.get("status") or {}).get("state") == state


def has_answers(count: int, instance: JsonObject) -> bool:
    return len(instance["status"].get("history") or ()) == count


async def test_a_bundle_waits_at_a_gate_until_its_label_changes(world: World) -> None:
    agent = ScriptedAgent(world)
    await start_controller(world, standalone=False)
    await world.apply(
        pipeline(REPOSITORY, environments=[DEV, STAGING, PROD], provider="gitea"),
        gate("always", "true", applies_to=STAGING, namespace=POLICIES),
        gate("release", "bundle.labels.go == 'yes'", applies_to=STAGING, namespace=POLICIES, message="Ask the team"),
        bundle("my-app-1", labels={"go": "no"}),
    )
    await agent.verify(f"my-app-1-{DEV}")
    instance = f"my-app-1-{STAGING}-release"
    await world.wait_for(POLICY_GATE, instance, lambda stored: (stored.get("status") or {}).get("ready") is False)
    await world.settle()

    objects = await read(world)
    now = world.clock.now()
    row = pipeline_row(objects, now=now)
    assert (row.need, row.why.text) == ("held", f"{STAGING}: BLOCKED by release")
    document = pipeline_document(objects, now=now)
    assert list(document.nodes) == [
        f"environment/{DEV}",
        f"gate/{STAGING}/{POLICIES}/always",
        f"gate/{STAGING}/{POLICIES}/release",
        f"environment/{STAGING}",
        f"environment/{PROD}",
    ]
    assert [edge.open for edge in document.edges.values()] == [True, True, True, False, False]
    template = await world.client.get(POLICY_GATE, "release", POLICIES)
    drawer = gate_document(objects, STAGING, POLICIES, "release", template=template, now=now)
    assert [(value.name, value.value, value.needed) for value in drawer.values] == [
        ("bundle.labels.go", "no", 'must be "yes"')
    ]
    assert [answer.answer.name for answer in drawer.history] == ["FAIL"]

    for go, answers in (("yes", 2), ("no", 3)):
        await world.client.patch(BUNDLE, "my-app-1", TEAM, {"metadata": {"labels": {"go": go}}})
        await world.wait_for(POLICY_GATE, instance, partial(has_answers, answers))
    await world.settle()
    drawer = gate_document(await read(world), STAGING, POLICIES, "release", template=template, now=world.clock.now())
    assert [answer.reason for answer in drawer.history] == [f"bundle.labels.go = {go}" for go in ("no", "yes", "no")]


async def test_nodes_of_a_graph_are_shown_beside_their_children(world: World) -> None:
    agent = ScriptedAgent(world)
    await start_controller(world, standalone=False)
    await world.apply(
        pipeline(REPOSITORY, environments=[DEV, STAGING], provider="gitea"),
        gate("release", "bundle.labels.go == 'yes'", applies_to=STAGING, namespace=POLICIES),
        bundle("my-app-1", labels={"go": "no"}),
    )
    await agent.verify(f"my-app-1-{DEV}")
    await world.wait_for(
        POLICY_GATE,
        f"my-app-1-{STAGING}-release",
        lambda stored: (stored.get("status") or {}).get("ready") is False,
    )
    await world.settle()
    objects = await read(world)
    assert objects.graph is not None
    children = [
        await world.client.get(BUNDLE, "my-app-1", TEAM),
        *(await world.client.list(PROMOTION_STEP, TEAM)).items,
        *(await world.client.list(POLICY_GATE, TEAM)).items,
    ]
    document = graph_document(objects.graph, children)
    shown = {(line.kind, line.name): (line.ready, line.child) for line in document.nodes.values()}
    assert shown["PromotionStep", f"my-app-1-{DEV}"] == ("True", "Verified")
    assert shown["PolicyGate", f"my-app-1-{STAGING}-release"] == ("False", "FAIL")
    assert shown["PromotionStep", f"my-app-1-{STAGING}"] == ("False", "")
    assert shown["Bundle", "my-app-1"] == ("True", "Promoting")
    by_name = {line.name: line for line in document.nodes.values()}
    upstreams = {document.nodes[each].name for each in by_name[f"my-app-1-{STAGING}"].upstreams}
    assert upstreams == {"my-app-1", f"my-app-1-{DEV}", f"my-app-1-{STAGING}-release"}
    assert document.conditions["Accepted"].status == "True"
    row = graph_row(objects.graph)
    assert (row.accepted, row.ready) == ("True", "Unknown")


def test_a_graph_without_a_status_and_with_mistakes_is_shown() -> None:
    broken = {"id": "a", "template": {"kind": "ConfigMap", "metadata": {"name": "${b.x}"}}}
    graph = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"nodes": [broken, {"x": 1}]}}
    document = graph_document(graph, [])
    assert [(line.id, line.ready, line.upstreams) for line in document.nodes.values()] == [("a", "Unknown", [])]
    assert graph_row(graph).accepted == "Unknown"


def test_the_nodes_that_a_node_reads_are_those_that_its_expressions_name() -> None:
    nodes = [
        {"id": "a", "template": {"kind": "ConfigMap", "metadata": {"name": "x"}}},
        {"id": "b", "template": {"kind": "ConfigMap", "metadata": {"name": "b"}}, "readyWhen": ["b.data.x == 'c'"]},
        {
            "id": "c",
            "template": {"data": {"b": "words of b", "x": "${a.data.b}"}},
            "includeWhen": ["has(b.data) && 1 > 0"],
        },
        {"id": "d", "template": {"data": {"x": '${x.a + "b" + "a\\"c"}', "y": "$${a}"}}},
    ]
    document = graph_document({"metadata": {"name": "g", "namespace": "default"}, "spec": {"nodes": nodes}}, [])
    assert {line.id: line.upstreams for line in document.nodes.values()} == {"a": [], "b": [], "c": ["a", "b"], "d": []}


async def test_a_promotion_of_the_agent_has_times_evidence_and_a_past(world: World, repository: GitRepository) -> None:
    await start_controller(world, standalone=True)
    await world.apply(pipeline(repository, environments=[DEV]), bundle("my-app-1"))
    await deploy(world)
    await world.wait_for(BUNDLE, "my-app-1", phase("Verified"))
    await world.settle()

    objects = await read(world)
    now = world.clock.now()
    row = pipeline_row(objects, now=now)
    assert (row.need, row.environments[DEV].version, row.environments[DEV].behind) == ("rest", "1.1.0", 0)
    drawer = environment_document(objects, DEV, now=now)
    assert {line.state for line in drawer.steps.values()} == {"Succeeded"}
    assert all(line.started_at and line.finished_at for line in drawer.steps.values())
    assert 'newTag: "1.1.0"' in drawer.diff
    assert [past.state.name for past in drawer.history] == ["Verified"]
    page = bundle_document(objects, now=now)
    evidence = page.environments[DEV]
    assert evidence == drawer.evidence
    times = [evidence.due_at, evidence.started_at, evidence.landed_at, evidence.verified_at]
    assert times == sorted(time for time in times if time is not None)
    assert page.card.phase.name == "Verified"
    assert page.card.runs_in == [DEV]


async def test_a_superseded_bundle_keeps_what_it_reached_and_a_review_has_its_command(
    world: World, repository: GitRepository
) -> None:
    await start_controller(world, standalone=True)
    reviewed = environment(STAGING, approval="pr-review")
    await world.apply(pipeline(repository, environments=[DEV, reviewed, PROD]), bundle("my-app-1"))
    await deploy(world)
    await world.wait_for(PROMOTION_STEP, f"my-app-1-{STAGING}", in_state("WaitingForMerge"))
    await world.settle()
    row = pipeline_row(await read(world), now=world.clock.now())
    assert row.need == "person"
    assert (row.why.tone, row.why.command) == ("you", "kardinal pr merge 1")
    pull = row.environments[STAGING].pull_request
    assert pull is not None
    assert (pull.text, pull.url) == ("#1", None)

    await world.apply(bundle("my-app-2", tag="1.2.0"))
    await deploy(world, image=f"{IMAGE}:1.2.0")
    await world.wait_for(BUNDLE, "my-app-1", phase("Superseded"))
    await world.settle()
    older = await read_objects(ApiReader(world.client), TEAM, "my-app", "my-app-1")
    document = pipeline_document(older, now=world.clock.now())
    states = {node.card.name: node.card.state.name for node in document.nodes.values() if node.kind == "environment"}
    assert states == {DEV: "Verified", STAGING: "Superseded", PROD: "NotReached"}
    assert [(edge.source, edge.target, edge.open) for edge in document.edges.values()] == [
        (f"environment/{DEV}", f"environment/{STAGING}", True),
        (f"environment/{STAGING}", f"environment/{PROD}", False),
    ]
    cards = document.bundles
    assert (cards["my-app-1"].phase.name, cards["my-app-1"].order) == ("Superseded", 0)
    assert cards["my-app-2"].order == 1
    page = bundle_document(older, now=world.clock.now())
    assert page.ahead == []
    assert list(page.environments) == [DEV, STAGING]
