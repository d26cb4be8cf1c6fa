"""A target that moves forward: what stands stays word for word, what is missing comes from today's Pipeline."""

from __future__ import annotations

import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.translation.errors import InvalidSpec, SkipDenied
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.translate import extend_graph
from tests.support.objects import environment
from tests.support.registry import REGISTRY
from tests.translation.values import (
    MORNING,
    bundle,
    edges,
    gates,
    identifiers,
    node,
    org_gate,
    pipeline,
    step,
    team_gate,
    translated,
)


def extended(graph: JsonObject, way: Pipeline, what: Bundle, found: list[PolicyGate] | None = None) -> JsonObject:
    nodes = extend_graph(
        graph,
        way,
        what,
        gates(found or []),
        features=Features(registry=REGISTRY, allow_local_repositories=True),
        now=MORNING,
    )
    return {**graph, "spec": {"nodes": nodes}}


def test_the_next_environments_are_added_behind_what_stands() -> None:
    graph = translated(what=bundle(intent={"target": "dev"}))
    after = extended(graph, pipeline(), bundle(intent={"target": "prod"}), [org_gate("soak")])
    assert after["spec"]["nodes"][:3] == graph["spec"]["nodes"]
    assert identifiers(after)[3:] == ["staging", "soak0prod", "prod"]
    assert edges(after) == edges(translated())


def test_dropping_the_target_means_every_environment() -> None:
    graph = translated(what=bundle(intent={"target": "dev"}))
    assert list(edges(extended(graph, pipeline(), bundle()))) == ["dev", "staging", "prod"]


def test_a_target_that_moves_back_takes_nothing_away() -> None:
    graph = translated()
    assert extended(graph, pipeline(), bundle(intent={"target": "dev"})) == graph


def test_existing_nodes_are_not_rewritten_by_a_pipeline_change() -> None:
    graph = translated(what=bundle(intent={"target": "staging"}))
    today = pipeline(environment("dev", path="new/dev"), environment("staging", path="new/staging"), "prod")
    after = extended(graph, today, bundle(intent={"target": "prod"}), [org_gate("new", applies_to="staging")])
    assert after["spec"]["nodes"][:-1] == graph["spec"]["nodes"]
    assert step(after, "dev")["spec"]["path"] == "environments/dev"


def test_environments_that_the_pipeline_gained_before_the_target_are_added() -> None:
    graph = translated(pipeline("dev", "staging"), bundle(intent={"target": "dev"}))
    after = extended(graph, pipeline("dev", "qa", "staging"), bundle(intent={"target": "staging"}))
    assert edges(after) == {"dev": None, "qa": "${dev.status.state}", "staging": "${qa.status.state}"}


def test_new_nodes_refer_to_standing_ones_by_the_ids_those_have() -> None:
    first = pipeline("pro-d", "prod")
    graph = translated(first, bundle(intent={"target": "pro-d"}))
    after = extended(graph, first, bundle(intent={"target": "prod"}))
    assert edges(after)["prod"] == "${proD.status.state}"
    assert len({identifier.lower() for identifier in identifiers(after)}) == 4


def test_gates_of_one_name_keep_apart_from_those_that_stand() -> None:
    graph = translated(what=bundle(intent={"target": "dev"}), found=[org_gate("g", applies_to=None)])
    after = extended(
        graph, pipeline(), bundle(intent={"target": "prod"}), [org_gate("g", applies_to=None), team_gate("g")]
    )
    names = [found["template"]["metadata"]["name"] for found in after["spec"]["nodes"] if "readyWhen" in found]
    assert len(names) == len(set(names)) == 3 + 4
    assert node(after, "g0dev") == node(graph, "g0dev")


def test_a_skip_that_only_now_matters_is_asked_about_only_now() -> None:
    protected = [org_gate("soak", applies_to="staging")]
    intent = {"target": "dev", "skip": ["staging"]}
    graph = translated(what=bundle(intent=intent), found=protected)
    with pytest.raises(SkipDenied):
        extended(graph, pipeline(), bundle(intent={**intent, "target": "prod"}), protected)


def test_a_skip_that_was_permitted_is_not_asked_about_again() -> None:
    way = pipeline("dev", "staging", "prod", "dr")
    graph = translated(way, bundle(intent={"target": "prod", "skip": ["staging"]}))
    later = [org_gate("soak", applies_to="staging")]
    after = extended(graph, way, bundle(intent={"target": "dr", "skip": ["staging"]}), later)
    assert edges(after) == {"dev": None, "prod": "${dev.status.state}", "dr": "${prod.status.state}"}


def test_a_target_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidSpec):
        extended(translated(), pipeline(), bundle(intent={"target": "nowhere"}))


def test_a_pipeline_that_has_become_untranslatable_stops_only_what_is_missing() -> None:
    broken = pipeline("dev", environment("staging", update={"strategy": "oci"}), "prod")
    assert extended(translated(), broken, bundle())
    with pytest.raises(InvalidSpec):
        extended(translated(what=bundle(intent={"target": "dev"})), broken, bundle())


def test_graph_that_a_person_has_written_gets_numbers_of_attempts_and_no_environment() -> None:
    graph = translated(what=bundle(intent={"target": "staging"}))
    what = bundle(intent={"graph": "manual"})
    assert extended(graph, pipeline(), what) == graph
    again = {"dev": {"state": "Pending", "attempt": 2}}
    tried = what.model_copy(update={"status": type(what.status).model_validate({"environments": again})})
    after = extended(graph, pipeline(), tried)
    assert identifiers(after) == identifiers(graph)
    assert step(after, "dev")["spec"]["attempt"] == 2
