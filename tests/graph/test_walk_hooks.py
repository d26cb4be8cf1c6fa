"""Hooks: nodes with `finalizes`, which act when another node is about to be deleted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.graph import GraphError, compile_graph
from kardinal.graph.walk_types import RefusedApply
from kardinal.objects import CONFIG_MAP, JsonObject
from tests.graph.cluster import Cluster, Engine, config, key_of, status


def backup(
    data: JsonObject | None = None, *, of: str = "db", identifier: str = "backup", **modifiers: Any
) -> JsonObject:
    ready = [f"${{{identifier}.status.done == true}}"]
    return config(identifier, data, finalizes=of, readyWhen=ready, **modifiers)


def done(cluster: Cluster, name: str = "backup") -> None:
    status(cluster, name, done=True)


def delete(engine: Engine) -> None:
    """Delete the Graph; what it leaves goes wave by wave."""
    engine.deleting = True
    engine.writes()
    engine.rest()


def test_hook_makes_nothing_while_its_node_stays(cluster: Cluster) -> None:
    engine = Engine(cluster, config("db"), backup({"from": "${db.metadata.name}"}))
    outcomes = engine.rest()
    assert (outcomes["backup"].state, outcomes["backup"].reason) == ("Excluded", "Hook")
    assert cluster.names(CONFIG_MAP) == {"db"}


def test_graph_is_deleted_after_its_hook(cluster: Cluster) -> None:
    engine = Engine(
        cluster,
        config("base", {"size": "3"}),
        config("db", {"base": "${base.metadata.name}"}),
        config("app", {"db": "${db.metadata.name}"}),
        backup({"from": "${db.metadata.name}", "size": "${base.data.size}"}),
    )
    engine.rest()
    delete(engine)
    assert engine.writes() == ["delete app", "apply backup"]
    saved = cluster.find(CONFIG_MAP, "backup")
    assert saved is not None
    assert saved["data"] == {"from": "db", "size": "3"}
    done(cluster)
    engine.rest()
    assert engine.writes() == ["delete db", "delete backup", "delete base"]
    assert cluster.objects == {}


def test_deletion_waits_for_a_hook_that_is_not_ready(cluster: Cluster) -> None:
    engine = Engine(cluster, config("db"), backup())
    engine.rest()
    delete(engine)
    engine.pass_time(hours=1)
    outcomes = engine.rest()
    assert outcomes["backup"].blocks
    assert [(prune.key.name, prune.held) for prune in engine.walk().prunes] == [("db", True)]
    engine.nodes = [config("db")]
    engine.rest()
    assert cluster.objects == {}


@pytest.mark.parametrize("failure", ["refused", "data"])
def test_hook_that_cannot_be_made_keeps_its_node(cluster: Cluster, failure: str) -> None:
    engine = Engine(cluster, config("db"), backup({"x": "${db.data.absent}"} if failure == "data" else {}))
    if failure == "refused":
        engine.refuse["backup"] = RefusedApply("", "Error", "Invalid", "no")
    engine.rest()
    delete(engine)
    assert engine.rest()["backup"].blocks
    assert cluster.names(CONFIG_MAP) == {"db"}


def test_node_that_is_left_out_goes_after_its_hook(cluster: Cluster) -> None:
    wanted = config("wanted", {"db": "yes"})
    db = config("db", {"x": "1"}, includeWhen=["${wanted.data.db == 'yes'}"])
    engine = Engine(cluster, wanted, db, backup({"x": "${db.data.x}"}))
    engine.rest()
    wanted["template"]["data"]["db"] = "no"
    engine.writes()
    engine.rest()
    assert engine.writes() == ["apply wanted", "apply backup"]
    done(cluster)
    engine.rest()
    assert engine.writes() == ["delete db", "delete backup"]
    wanted["template"]["data"]["db"] = "yes"
    assert engine.states() == {"wanted": "Ready", "db": "Ready", "backup": "Excluded"}


def test_node_that_is_wanted_again_ends_its_hook(cluster: Cluster) -> None:
    db = config("db", includeWhen=["${false}"])
    engine = Engine(cluster, config("db"), backup())
    engine.rest()
    engine.nodes[0] = db
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"db", "backup"}
    engine.nodes[0] = config("db")
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"db"}


def test_object_that_goes_from_a_list_goes_after_the_hook(cluster: Cluster) -> None:
    each = config("db", name="db-${item}", forEach="['a', 'b']")
    engine = Engine(cluster, each, backup())
    engine.rest()
    each["forEach"] = "['b']"
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"db-a", "db-b", "backup"}
    done(cluster)
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"db-b"}


def test_nodes_that_a_hook_reads_stay_until_its_node_goes(cluster: Cluster) -> None:
    app = config("app", {"db": "${db.metadata.name}"})
    engine = Engine(
        cluster, config("db"), app, config("other", {"x": "${app.data.db}"}), backup({"x": "${app.data.db}"})
    )
    engine.rest()
    delete(engine)
    assert engine.writes() == ["delete other", "apply backup"]
    done(cluster)
    engine.rest()
    assert engine.writes() == ["delete db", "delete backup", "delete app"]


def test_several_hooks_and_a_hook_of_a_hook(cluster: Cluster) -> None:
    engine = Engine(
        cluster,
        config("db"),
        backup({"x": "${drain.metadata.name}"}),
        backup(identifier="drain"),
        backup(identifier="report", of="backup"),
    )
    engine.rest()
    delete(engine)
    assert engine.writes() == ["apply drain"]
    done(cluster, "drain")
    engine.rest()
    assert engine.writes() == ["apply backup"]
    done(cluster, "backup")
    engine.rest()
    assert engine.writes() == ["delete db", "apply report"]
    done(cluster, "report")
    engine.rest()
    assert sorted(cluster.objects) == []


def test_hook_ends_once_its_node_is_being_deleted(cluster: Cluster) -> None:
    engine = Engine(cluster, config("db"), backup())
    engine.rest()
    cluster.edit(CONFIG_MAP, "db", metadata={"finalizers": ["x"]})
    delete(engine)
    done(cluster)
    engine.rest()
    status(cluster, "backup", done=False)
    engine.writes()
    outcomes = engine.rest()
    assert not outcomes["backup"].blocks
    assert cluster.names(CONFIG_MAP) == {"db", "backup"}
    cluster.release_finalizers(key_of(CONFIG_MAP, "db"))
    engine.rest()
    assert engine.writes() == ["delete backup"]


def test_node_that_others_delete_needs_no_hook(cluster: Cluster) -> None:
    engine = Engine(cluster, config("db"), backup())
    engine.rest()
    cluster.edit(CONFIG_MAP, "db", metadata={"finalizers": ["x"]})
    cluster.delete(key_of(CONFIG_MAP, "db"))
    delete(engine)
    assert engine.writes() == []
    engine.now += timedelta(minutes=11)
    engine.rest()
    assert cluster.names(CONFIG_MAP) == {"db"}


@pytest.mark.parametrize(
    ("nodes", "reason", "message"),
    [
        ([backup()], "DeclarationError", "no node has the id 'db'"),
        ([config("db", finalizes="db")], "DeclarationError", "hooks finalize each other: db -> db"),
        ([config("a", finalizes="b"), config("b", finalizes="a")], "DeclarationError", "each other: a -> b -> a"),
        ([{"id": "db", "def": {}}, backup()], "DeclarationError", "db is a def, of which nothing is deleted"),
        ([config("db"), {"id": "h", "def": {}, "finalizes": "db"}], "DeclarationError", "is for patch and ref and"),
        ([config("db"), config("h", finalizes=3)], "DeclarationError", "must be the id of another node"),
        ([config("db"), backup(), config("x", {"x": "${backup.data.x}"})], "DependencyError", "only its other hooks"),
    ],
)
def test_hooks_are_checked(nodes: list[JsonObject], reason: str, message: str) -> None:
    with pytest.raises(GraphError) as caught:
        compile_graph({"nodes": nodes})
    assert caught.value.reason == reason
    assert message in caught.value.problems[0].message
