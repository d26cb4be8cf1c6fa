"""The status of a simulated Deployment over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from kardinal_local.simulator.rollout import advance

NOON = datetime(2026, 4, 7, 12, tzinfo=UTC)
DELAY = timedelta(seconds=2)


def _deployment(image: str, *, generation: int = 1, replicas: int = 2, status: Any = None) -> dict[str, Any]:
    return {
        "metadata": {"name": "app", "namespace": "dev", "generation": generation},
        "spec": {
            "replicas": replicas,
            "progressDeadlineSeconds": 60,
            "template": {"spec": {"containers": [{"name": "app", "image": image}]}},
        },
        "status": status or {},
    }


def _condition(status: dict[str, Any], type_: str) -> dict[str, Any]:
    (condition,) = [entry for entry in status["conditions"] if entry["type"] == type_]
    found: dict[str, Any] = condition
    return found


def test_a_new_deployment_is_observed_at_once_and_available_after_the_delay() -> None:
    first = advance(_deployment("app:1"), now=NOON, delay=DELAY)
    assert first.again == DELAY
    assert first.status["observedGeneration"] == 1
    assert "availableReplicas" not in first.status
    assert _condition(first.status, "Available")["status"] == "False"
    second = advance(_deployment("app:1", status=first.status), now=NOON + DELAY, delay=DELAY)
    assert second.again is None
    assert second.status["updatedReplicas"] == second.status["availableReplicas"] == second.status["replicas"] == 2
    assert _condition(second.status, "Available")["status"] == "True"


def test_looking_early_neither_finishes_nor_restarts_the_rollout() -> None:
    first = advance(_deployment("app:1"), now=NOON, delay=DELAY)
    early = advance(_deployment("app:1", status=first.status), now=NOON + timedelta(seconds=1), delay=DELAY)
    assert early.status == first.status
    assert early.again == timedelta(seconds=1)


def test_the_old_pods_stay_available_while_new_ones_come_up() -> None:
    done = advance(_deployment("app:1"), now=NOON, delay=timedelta(0)).status
    rolling = advance(_deployment("app:2", generation=2, status=done), now=NOON, delay=DELAY).status
    assert rolling["observedGeneration"] == 2
    assert rolling["availableReplicas"] == 2
    assert rolling["updatedReplicas"] == 1
    assert _condition(rolling, "Available")["status"] == "True"


def test_a_finished_rollout_is_left_as_it_is() -> None:
    done = advance(_deployment("app:1"), now=NOON, delay=timedelta(0)).status
    later = advance(_deployment("app:1", status=done), now=NOON + timedelta(hours=1), delay=DELAY)
    assert later.status == done
    assert later.again is None


def test_a_rollout_is_finished_from_the_moment_it_says_so() -> None:
    first = advance(_deployment("app:1"), now=NOON, delay=DELAY)
    second = advance(_deployment("app:1", status=first.status), now=NOON + DELAY, delay=DELAY)
    at_once = advance(_deployment("app:1", status=second.status), now=NOON + DELAY, delay=DELAY)
    assert (at_once.status, at_once.again) == (second.status, None)


def test_moments_are_told_in_whole_seconds_which_is_what_is_kept_of_them() -> None:
    first = advance(_deployment("app:1"), now=NOON + timedelta(milliseconds=250), delay=DELAY)
    assert _condition(first.status, "Progressing")["lastUpdateTime"] == "2026-04-07T12:00:00Z"


def test_a_broken_image_never_becomes_available_and_says_so_at_the_deadline() -> None:
    first = advance(_deployment("ghcr.io/acme/app:2-broken"), now=NOON, delay=timedelta(0))
    assert first.again == timedelta(seconds=60)
    stalled = advance(
        _deployment("ghcr.io/acme/app:2-broken", status=first.status), now=NOON + timedelta(seconds=60), delay=DELAY
    )
    assert _condition(stalled.status, "Progressing")["reason"] == "ProgressDeadlineExceeded"
    assert "availableReplicas" not in stalled.status


def test_broken_in_the_name_of_a_repository_is_no_broken_tag() -> None:
    assert advance(_deployment("ghcr.io/broken/app:1"), now=NOON, delay=timedelta(0)).again is None
