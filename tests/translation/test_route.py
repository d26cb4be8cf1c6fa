"""The way of a Bundle: order, target, skip, and one distinct error for everything that makes no sense."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.translation.errors import InvalidSpec, Problem
from tests.support.objects import environment
from tests.translation.values import bundle, edges, pipeline, translated


def problems(environments: tuple[Any, ...] = ("dev", "staging", "prod"), **intent: Any) -> list[Problem]:
    way = pipeline(*environments)
    if not environments:
        way = way.model_copy(update={"spec": way.spec.model_copy(update={"environments": ()})})
    with pytest.raises(InvalidSpec) as caught:
        translated(way, bundle(intent=intent))
    return list(caught.value.problems)


def test_environments_follow_each_other_in_the_order_of_the_list() -> None:
    assert edges(translated()) == {"dev": None, "staging": "${dev.status.state}", "prod": "${staging.status.state}"}


def test_depends_on_makes_environments_run_side_by_side() -> None:
    regions = [environment(name, dependsOn=["staging"]) for name in ("eu", "us")]
    graph = translated(pipeline("staging", *regions))
    assert edges(graph) == {"staging": None, "eu": "${staging.status.state}", "us": "${staging.status.state}"}


def test_several_upstreams_are_joined_in_the_order_of_depends_on() -> None:
    way = pipeline("dev", environment("eu", dependsOn=[]), environment("prod", dependsOn=["eu", "dev"]))
    assert edges(translated(way)) == {"dev": None, "eu": None, "prod": "${eu.status.state},${dev.status.state}"}


def test_a_target_cuts_what_does_not_lead_to_it() -> None:
    way = pipeline("dev", environment("qa", dependsOn=["dev"]), environment("staging", dependsOn=["dev"]), "prod")
    assert list(edges(translated(way, bundle(intent={"target": "staging"})))) == ["dev", "staging"]


def test_a_skipped_environment_is_taken_out_and_its_dependents_wait_for_its_upstream() -> None:
    graph = translated(pipeline("dev", "qa", "staging", "prod"), bundle(intent={"skip": ["staging", "qa"]}))
    assert edges(graph) == {"dev": None, "prod": "${dev.status.state}"}


def test_rewiring_keeps_the_order_and_names_an_upstream_once() -> None:
    way = pipeline(
        "dev",
        environment("a", dependsOn=["dev"]),
        environment("b", dependsOn=["dev"]),
        environment("c", dependsOn=["dev"]),
        environment("prod", dependsOn=["c", "a", "b"]),
    )
    graph = translated(way, bundle(intent={"skip": ["a", "b"]}))
    assert edges(graph)["prod"] == "${c.status.state},${dev.status.state}"


def test_skipping_the_first_environment_makes_the_second_the_first() -> None:
    assert edges(translated(what=bundle(intent={"skip": ["dev"]}))) == {
        "staging": None,
        "prod": "${staging.status.state}",
    }


def test_skipping_what_the_target_cuts_anyway_changes_nothing() -> None:
    assert list(edges(translated(what=bundle(intent={"target": "dev", "skip": ["prod"]})))) == ["dev"]


@pytest.mark.parametrize(
    ("environments", "intent", "reason", "field", "names"),
    [
        ((), {}, "EmptyPipeline", "spec.environments", "no environments"),
        (("dev", "dev"), {}, "DuplicateEnvironment", "spec.environments[1].name", "dev"),
        ((environment("dev", dependsOn=["dev"]),), {}, "SelfDependence", "spec.environments[0].dependsOn[0]", "dev"),
        (
            ("dev", environment("prod", dependsOn=["stagin"])),
            {},
            "UnknownEnvironment",
            "spec.environments[1].dependsOn[0]",
            "stagin",
        ),
        (
            (environment("a", dependsOn=["c"]), environment("b", dependsOn=["a"]), environment("c", dependsOn=["b"])),
            {},
            "DependencyCycle",
            "spec.environments",
            "a -> b -> c -> a",
        ),
        (("dev", "prod"), {"target": "prd"}, "UnknownTarget", "spec.intent.target", "did you mean prod?"),
        (("dev", "prod"), {"skip": ["dve"]}, "UnknownEnvironment", "spec.intent.skip[0]", "did you mean dev?"),
        (("dev", "prod"), {"skip": ["prod", "dev"]}, "SkipsEverything", "spec.intent.skip", "nothing to promote"),
        (("dev", "prod"), {"target": "prod", "skip": ["prod"]}, "SkipsTarget", "spec.intent.target", "prod"),
    ],
    ids=lambda value: value if isinstance(value, str) and value[:1].isupper() else None,
)
def test_every_way_of_making_no_sense_is_an_error_of_its_own(
    environments: tuple[Any, ...], intent: dict[str, Any], reason: str, field: str, names: str
) -> None:
    found = problems(environments, **intent)
    assert [(problem.reason, problem.field) for problem in found] == [(reason, field)]
    assert names in str(found[0])


def test_everything_wrong_with_an_intent_is_said_at_once() -> None:
    assert [problem.field for problem in problems(target="nowhere", skip=["dev", "elsewhere"])] == [
        "spec.intent.target",
        "spec.intent.skip[1]",
    ]


def test_a_pipeline_without_order_and_a_choice_that_is_not_available_are_both_reported() -> None:
    found = problems((environment("dev", dependsOn=["dev"], update={"strategy": "oci"}),))
    assert [problem.reason for problem in found] == ["SelfDependence", "NotAvailable"]
