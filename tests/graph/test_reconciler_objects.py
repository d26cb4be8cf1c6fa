"""The engine and the objects of an API server: others write them too, delete them, or had them first."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.objects import CONFIG_MAP, GRAPH, GRAPH_REVISION
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from tests.graph.cluster import config
from tests.graph.program import (
    Writes,
    condition,
    existing,
    graph,
    made_by_graphs,
    nodes_of,
    set_status,
    start_engine,
    states,
    text,
)
from tests.graph.promotions import promotion_nodes, step
from tests.support.names import TEAM
from tests.support.objects import bundle
from tests.support.world import World


@pytest.mark.case("A67")
async def test_drift_of_our_fields_is_corrected_and_others_fields_are_kept(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"})))
    await world.settle()
    await world.client.patch(CONFIG_MAP, "a", TEAM, {"data": {"x": "changed", "theirs": "kept"}})
    await world.settle()
    assert await text(world, "a") == "theirs=kept,x=1"


@pytest.mark.virtual_time("what is put off is not written before")
async def test_two_programs_that_disagree_do_not_write_without_end(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"})))
    await world.settle()
    writes = Writes(world)
    for _ in range(5):
        await world.client.patch(CONFIG_MAP, "a", TEAM, {"data": {"x": "other"}})
        await world.settle()
    assert (await writes.take()).count("patch configmaps/a") == 1
    assert (await condition(world, "Ready"))[1] == "Conflict"
    await world.live(timedelta(seconds=15))
    assert await text(world, "a") == "x=1"
    assert (await condition(world, "Ready"))[:2] == ("True", "Ready")


@pytest.mark.case("A68")
async def test_a_deleted_object_is_made_again(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"}), config("b", {"uid": "${a.metadata.uid}"})))
    await world.settle()
    before = await text(world, "b")
    await world.delete(CONFIG_MAP, "a")
    await world.settle()
    assert await text(world, "a") == "x=1"
    assert await text(world, "b") != before


@pytest.mark.case("A69")
async def test_a_field_of_another_manager_is_a_conflict_that_stops_no_other_node(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a")))
    await world.settle()
    await world.apply({**config("x")["template"], "metadata": {"name": "a", "namespace": TEAM}, "data": {"x": "0"}})
    await world.apply(graph(config("a", {"x": "1"}), config("b"), config("c", {"x": "${a.metadata.name}"})))
    assert await states(world) == {"a": "Conflict", "b": "Ready", "c": "Blocked"}
    status, reason, message = await condition(world, "Ready")
    assert (status, reason) == ("False", "Conflict")
    assert "test" in message
    assert ".data.x" in message
    assert await text(world, "a") == "x=0"


@pytest.mark.case("A27", "A28")
async def test_refused_apply_is_the_error_of_its_node(world: World) -> None:
    await start_engine(world)
    wrong = step("dev")
    wrong["template"]["spec"] = {"environment": "dev"}
    wrong["readyWhen"] = wrong["propagateWhen"] = []
    follower = config("b", {"x": "${dev.metadata.name}"})
    writes = Writes(world)
    await world.apply(graph(wrong, follower, config("c")))
    assert await states(world) == {"dev": "Error", "b": "Blocked", "c": "Ready"}
    assert (await condition(world, "Ready"))[1] == "Error"
    assert (await writes.take()).count("patch promotionsteps/b1-dev") == 1
    await world.idle(timedelta(hours=2))
    assert await writes.take() == []
    wrong["template"]["spec"] = promotion_nodes()[1]["template"]["spec"] | {"bundleRef": "b1"}
    await world.apply(graph(wrong, follower, config("c")))
    assert await states(world) == {"dev": "Ready", "b": "Ready", "c": "Ready"}


@pytest.mark.case("A73")
async def test_a_removed_node_goes_after_what_followed_it(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a"), config("b", {"x": "${a.metadata.name}"}), config("c")))
    await world.settle()
    await world.client.patch(CONFIG_MAP, "b", TEAM, {"metadata": {"finalizers": ["test/hold"]}})
    await world.apply(graph(config("c")))
    await world.settle()
    assert await world.find(CONFIG_MAP, "a") is not None
    await world.client.patch(CONFIG_MAP, "b", TEAM, {"metadata": {"finalizers": None}})
    await world.settle()
    assert await world.find(CONFIG_MAP, "b") is None
    assert await world.find(CONFIG_MAP, "a") is None
    assert await world.find(CONFIG_MAP, "c") is not None


@pytest.mark.case("A73")
async def test_a_node_with_another_id_keeps_its_object(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"}, name="thing")))
    await world.settle()
    before = (await world.get(CONFIG_MAP, "thing"))["metadata"]
    await world.apply(graph(config("z", {"x": "1"}, name="thing")))
    assert await states(world) == {"z": "Ready"}
    after = (await world.get(CONFIG_MAP, "thing"))["metadata"]
    assert after["uid"] == before["uid"]
    assert f"z.g.{TEAM}.internal.kro.run/type" in after["labels"]
    assert f"a.g.{TEAM}.internal.kro.run/type" not in after["labels"]


@pytest.mark.case("A74")
async def test_a_deleted_graph_takes_its_objects_along_in_reverse_order(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a"), config("b", {"x": "${a.metadata.name}"})))
    await world.settle()
    await world.client.patch(CONFIG_MAP, "b", TEAM, {"metadata": {"finalizers": ["test/hold"]}})
    await world.delete(GRAPH, "g")
    assert await condition(world, "Ready") == (
        "Unknown",
        "Terminating",
        f"waiting for ConfigMap {TEAM}/b to be deleted",
    )
    assert await world.find(CONFIG_MAP, "a") is not None
    await world.client.patch(CONFIG_MAP, "b", TEAM, {"metadata": {"finalizers": None}})
    await world.settle()
    assert [await world.find(CONFIG_MAP, name) for name in ("a", "b")] == [None, None]
    assert await world.find(GRAPH, "g") is None
    assert await world.find(GRAPH_REVISION, "g-g00001") is None


@pytest.mark.case("A78")
async def test_a_deleted_bundle_takes_its_graph_and_all_its_objects_along(world: World) -> None:
    (owner,) = await world.apply(bundle("b1"))
    await start_engine(world)
    await world.apply(graph(*promotion_nodes(), owner=owner))
    await world.settle()
    await set_status(world, PROMOTION_STEP, "b1-dev", state="Verified")
    await world.settle()
    await world.delete(BUNDLE, "b1")
    await world.settle()
    for resource in (GRAPH, PROMOTION_STEP, POLICY_GATE):
        assert await world.objects(resource, TEAM) == []


async def test_an_object_that_was_there_before_is_left_alone(world: World) -> None:
    await world.apply(existing("a", {"k": "v"}))
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"})))
    assert await states(world) == {"a": "Conflict"}
    await world.delete(GRAPH, "g")
    await world.settle()
    assert await world.find(GRAPH, "g") is None
    assert await text(world, "a") == "k=v"
    metadata = (await world.get(CONFIG_MAP, "a"))["metadata"]
    assert not {"annotations", "ownerReferences"} & metadata.keys()


@pytest.mark.case("A51")
async def test_a_bare_identity_of_a_bundle_reads_it_and_says_so_once(world: World) -> None:
    (owner,) = await world.apply(bundle("b1"))
    await start_engine(world)
    body = {"apiVersion": BUNDLE.api_version, "kind": "Bundle", "metadata": {"name": "b1"}}
    await world.apply(graph({"id": "bundle", "template": body}, config("a", {"x": "${bundle.spec.type}"}), owner=owner))
    await world.settle()
    assert await text(world, "a") == "x=image"
    assert "labels" not in (await world.get(BUNDLE, "b1"))["metadata"] or not any(
        "kro.run" in label for label in (await world.get(BUNDLE, "b1"))["metadata"]["labels"]
    )
    assert len(await world.events("AmbiguousTemplate")) == 1
    await world.delete(GRAPH, "g")
    await world.settle()
    assert await world.find(BUNDLE, "b1") is not None


@pytest.mark.case("A52")
async def test_a_bare_identity_of_an_absent_object_makes_it_and_it_goes_with_the_graph(world: World) -> None:
    await start_engine(world)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    await world.apply(graph({"id": "a", "template": body}))
    assert await states(world) == {"a": "Ready"}
    assert await made_by_graphs(world) == {"a"}
    await world.delete(GRAPH, "g")
    await world.settle()
    assert await made_by_graphs(world) == set()


@pytest.mark.case("A54")
async def test_a_watch_with_a_condition_that_selects_nothing_is_not_ready(world: World) -> None:
    await start_engine(world)
    selected = {"apiVersion": "v1", "kind": "ConfigMap", "selector": {"app": "x"}, "metadata": {"namespace": TEAM}}
    await world.apply(graph({"id": "w", "watch": selected, "readyWhen": ["${w.all(i, i.data.ok == 'yes')}"]}))
    assert await states(world) == {"w": "NotReady"}
    assert (await nodes_of(world))["w"]["reason"] == "NoMatches"
    await world.apply(existing("one", {"ok": "yes"}, app="x"))
    assert await states(world) == {"w": "Ready"}


@pytest.mark.case("A53")
async def test_a_watch_hears_of_objects_that_come_and_go(world: World) -> None:
    await start_engine(world)
    watch = {
        "id": "w",
        "watch": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "selector": {"app": "x"},
            "metadata": {"namespace": TEAM},
        },
    }
    await world.apply(graph(watch, config("b", {"names": "${w.map(i, i.metadata.name).join('-')}"})))
    await world.settle()
    assert await text(world, "b") == "names="
    labelled = {
        **config("one")["template"],
        "metadata": {"name": "one", "namespace": TEAM, "labels": {"app": "x"}},
    }
    await world.apply(labelled)
    await world.settle()
    assert await text(world, "b") == "names=one"
    labelled["metadata"] = labelled["metadata"] | {"name": "another"}
    await world.apply(labelled)
    await world.settle()
    assert await text(world, "b") == "names=another-one"
    await world.client.patch(CONFIG_MAP, "one", TEAM, {"metadata": {"labels": {"app": "y"}}})
    await world.settle()
    assert await text(world, "b") == "names=another"
    await world.delete(CONFIG_MAP, "another")
    await world.settle()
    assert await text(world, "b") == "names="


@pytest.mark.case("A50")
async def test_a_reference_hears_of_its_target(world: World) -> None:
    await start_engine(world)
    ref = {"id": "r", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t"}}}
    await world.apply(graph(ref, config("b", {"x": "${r.data.x}"})))
    assert await states(world) == {"r": "Pending", "b": "Pending"}
    assert (await nodes_of(world))["r"]["reason"] == "TargetMissing"
    await world.apply(existing("t", {"x": "1"}))
    assert await states(world) == {"r": "Ready", "b": "Ready"}
    await world.delete(CONFIG_MAP, "t")
    assert await states(world) == {"r": "Pending", "b": "Pending"}
    assert await text(world, "b") == "x=1"
