"""Events and counters of a change of a Bundle's status."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.api.bundle import BundleStatus
from kardinal_controller.bundles.events import CountBundle, CountRollback, EmitEvent, effects
from tests.bundles.facts import NOW, bundle

FIRST = BundleStatus(phase="Available", sequence=1, pipeline="my-app")


def ready(reason: str, *, status: str = "False", message: str = "as it is", **fields: Any) -> BundleStatus:
    """Return a status whose condition Ready has this reason."""
    return having(FIRST, "Ready", reason, status=status, message=message).model_copy(update=fields)


def having(before: BundleStatus, type_: str, reason: str, *, status: str = "True", message: str = "") -> BundleStatus:
    condition = {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": NOW}
    made = BundleStatus.model_validate({"conditions": [condition]})
    return before.model_copy(update={"conditions": (*before.conditions, *made.conditions)})


PROMOTING = ready("Promoting")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (FIRST, PROMOTING, [EmitEvent("Normal", "Promoting", "as it is")]),
        (PROMOTING, PROMOTING, []),
        (PROMOTING, ready("Promoting", message="1 of 3"), []),
        (PROMOTING, ready("Verified", status="True"), [EmitEvent("Normal", "Verified", "as it is")]),
        (PROMOTING, ready("StepFailed"), [EmitEvent("Warning", "StepFailed", "as it is")]),
        (PROMOTING, ready("Superseded"), [EmitEvent("Normal", "Superseded", "as it is")]),
        (FIRST, ready("Waiting"), []),
        (ready("Waiting"), PROMOTING, [EmitEvent("Normal", "Promoting", "as it is")]),
        (
            PROMOTING,
            having(PROMOTING, "Warning", "PipelineLabelChanged", message="ignored"),
            [EmitEvent("Warning", "PipelineLabelChanged", "ignored")],
        ),
        (having(PROMOTING, "Warning", "PipelineLabelChanged"), PROMOTING, []),
        (PROMOTING, having(PROMOTING, "InvalidSpec", "UnknownTarget"), []),
    ],
    ids=[
        "the first phase",
        "nothing new",
        "another message",
        "success",
        "a failure",
        "supersession",
        "a backlog is not told",
        "the end of waiting",
        "a warning",
        "the end of a warning",
        "what Ready tells is not told again",
    ],
)
def test_an_event_for_each_new_reason(before: BundleStatus, after: BundleStatus, expected: list[EmitEvent]) -> None:
    assert effects(bundle(), before=before, after=after) == expected


@pytest.mark.parametrize(("annotations", "source"), [({}, "kubectl"), ({"kardinal.io/source": "webhook"}, "webhook")])
def test_a_bundle_is_counted_when_it_gets_its_number(annotations: dict[str, str], source: str) -> None:
    unseen = PROMOTING.model_copy(update={"sequence": None})
    found = effects(bundle(annotations=annotations), before=unseen, after=PROMOTING)
    assert found == [CountBundle("my-app", source)]
    later = effects(bundle(annotations=annotations), before=PROMOTING, after=ready("Promoting", phase="Failed"))
    assert not any(isinstance(each, CountBundle) for each in later)


def test_a_bundle_without_a_pipeline_is_not_counted_before_it_has_one() -> None:
    lost = ready("InvalidSpec", sequence=None, pipeline=None)
    assert CountBundle("", "kubectl") not in effects(bundle(), before=BundleStatus(), after=lost)
    assert CountBundle("my-app", "kubectl") in effects(bundle(), before=lost, after=PROMOTING)


@pytest.mark.parametrize(
    ("source", "emergency", "trigger"),
    [("cli", False, "manual"), ("kubectl", True, "emergency"), ("onHealthFailure", False, "automatic")],
)
def test_a_rollback_is_counted_when_it_gets_its_graph(source: str, emergency: bool, trigger: str) -> None:
    identity = {"name": "app-1", "uid": "uid-app-1"}
    rollback = {"environments": ["eu", "us"], "of": identity, "restores": identity, "emergency": emergency}
    back = bundle(intent={"rollback": rollback}, annotations={"kardinal.io/source": source})
    started = PROMOTING.model_copy(update={"graph_ref": "app-2"})
    counted = [each for each in effects(back, before=PROMOTING, after=started) if isinstance(each, CountRollback)]
    assert counted == [CountRollback("eu", trigger), CountRollback("us", trigger)]
    assert effects(back, before=started, after=started) == []
    assert not any(isinstance(each, CountRollback) for each in effects(bundle(), before=PROMOTING, after=started))
