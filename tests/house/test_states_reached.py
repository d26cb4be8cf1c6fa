"""Each state of `docs/states.md` is reached by a test; the table says by which."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kardinal.promotion.views.states import STATES

ROOT = Path(__file__).parents[2]

REACHED = {
    (
        "Bundle",
        "Available",
    ): "bundles/test_refused.py::test_a_bundle_waits_for_its_pipeline_and_starts_when_that_is_there_and_correct",
    (
        "Bundle",
        "WaitingForGraph",
    ): "cli/test_init_graph.py::test_bundle_that_waits_for_its_graph_tells_how_to_make_one",
    ("Bundle", "Promoting"): "bundles/test_bundles.py::test_a_bundle_gets_a_graph_and_its_status_follows_the_steps",
    ("Bundle", "Verified"): "bundles/test_story.py::test_a_promotion_is_told_on_its_bundle_and_nothing_twice",
    ("Bundle", "Failed"): "bundles/test_outdated.py::"
    "test_a_changed_pipeline_is_told_with_the_command_until_the_bundle_goes_by_it",
    ("Bundle", "Superseded"): "cli/test_states_shown.py::test_a_bundle_that_is_superseded_has_not_failed_anywhere",
    ("Bundle", "SkipDenied"): "bundles/test_refused.py::"
    "test_a_denied_skip_names_environment_and_gate_and_creates_nothing",
    ("PromotionStep", "Pending"): "agent/test_auto.py::test_a_promotion_waits_for_every_upstream_environment",
    ("PromotionStep", "Promoting"): "agent/test_attempts.py::"
    "test_decision_on_an_earlier_attempt_does_not_bind_the_next",
    ("PromotionStep", "WaitingForMerge"): "agent/test_reviewed.py::test_closed_without_a_merge_ends_the_promotion",
    ("PromotionStep", "HealthChecking"): "agent/test_auto.py::test_kubectl_can_wait_for_the_condition_ready",
    ("PromotionStep", "Verified"): "agent/test_missing.py::test_a_branch_that_is_made_later_is_promoted_to",
    ("PromotionStep", "Failed"): "agent/test_missing.py::test_a_secret_that_is_there_and_of_no_use_ends_the_promotion",
    ("Environment", "Waiting"): "cli/test_states_shown.py::test_gates_and_environments_are_shown_as_they_are",
    ("Environment", "Blocked"): "cli/test_states_shown.py::test_gates_and_environments_are_shown_as_they_are",
    ("Environment", "Skipped"): "cli/test_states_shown.py::test_environments_that_are_left_out_are_shown_as_such",
    ("Environment", "Superseded"): "cli/test_states_shown.py::test_a_bundle_that_is_superseded_has_not_failed_anywhere",
    ("Environment", "NotTargeted"): "cli/test_states_shown.py::test_environments_that_are_left_out_are_shown_as_such",
    ("Environment", "NotReached"): "cli/test_states_shown.py::test_a_bundle_that_is_superseded_has_not_failed_anywhere",
    (
        "Health",
        "Degraded",
    ): "health/test_verified.py::test_downstream_is_held_while_an_environment_is_degraded_until_healthy",
    ("Health", "CannotBeSeen"): "health/test_verified_elsewhere.py::"
    "test_a_cluster_that_is_gone_holds_what_follows_and_pauses_the_soak",
    ("Gate", "PENDING"): "cli/test_states_shown.py::test_gates_and_environments_are_shown_as_they_are",
    ("Gate", "PASS"): "cli/test_states_shown.py::test_gates_and_environments_are_shown_as_they_are",
    ("Gate", "FAIL"): "cli/test_states_shown.py::test_gates_and_environments_are_shown_as_they_are",
}
"""(kind, state) -> the test, below `tests/`."""


def test_every_state_is_reached_by_a_test() -> None:
    assert set(REACHED) == set(STATES)


@pytest.mark.parametrize(("state", "test"), REACHED.items(), ids=["-".join(state) for state in REACHED])
def test_the_test_exists_and_names_the_state(state: tuple[str, str], test: str) -> None:
    path, _, name = test.partition("::")
    source = (ROOT / "tests" / path).read_text()
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, functions) and node.name == name]
    assert found, f"tests/{path} has no {name}"
    assert state[1] in (ast.get_source_segment(source, found[0]) or ""), f"{name} does not speak of {state[1]}"
