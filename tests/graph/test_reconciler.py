"""The engine against an API server: what it writes, what it leaves alone, and what its author reads."""

from __future__ import annotations

from datetime import timedelta

from kardinal.api import BUNDLE, CONFIG_MAP, GRAPH, GRAPH_REVISION, POLICY_GATE, PROMOTION_STEP, format_time
from kardinal.kube import JsonObject
from kardinal_controller.graph import FINALIZER
from tests.graph.cluster import config
from tests.graph.program import Writes, condition, graph, set_status, start_engine, states
from tests.graph.promotions import BUNDLE_NODE, FREEZE_NODE, gate, step
from tests.support.objects import bundle
from tests.support.world import World

GIT = {"url": "https://example.com/repo.git", "branch": "main"}


def promotion() -> list[JsonObject]:
    """dev, then prod behind a gate, with every field the CRDs ask for."""
    nodes = [BUNDLE_NODE, step("dev"), gate("soak", upstream="dev"), step("prod", upstream="dev", gates=("soak",))]
    for node in (nodes[1], nodes[3]):
        environment = node["template"]["spec"]["environment"]
        node["template"]["spec"] |= {"pipeline": "demo", "path": f"environments/{environment}", "git": GIT}
    return [*nodes, FREEZE_NODE]


def existing(name: str, data: JsonObject | None = None, **labels: str) -> JsonObject:
    """A ConfigMap that is nobody's node."""
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}}


async def text(world: World, name: str) -> str:
    """The data of a ConfigMap, in short."""
    obj = await world.get(CONFIG_MAP, name)
    return ",".join(f"{key}={value}" for key, value in sorted(obj.get("data", {}).items()))


async def test_a_promotion_walks_with_one_write_for_each_thing_that_happens(world: World) -> None:
    (owner,) = await world.apply(bundle("b1"))
    await start_engine(world)
    writes = Writes(world)
    await world.apply(graph(*promotion(), owner=owner))
    assert await writes.take() == [
        "create graphrevisions",
        "patch graphs/g",
        "patch graphs/status/g",
        "patch promotionsteps/b1-dev",
    ]
    await set_status(world, PROMOTION_STEP, "b1-dev", state="Promoting")
    await set_status(world, PROMOTION_STEP, "b1-dev", state="HealthChecking")
    assert await writes.take() == []
    await set_status(world, PROMOTION_STEP, "b1-dev", state="Verified")
    assert await writes.take() == ["patch graphs/status/g", "patch policygates/b1-soak"]
    now = format_time(world.clock.now())
    await set_status(world, POLICY_GATE, "b1-soak", ready=False, lastEvaluatedAt=now)
    assert await writes.take() == []
    await set_status(world, POLICY_GATE, "b1-soak", ready=True, lastEvaluatedAt=now)
    assert await writes.take() == ["patch graphs/status/g", "patch promotionsteps/b1-prod"]
    await set_status(world, PROMOTION_STEP, "b1-prod", state="Verified")
    assert await writes.take() == ["patch graphs/status/g"]
    assert set((await states(world)).values()) == {"Ready"}
    await world.live(timedelta(hours=1))
    assert await writes.take() == []


async def test_a_restart_writes_nothing(world: World) -> None:
    await world.apply(bundle("b1"))
    engine = await start_engine(world)
    await world.apply(graph(*promotion(), config("a", {"x": "1"})))
    await world.settle()
    await world.stop(engine)
    writes = Writes(world)
    await start_engine(world)
    assert await writes.take() == []


async def test_the_status_says_what_is_waited_for(world: World) -> None:
    await world.apply(bundle("b1"))
    await start_engine(world)
    await world.apply(graph(*promotion()))
    await world.settle()
    obj = await world.get(GRAPH, "g")
    assert obj["metadata"]["finalizers"] == [FINALIZER]
    status = obj["status"]
    assert status["observedGeneration"] == 1
    assert status["revision"] == "g-g00001"
    assert status["topologicalOrder"] == ["bundle", "dev", "soak", "prod", "freeze"]
    assert {entry["type"]: (entry["status"], entry["reason"]) for entry in status["conditions"]} == {
        "Accepted": ("True", "Compiled"),
        "Compiled": ("True", "Compiled"),
        "Ready": ("Unknown", "Pending"),
    }
    dev, soak = status["nodes"][1], status["nodes"][2]
    assert (dev["state"], dev["message"]) == ("NotReady", 'waiting for dev.status.state == "Verified"')
    assert dev["gate"] == {"open": False, "expr": 'dev.status.state == "Verified"'}
    assert dev["object"]["name"] == "b1-dev"
    assert (soak["state"], soak["reason"], soak["waitingFor"]) == (
        "Pending",
        "Gated",
        ['dev.status.state == "Verified"'],
    )
    revision = await world.get(GRAPH_REVISION, "g-g00001")
    assert revision["spec"]["nodes"] == promotion()


async def test_what_time_alone_decides_happens_by_the_engines_own_timer(world: World) -> None:
    await world.apply(bundle("b1"))
    await start_engine(world)
    nodes = promotion()
    # The gate is ready before its upstream is: only freshness is left to hold prod.
    nodes[3]["propagateWhen"] = []
    late = config(
        "late", {"x": "${soak.metadata.name}"}, includeWhen=["${now() > timestamp(soak.status.lastEvaluatedAt)}"]
    )
    await world.apply(graph(*nodes, late))
    await world.settle()
    await set_status(world, PROMOTION_STEP, "b1-dev", state="Verified")
    await world.settle()
    stamp = format_time(world.clock.now() + timedelta(minutes=3))
    await set_status(world, POLICY_GATE, "b1-soak", ready=True, lastEvaluatedAt=stamp)
    assert (await states(world))["late"] == "Excluded"
    await world.live(timedelta(minutes=4))
    assert (await states(world))["late"] == "Ready"


async def test_what_others_change_of_ours_is_corrected_and_what_they_add_is_left(world: World) -> None:
    """A67"""
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"})))
    await world.settle()
    await world.client.patch(CONFIG_MAP, "a", "default", {"data": {"x": "changed", "theirs": "kept"}})
    await world.settle()
    assert await text(world, "a") == "theirs=kept,x=1"


async def test_two_programs_that_disagree_do_not_write_without_end(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"})))
    await world.settle()
    writes = Writes(world)
    for _ in range(5):
        await world.client.patch(CONFIG_MAP, "a", "default", {"data": {"x": "other"}})
        await world.settle()
    assert (await writes.take()).count("patch configmaps/a") == 1
    assert (await condition(world, "Ready"))[1] == "Conflict"
    await world.live(timedelta(seconds=15))
    assert await text(world, "a") == "x=1"
    assert (await condition(world, "Ready"))[:2] == ("True", "Ready")


async def test_a_deleted_object_is_made_again(world: World) -> None:
    """A68"""
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"}), config("b", {"uid": "${a.metadata.uid}"})))
    await world.settle()
    before = await text(world, "b")
    await world.delete(CONFIG_MAP, "a")
    await world.settle()
    assert await text(world, "a") == "x=1"
    assert await text(world, "b") != before


async def test_a_field_of_another_manager_is_a_conflict_that_stops_nobody_else(world: World) -> None:
    """A69"""
    await world.apply(
        {**config("x")["template"], "metadata": {"name": "a", "namespace": "default"}, "data": {"x": "0"}}
    )
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"}), config("b"), config("c", {"x": "${a.metadata.name}"})))
    assert await states(world) == {"a": "Conflict", "b": "Ready", "c": "Blocked"}
    status, reason, message = await condition(world, "Ready")
    assert (status, reason) == ("False", "Conflict")
    assert "test" in message
    assert ".data.x" in message
    assert await text(world, "a") == "x=0"


async def test_what_the_server_refuses_is_the_error_of_its_node(world: World) -> None:
    """A27, A28"""
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
    await world.live(timedelta(hours=2))
    assert await writes.take() == []
    wrong["template"]["spec"] = promotion()[1]["template"]["spec"] | {"bundleRef": "b1"}
    await world.apply(graph(wrong, follower, config("c")))
    assert await states(world) == {"dev": "Ready", "b": "Ready", "c": "Ready"}


async def test_a_generation_that_does_not_compile_leaves_the_last_good_one_in_charge(world: World) -> None:
    """A11, A18, A19"""
    await start_engine(world)
    good = config("a", {"x": "1"}), config("b", {"x": "${a.metadata.uid}"})
    await world.apply(graph(*good))
    await world.settle()
    uid = await text(world, "b")
    await world.apply(graph(*good, config("c", {"x": "${aa.x}"}), config("d")))
    assert await condition(world, "Accepted") == (
        "False",
        "ExpressionError",
        "spec.nodes[2].template.data.x (node c): unknown identifier 'aa' (did you mean a?)",
    )
    assert (await condition(world, "Ready"))[:2] == ("False", "NotCompiled")
    assert (await world.get(GRAPH, "g"))["status"]["observedGeneration"] == 2
    assert await world.find(CONFIG_MAP, "d") is None
    await world.client.patch(CONFIG_MAP, "a", "default", {"data": {"x": "changed"}})
    await world.settle()
    assert await text(world, "a") == "x=1"
    assert [event["type"] for event in await world.events("ExpressionError")] == ["Warning"]
    await world.apply(graph(*good, config("c", {"x": "${a.data.x}"}), config("d")))
    assert set((await states(world)).values()) == {"Ready"}
    assert await text(world, "b") == uid
    assert (await world.get(GRAPH, "g"))["status"]["revision"] == "g-g00003"


async def test_a_graph_that_never_compiled_makes_nothing(world: World) -> None:
    """A13"""
    await start_engine(world)
    await world.apply(graph(config("a"), config("b", {"x": "${nope.x}"})))
    assert (await condition(world, "Accepted"))[:2] == ("False", "ExpressionError")
    assert await states(world) == {}
    assert await world.find(CONFIG_MAP, "a") is None


async def test_reordering_nodes_writes_nothing_but_the_generation(world: World) -> None:
    """A80"""
    await start_engine(world)
    nodes = config("a"), config("b", {"x": "${a.metadata.name}"})
    await world.apply(graph(*nodes))
    writes = Writes(world)
    await writes.take()
    await world.apply(graph(*reversed(nodes)))
    assert await writes.take() == ["patch graphs/status/g"]
    assert (await world.get(GRAPH, "g"))["status"]["revision"] == "g-g00001"


async def test_added_nodes_are_made_without_touching_the_others(world: World) -> None:
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"})))
    writes = Writes(world)
    await writes.take()
    await world.apply(graph(config("a", {"x": "1"}), config("b", {"x": "${a.data.x}"})))
    assert await writes.take() == [
        "create graphrevisions",
        "patch configmaps/b",
        "patch graphs/status/g",
    ]


async def test_a_removed_node_goes_after_what_followed_it(world: World) -> None:
    """A73"""
    await start_engine(world)
    await world.apply(graph(config("a"), config("b", {"x": "${a.metadata.name}"}), config("c")))
    await world.settle()
    await world.client.patch(CONFIG_MAP, "b", "default", {"metadata": {"finalizers": ["test/hold"]}})
    await world.apply(graph(config("c")))
    await world.settle()
    assert await world.find(CONFIG_MAP, "a") is not None
    await world.client.patch(CONFIG_MAP, "b", "default", {"metadata": {"finalizers": None}})
    await world.settle()
    assert await world.find(CONFIG_MAP, "b") is None
    assert await world.find(CONFIG_MAP, "a") is None
    assert await world.find(CONFIG_MAP, "c") is not None


async def test_a_deleted_graph_takes_its_objects_along_in_reverse_order(world: World) -> None:
    """A74"""
    await start_engine(world)
    await world.apply(graph(config("a"), config("b", {"x": "${a.metadata.name}"})))
    await world.settle()
    await world.client.patch(CONFIG_MAP, "b", "default", {"metadata": {"finalizers": ["test/hold"]}})
    await world.delete(GRAPH, "g")
    assert await condition(world, "Ready") == (
        "Unknown",
        "Terminating",
        "waiting for ConfigMap default/b to be deleted",
    )
    assert await world.find(CONFIG_MAP, "a") is not None
    await world.client.patch(CONFIG_MAP, "b", "default", {"metadata": {"finalizers": None}})
    await world.settle()
    assert [await world.find(CONFIG_MAP, name) for name in ("a", "b")] == [None, None]
    assert await world.find(GRAPH, "g") is None
    assert await world.find(GRAPH_REVISION, "g-g00001") is None


async def test_a_deleted_bundle_takes_its_graph_and_all_its_objects_along(world: World) -> None:
    """A78"""
    (owner,) = await world.apply(bundle("b1"))
    await start_engine(world)
    await world.apply(graph(*promotion(), owner=owner))
    await world.settle()
    await set_status(world, PROMOTION_STEP, "b1-dev", state="Verified")
    await world.settle()
    await world.delete(BUNDLE, "b1")
    await world.settle()
    for resource in (GRAPH, PROMOTION_STEP, POLICY_GATE):
        assert await world.objects(resource, "default") == []


async def test_an_object_that_was_there_before_outlives_the_graph(world: World) -> None:
    await world.apply(
        {**config("x")["template"], "metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"}}
    )
    await start_engine(world)
    await world.apply(graph(config("a", {"x": "1"})))
    await world.settle()
    assert await text(world, "a") == "k=v,x=1"
    await world.delete(GRAPH, "g")
    await world.settle()
    assert await world.find(GRAPH, "g") is None
    assert await text(world, "a") == "k=v"
    metadata = (await world.get(CONFIG_MAP, "a"))["metadata"]
    assert not {"labels", "annotations", "ownerReferences"} & metadata.keys()


async def test_a_bare_identity_of_a_bundle_reads_it_and_says_so_once(world: World) -> None:
    """A51"""
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


async def test_a_watch_hears_of_objects_that_come_and_go(world: World) -> None:
    """A53"""
    await start_engine(world)
    watch = {
        "id": "w",
        "watch": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "selector": {"app": "x"},
            "metadata": {"namespace": "default"},
        },
    }
    await world.apply(graph(watch, config("b", {"names": "${w.map(i, i.metadata.name).join('-')}"})))
    await world.settle()
    assert await text(world, "b") == "names="
    labelled = {
        **config("one")["template"],
        "metadata": {"name": "one", "namespace": "default", "labels": {"app": "x"}},
    }
    await world.apply(labelled)
    await world.settle()
    assert await text(world, "b") == "names=one"
    await world.client.patch(CONFIG_MAP, "one", "default", {"metadata": {"labels": {"app": "y"}}})
    await world.settle()
    assert await text(world, "b") == "names="


async def test_a_reference_hears_of_its_target(world: World) -> None:
    """A50"""
    await start_engine(world)
    ref = {"id": "r", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t"}}}
    await world.apply(graph(ref, config("b", {"x": "${r.data.x}"})))
    assert await states(world) == {"r": "Pending", "b": "Pending"}
    await world.apply(existing("t", {"x": "1"}))
    assert await states(world) == {"r": "Ready", "b": "Ready"}
    await world.delete(CONFIG_MAP, "t")
    assert await states(world) == {"r": "Pending", "b": "Pending"}
    assert await text(world, "b") == "x=1"


async def test_a_nested_graph_is_an_object_like_others(world: World) -> None:
    """A82"""
    await start_engine(world)
    inner = graph(config("a"), config("b", {"x": "$${a.metadata.name}-${outer.data.x}"}), name="inner")
    del inner["metadata"]["namespace"]
    await world.apply(graph(config("outer", {"x": "1"}), {"id": "child", "template": inner}, name="outer"))
    await world.settle()
    assert await text(world, "b") == "x=a-1"
    await world.delete(GRAPH, "outer")
    await world.settle()
    assert await world.objects(GRAPH, "default") == []
    assert await world.find(CONFIG_MAP, "b") is None


async def test_many_graphs_run_beside_each_other(world: World) -> None:
    """A86"""
    await start_engine(world)
    for number in range(8):
        name = f"g{number}"
        nodes = config("a", name=f"{name}-a"), config("b", {"x": "${a.metadata.name}"}, name=f"{name}-b")
        await world.apply(graph(*nodes, name=name))
    await world.settle()
    assert [await text(world, f"g{number}-b") for number in range(8)] == [f"x=g{number}-a" for number in range(8)]


async def test_a_lost_revision_is_stored_again_and_old_ones_are_not_kept_for_ever(world: World) -> None:
    await start_engine(world)
    for number in range(8):
        await world.apply(graph(config("a", {"x": str(number)})))
        await world.settle()
    names = sorted(revision["metadata"]["name"] for revision in await world.objects(GRAPH_REVISION, "default"))
    assert names == [f"g-g{number:05}" for number in range(3, 9)]
    await world.delete(GRAPH_REVISION, "g-g00008")
    await world.settle()
    assert await world.find(GRAPH_REVISION, "g-g00008") is not None


async def test_a_kind_that_is_not_served_waits_and_says_so(world: World) -> None:
    """A57"""
    await start_engine(world)
    await world.apply(
        graph({"id": "d", "ref": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}})
    )
    status, reason, message = await condition(world, "Ready")
    assert (status, reason) == ("Unknown", "Pending")
    assert "PromotionStep" in message
