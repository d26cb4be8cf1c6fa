"""Steps for a Bundle: from facts to one decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.api.bundle import BundleStatus, EnvironmentStatus
from kardinal.promotion.translation.errors import GraphNameTaken, InvalidSpec, Problem, PromotionError, SkipDenied
from kardinal.promotion.translation.topology import read_topology
from kardinal_controller.bundles.contenders import Standing
from kardinal_controller.bundles.decisions import Action, Create, Delete, Extend, Leave, StartLater
from kardinal_controller.bundles.observe import Facts, RunEffects
from kardinal_controller.bundles.progress import environments
from kardinal_controller.bundles.rules import Projection
from kardinal_controller.bundles.status import WRITTEN_WITHIN
from tests.bundles.facts import (
    MONOTONIC,
    NOW,
    PIPELINE,
    SAID,
    Wait,
    Write,
    bundle,
    carried_out,
    graph,
    made,
    next_run,
    refused,
    retargeted,
    rival,
    seen,
    steps,
)
from tests.support import objects

REGIONS = Pipeline.model_validate(
    objects.pipeline("file:///repo", environments=["eu", objects.environment("us", dependsOn=[])])
)
"""A Pipeline of two environments that do not wait for each other."""

GRAPH = graph()
GRAPH_OF_DEV = graph(target="dev")
GRAPH_OF_REGIONS = graph(REGIONS)
REFUSED_GRAPH = graph(refused_because="node prod")
LEAVING = GRAPH | {"metadata": GRAPH["metadata"] | {"deletionTimestamp": "2026-03-03T10:00:00Z"}}

INVALID = InvalidSpec([Problem("Pipeline/my-app", "spec.environments", "DependencyCycle", "they form a circle")])
DENIED = SkipDenied(environment="dev", gate="soak", why="nothing permits it")
TAKEN = GraphNameTaken("app-2")

PINNED = bundle(annotations={"kardinal.io/pin": "true"})
OLDER = rival("app-1", number=1, dev=Standing(), prod=Standing())
NEW_ONE = rival(pending=True)
NEWER = rival(dev=Standing(), prod=Standing())
NEWER_IN_PROD = rival(dev=Standing("Verified", landed_at=NOW), prod=Standing("Promoting", prepared=True))
NEWER_IN_US = rival(us=Standing("Promoting", prepared=True), upstreams={"us": ()})
NEWER_IN_DEV = rival(dev=Standing("HealthChecking", admitted=True, landed_at=NOW), prod=Standing())
NEWER_THAT_FAILED = rival()
NEWER_THAT_FAILED_IN_DEV = rival(dev=Standing("Failed", admitted=True), prod=Standing())

BOTH_VERIFIED = steps(dev="Verified", prod="Verified")

# What a run finds after an earlier one has written its status.
PROMOTING = next_run(made(seen(), GRAPH), graph=GRAPH)
HALF_WAY = next_run(seen(graph=GRAPH, steps=steps(dev="Verified", prod="Promoting")))
HALF_WAY_WITH_NEWER = replace(HALF_WAY, siblings=[NEWER_IN_PROD])
BEFORE_PROD = next_run(seen(graph=GRAPH, steps=steps(dev="Verified")))
VERIFIED = next_run(seen(graph=GRAPH, steps=BOTH_VERIFIED))
VERIFIED_IN_DEV = next_run(seen(bundle(intent={"target": "dev"}), graph=GRAPH_OF_DEV, steps=steps(dev="Verified")))
MOVED_TO_PROD = retargeted(VERIFIED_IN_DEV, "prod")
FAILED = next_run(seen(graph=GRAPH, steps=steps(dev="Failed")))
FAILED_IN_EU = next_run(seen(graph=GRAPH_OF_REGIONS, pipeline=REGIONS, steps=steps(eu="Failed", us="Promoting")))
REFUSED = next_run(refused(seen(), INVALID))
SKIP_DENIED = next_run(refused(seen(), DENIED))
REFUSED_TO_EXTEND = next_run(refused(MOVED_TO_PROD, INVALID))
RECREATED = next_run(made(replace(HALF_WAY, graph=None), GRAPH), graph=GRAPH)
SUPERSEDED_BEFORE_ITS_START = next_run(seen(siblings=[NEWER]), siblings=[])
SUPERSEDED_BEFORE_ITS_STEPS = next_run(seen(graph=GRAPH, siblings=[NEWER]))
SUPERSEDED = next_run(HALF_WAY_WITH_NEWER)
SUPERSEDED_WITH_NEWS = replace(SUPERSEDED, steps=BOTH_VERIFIED)
SUPERSEDED_AND_FINISHED = next_run(SUPERSEDED_WITH_NEWS)


Step = Action | Write | Wait


@dataclass(frozen=True)
class Written:
    """A status is written, with this phase and this reason of Ready."""

    phase: str
    reason: str


def outline(decision: Step) -> Step | Written:
    if not isinstance(decision, Write):
        return decision
    ready = decision.status.condition("Ready")
    assert ready is not None
    return Written(str(decision.status.phase), ready.reason)


INVALID_SPEC = Written("Failed", "InvalidSpec")

NO_GRAPH_YET = [
    ("a new Bundle gets a Graph", seen(), Create(PIPELINE)),
    ("an older Bundle is no reason to wait", seen(siblings=[OLDER]), Create(PIPELINE)),
    ("a Bundle that is being deleted is left alone", seen(bundle(deletionTimestamp="2026-03-03T10:00:00Z")), Leave()),
    ("a Bundle without a label is invalid", seen(label="", pipeline=None), Written("Failed", "InvalidSpec")),
    ("a missing Pipeline is waited for", seen(pipeline=None), Written("Available", "PipelineNotFound")),
    ("a newer Bundle without a phase is waited for", seen(siblings=[NEW_ONE]), Written("Available", "Waiting")),
    ("a pinned Bundle waits for no other", seen(PINNED, siblings=[NEW_ONE]), Create(PIPELINE)),
    ("a newer Bundle that has started supersedes", seen(siblings=[NEWER]), Written("Superseded", "Superseded")),
    ("a pinned Bundle is not superseded", seen(PINNED, siblings=[NEWER]), Create(PIPELINE)),
    (
        "a newer Bundle that failed before it landed supersedes nothing",
        seen(siblings=[NEWER_THAT_FAILED_IN_DEV]),
        Create(PIPELINE),
    ),
    ("a newer Bundle that could not start supersedes nothing", seen(siblings=[NEWER_THAT_FAILED]), Create(PIPELINE)),
    ("a Graph that exists is not created again", seen(graph=GRAPH), Written("Promoting", "Promoting")),
    ("with a Graph nothing is waited for", seen(graph=GRAPH, siblings=[NEW_ONE]), Written("Promoting", "Promoting")),
    ("with a Graph it is superseded too", seen(graph=GRAPH, siblings=[NEWER]), Written("Superseded", "Superseded")),
    (
        "a step that is there gives way to a good edit alone",
        seen(graph=GRAPH, steps=steps(dev="Promoting"), siblings=[NEWER]),
        Written("Promoting", "Promoting"),
    ),
    ("a created Graph is noted", made(seen(), GRAPH), Written("Promoting", "Promoting")),
    ("an invalid Pipeline fails the Bundle", refused(seen(), INVALID), Written("Failed", "InvalidSpec")),
    ("a denied skip is a phase of its own", refused(seen(), DENIED), Written("SkipDenied", "SkipDenied")),
    ("a foreign Graph is waited for", refused(seen(), TAKEN), Written("Available", "GraphNameTaken")),
    ("after a refusal translation is tried again", REFUSED, Create(PIPELINE)),
    ("after a denied skip translation is tried again", SKIP_DENIED, Create(PIPELINE)),
    ("a superseded Bundle never starts", SUPERSEDED_BEFORE_ITS_START, Wait()),
]

WITH_A_GRAPH = [
    ("without a change nothing is done", HALF_WAY, Wait()),
    ("the last step verifies the Bundle", replace(HALF_WAY, steps=BOTH_VERIFIED), Written("Verified", "Verified")),
    (
        "a failed step fails the Bundle",
        replace(HALF_WAY, steps=steps(dev="Verified", prod="Failed")),
        Written("Failed", "StepFailed"),
    ),
    (
        "what keeps the engine from its work is the reason",
        replace(PROMOTING, graph=REFUSED_GRAPH),
        Written("Promoting", "GraphTrouble"),
    ),
    ("a verified Bundle has no trouble with the engine", replace(VERIFIED, graph=REFUSED_GRAPH), Wait()),
    ("a newer Bundle with a good edit supersedes", HALF_WAY_WITH_NEWER, Written("Superseded", "Superseded")),
    ("a newer Bundle that is elsewhere does not", replace(HALF_WAY, siblings=[NEWER_IN_DEV]), Wait()),
    (
        "a newer Bundle that is the next to arrive supersedes",
        replace(BEFORE_PROD, siblings=[NEWER_IN_DEV]),
        Written("Superseded", "Superseded"),
    ),
    ("a newer Bundle that has not started supersedes nothing", replace(HALF_WAY, siblings=[NEW_ONE]), Wait()),
    ("a verified Bundle is not superseded", replace(VERIFIED, siblings=[NEWER]), Wait()),
    ("a failed Bundle is not superseded", replace(FAILED, siblings=[NEWER]), Wait()),
    (
        "a failed Bundle is superseded while another environment goes on",
        replace(FAILED_IN_EU, siblings=[NEWER_IN_US]),
        Written("Superseded", "Superseded"),
    ),
    ("a target that moved extends the Graph", MOVED_TO_PROD, Extend(GRAPH_OF_DEV, PIPELINE)),
    ("after a refusal extension is tried again", REFUSED_TO_EXTEND, Extend(GRAPH_OF_DEV, PIPELINE)),
    ("an extended Graph is noted", made(MOVED_TO_PROD, GRAPH), Written("Promoting", "Promoting")),
    ("a target that does not exist is invalid", refused(MOVED_TO_PROD, INVALID), INVALID_SPEC),
    ("a target cannot move without the Pipeline", replace(MOVED_TO_PROD, pipeline=None), INVALID_SPEC),
    (
        "a superseded Bundle is not extended",
        retargeted(HALF_WAY_WITH_NEWER, "prod"),
        Written("Superseded", "Superseded"),
    ),
]

GRAPH_DELETED = [
    ("the Graph is created again", replace(HALF_WAY, graph=None), Create(PIPELINE)),
    ("but not a second time", replace(RECREATED, graph=None), Written("Failed", "GraphDeleted")),
    ("nor without the Pipeline", replace(HALF_WAY, graph=None, pipeline=None), Written("Failed", "GraphDeleted")),
    ("nor after a newer Bundle", replace(HALF_WAY_WITH_NEWER, graph=None), Written("Superseded", "Superseded")),
    ("a Graph created again is noted", made(replace(HALF_WAY, graph=None), GRAPH), Written("Promoting", "Promoting")),
    (
        "a foreign Graph in its place is waited for",
        refused(replace(HALF_WAY, graph=None), TAKEN),
        Written("Promoting", "GraphNameTaken"),
    ),
    ("after a refusal it is created again", replace(REFUSED_TO_EXTEND, graph=None), Create(PIPELINE)),
    ("even beside a newer Bundle", replace(REFUSED_TO_EXTEND, graph=None, siblings=[NEWER]), Create(PIPELINE)),
    ("a verified Bundle needs none", replace(VERIFIED, graph=None), Wait()),
    ("a failed Bundle needs none", replace(FAILED, graph=None), Wait()),
    ("a verified Bundle cannot go further", replace(MOVED_TO_PROD, graph=None), Written("Failed", "GraphDeleted")),
    (
        "a target that was reached is no reason",
        replace(retargeted(VERIFIED, "dev"), graph=None),
        Written("Verified", "Verified"),
    ),
    (
        "a target that does not exist is no reason",
        replace(retargeted(VERIFIED, "nowhere"), graph=None),
        Written("Verified", "Verified"),
    ),
    (
        "a target without a Pipeline is no reason",
        replace(MOVED_TO_PROD, graph=None, pipeline=None),
        Written("Verified", "Verified"),
    ),
]

SUPERSEDED_BUNDLE = [
    ("it stays superseded when its successor goes", replace(SUPERSEDED, siblings=[]), Wait()),
    ("a step on its way keeps the Graph", SUPERSEDED, Wait()),
    (
        "a step that no agent has seen keeps the Graph",
        next_run(replace(SUPERSEDED, steps=steps(dev="Verified", prod=None))),
        Wait(),
    ),
    ("the Graph goes when every step has finished", SUPERSEDED_AND_FINISHED, Delete(GRAPH)),
    ("the Graph goes when there will be no step", SUPERSEDED_BEFORE_ITS_STEPS, Delete(GRAPH)),
    ("a step that is about to appear keeps the Graph", replace(SUPERSEDED, steps={}), Wait()),
    ("what the steps brought is written first", SUPERSEDED_WITH_NEWS, Written("Superseded", "Superseded")),
    ("a Graph that is being deleted is left alone", replace(SUPERSEDED_AND_FINISHED, graph=LEAVING), Wait()),
    ("without a Graph nothing is left to do", replace(SUPERSEDED_AND_FINISHED, graph=None), Wait()),
]

CASES = {
    f"{situation}: {name}": (facts, expected)
    for situation, rows in {
        "no Graph yet": NO_GRAPH_YET,
        "with a Graph": WITH_A_GRAPH,
        "Graph deleted": GRAPH_DELETED,
        "superseded": SUPERSEDED_BUNDLE,
    }.items()
    for name, facts, expected in rows
}


@pytest.mark.parametrize(("facts", "expected"), CASES.values(), ids=CASES)
def test_the_next_decision(facts: Facts, expected: Step | Written) -> None:
    assert outline(carried_out(facts)) == expected


def test_facts_and_projection_hold_data_alone_so_that_every_rule_runs_in_one_visible_call() -> None:
    hidden = [name for kind in (Facts, Projection) for name, value in vars(kind).items() if isinstance(value, property)]
    assert hidden == []
    assert not any(isinstance(value, cached_property) for kind in (Facts, Projection) for value in vars(kind).values())


def status_of(facts: Facts) -> BundleStatus:
    decision = carried_out(facts)
    assert isinstance(decision, Write), decision
    return decision.status


def states(status: BundleStatus) -> dict[str, str]:
    return {name: entry.state for name, entry in status.environments.items()}


def test_a_status_says_to_which_pipeline_graph_and_generation_it_belongs() -> None:
    status = status_of(made(seen(), GRAPH))
    assert (status.pipeline, status.sequence, status.graph_ref) == ("my-app", 2, "app-2")
    assert status.graph_recreated is None
    ready = status.condition("Ready")
    assert ready is not None
    assert (status.observed_generation, ready.observed_generation) == (1, 1)
    assert (ready.status, ready.message) == ("False", "0 of 2 environments are Verified")
    assert states(status) == {"dev": "Pending", "prod": "Pending"}


def test_ready_is_true_in_verified_alone() -> None:
    found = {
        name: decision.status for name, (each, _) in CASES.items() if isinstance(decision := carried_out(each), Write)
    }
    ready = {name: condition.status for name, status in found.items() if (condition := status.condition("Ready"))}
    assert ready == {name: "True" if status.phase == "Verified" else "False" for name, status in found.items()}


def test_a_bundle_is_superseded_with_its_graph_where_it_has_one() -> None:
    assert status_of(seen(siblings=[NEWER])).graph_ref is None
    assert status_of(seen(graph=GRAPH, siblings=[NEWER])).graph_ref == "app-2"
    assert status_of(replace(HALF_WAY_WITH_NEWER, graph=None)).graph_ref == "app-2"


def test_a_graph_that_was_created_again_is_remembered() -> None:
    assert status_of(made(replace(HALF_WAY, graph=None), GRAPH)).graph_recreated is True
    assert status_of(replace(RECREATED, steps=BOTH_VERIFIED)).graph_recreated is True
    assert status_of(made(MOVED_TO_PROD, GRAPH)).graph_recreated is None


def test_invalid_spec_is_a_condition_until_corrected() -> None:
    invalid = status_of(refused(seen(), INVALID)).condition("InvalidSpec")
    assert invalid is not None
    assert (invalid.status, invalid.reason, invalid.message) == ("True", "DependencyCycle", str(INVALID))
    assert status_of(made(REFUSED, GRAPH)).condition("InvalidSpec") is None


def test_an_extension_that_is_refused_keeps_what_was_promoted() -> None:
    status = status_of(refused(MOVED_TO_PROD, INVALID))
    assert (states(status), status.graph_ref) == ({"dev": "Verified"}, "app-2")


def test_an_extended_graph_adds_its_environments() -> None:
    assert states(status_of(made(MOVED_TO_PROD, GRAPH))) == {"dev": "Verified", "prod": "Pending"}


def test_environments_are_named_in_the_order_of_the_graph() -> None:
    """An API server returns the keys of a map sorted."""
    before = EnvironmentStatus(state="Promoting")
    found = environments(read_topology(GRAPH), {}, {"a-first": before, "prod": before, "dev": before}, under_way=True)
    assert list(found) == ["dev", "prod", "a-first"]


def test_verified_environment_stays_so_unless_its_step_fails_before_the_end() -> None:
    failing = steps(dev="Failed", prod="Promoting")
    assert states(status_of(replace(HALF_WAY, steps=failing))) == {"dev": "Failed", "prod": "Promoting"}
    assert carried_out(replace(VERIFIED, steps=failing)) == Wait()


def test_the_message_of_a_step_is_copied_while_it_waits_for_a_merge_and_when_it_has_failed() -> None:
    for state, message in (("Promoting", None), ("WaitingForMerge", SAID), ("Failed", SAID), ("Verified", None)):
        found = status_of(seen(graph=GRAPH, steps=steps(dev=state)))
        assert found.environments["dev"].message == message


def test_the_reason_of_a_failure_names_environment_and_message() -> None:
    ready = status_of(seen(graph=GRAPH, steps=steps(dev="Failed", prod="Promoting"))).condition("Ready")
    assert ready is not None
    assert ready.message == f"dev: {SAID}; to try again: kardinal retry app-2 --env dev"


def test_a_label_that_names_another_pipeline_is_a_warning() -> None:
    metadata = HALF_WAY.bundle.metadata.model_copy(update={"labels": {"kardinal.io/pipeline": "other"}})
    relabelled = replace(HALF_WAY, bundle=HALF_WAY.bundle.model_copy(update={"metadata": metadata}))
    status = status_of(relabelled)
    warning = status.condition("Warning")
    assert warning is not None
    assert (warning.status, warning.reason) == ("True", "PipelineLabelChanged")
    assert (status.phase, status.pipeline) == ("Promoting", "my-app")
    back = next_run(relabelled, bundle=HALF_WAY.bundle.model_copy(update={"status": status}))
    assert status_of(back).condition("Warning") is None


def test_progress_inside_a_phase_waits_a_moment_and_no_longer() -> None:
    further = replace(HALF_WAY, steps=steps(dev="Verified", prod="HealthChecking"))
    assert carried_out(further) == Wait(until=MONOTONIC + WRITTEN_WITHIN)
    assert carried_out(replace(further, write_by=MONOTONIC + 0.25)) == Wait(until=MONOTONIC + 0.25)
    for due in (MONOTONIC, MONOTONIC - 5, MONOTONIC + 1e-9):
        assert states(status_of(replace(further, write_by=due))) == {"dev": "Verified", "prod": "HealthChecking"}


def test_a_new_phase_does_not_wait_for_progress_to_be_due() -> None:
    done = replace(HALF_WAY, steps=BOTH_VERIFIED, write_by=MONOTONIC + 0.5)
    assert outline(carried_out(done)) == Written("Verified", "Verified")


def test_a_generation_that_changes_nothing_else_is_written_at_once() -> None:
    assert status_of(made(retargeted(VERIFIED, "prod"), GRAPH)).observed_generation == 2


def run(facts: Facts, *, translated: JsonObject | PromotionError = GRAPH) -> list[Step]:
    """Every decision of one run, which carries them out as the reconciler does."""
    steps_made: list[Step] = []
    while len(steps_made) < 10:
        decision = carried_out(facts)
        steps_made.append(decision)
        match decision:
            case Create() | Extend():
                if isinstance(translated, PromotionError):
                    facts = refused(facts, translated)
                else:
                    facts = made(facts, translated)
            case Write(status):
                facts = replace(facts, stored=status)
            case _:
                break
    return steps_made


def kinds(decisions: Sequence[Step]) -> list[type[Step]]:
    return [type(decision) for decision in decisions]


def test_a_run_creates_the_graph_notes_it_and_ends() -> None:
    assert kinds(run(seen())) == [Create, Write, Wait]
    assert kinds(run(MOVED_TO_PROD)) == [Extend, Write, Wait]
    assert kinds(run(seen(), translated=INVALID)) == [Create, Write, Wait]


def test_a_refusal_that_repeats_itself_writes_nothing() -> None:
    assert kinds(run(REFUSED, translated=INVALID)) == [Create, Wait]


def test_the_graph_does_not_go_in_the_run_that_supersedes() -> None:
    finished = seen(graph=GRAPH, siblings=[NEWER])
    assert kinds(run(finished)) == [Write, Wait]
    assert kinds(run(next_run(finished))) == [Delete]


def test_result_of_the_last_step_is_written_before_the_graph_is_deleted() -> None:
    assert kinds(run(SUPERSEDED_WITH_NEWS)) == [Write, Delete]


def choices(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


@given(
    start=choices(*(facts for facts, _ in CASES.values())),
    graph=choices(None, GRAPH, GRAPH_OF_DEV, REFUSED_GRAPH, LEAVING),
    pipeline=choices(None, PIPELINE),
    siblings=st.lists(choices(OLDER, NEW_ONE, NEWER, NEWER_THAT_FAILED), max_size=2),
    states=st.dictionaries(choices("dev", "prod"), choices(None, "Promoting", "WaitingForMerge", "Failed", "Verified")),
    translated=choices(GRAPH, INVALID, DENIED, TAKEN),
)
def test_every_run_ends_and_keeps_the_order_of_its_decisions(
    *,
    start: Facts,
    graph: JsonObject | None,
    pipeline: Pipeline | None,
    siblings: list[Bundle],
    states: dict[str, str | None],
    translated: JsonObject | PromotionError,
) -> None:
    fields: dict[str, Any] = {"graph": graph, "pipeline": pipeline, "siblings": siblings, "steps": steps(**states)}
    facts = replace(start, done=RunEffects(), **fields)
    found = run(facts, translated=translated)
    order = [Create, Extend, Write, Delete, StartLater, Leave, Wait]
    assert kinds(found) == sorted(set(kinds(found)), key=order.index)
    assert isinstance(found[-1], Delete | StartLater | Leave | Wait)
    phase = facts.bundle.status.phase
    if Create in kinds(found):
        assert graph is None
    if Delete in kinds(found):
        assert phase == "Superseded"
    if phase == "Superseded":
        assert {each.status.phase for each in found if isinstance(each, Write)} <= {"Superseded"}
        assert not {Create, Extend} & set(kinds(found))
