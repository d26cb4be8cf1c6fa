"""The head start of a Bundle that has just been given a Graph, before another one of its Pipeline gets one."""

from __future__ import annotations

import pytest

from kardinal_controller.bundles.contenders import Standing
from kardinal_controller.bundles.decisions import Action, Create, StartLater
from kardinal_controller.bundles.observe import Facts
from kardinal_controller.bundles.order import Start
from kardinal_controller.bundles.rules import HEAD_START
from tests.bundles.facts import MONOTONIC, PIPELINE, bundle, carried_out, rival, seen

JUST_STARTED = Start("app-1", MONOTONIC - HEAD_START / 4)
HELD = StartLater(JUST_STARTED.at + HEAD_START)
OLDER = rival("app-1", number=1, dev=Standing(), prod=Standing())
UNSEEN = rival("app-1", number=1, pending=True)
WITH_GOOD_EDIT = rival("app-1", number=1, dev=Standing(prepared=True), prod=Standing())
FAILED = rival("app-1", number=1, dev=Standing("Failed"), prod=Standing())
ELSEWHERE = rival("app-1", number=1, us=Standing(), upstreams={"us": ()})
PINNED = bundle(annotations={"kardinal.io/pin": "true"})

CASES = {
    "one that has just started comes first": (seen(siblings=[OLDER], latest_start=JUST_STARTED), HELD),
    "so while its status is not seen": (seen(siblings=[UNSEEN], latest_start=JUST_STARTED), HELD),
    "so before one that is about to start": (
        seen(siblings=[OLDER, rival(pending=True)], latest_start=JUST_STARTED),
        HELD,
    ),
    "but not for long": (
        seen(siblings=[OLDER], latest_start=Start("app-1", MONOTONIC - HEAD_START)),
        Create(PIPELINE),
    ),
    "nor after its edit": (seen(siblings=[WITH_GOOD_EDIT], latest_start=JUST_STARTED), Create(PIPELINE)),
    "nor after its failure": (seen(siblings=[FAILED], latest_start=JUST_STARTED), Create(PIPELINE)),
    "nor where it goes elsewhere": (seen(siblings=[ELSEWHERE], latest_start=JUST_STARTED), Create(PIPELINE)),
    "nor before one that is pinned": (seen(PINNED, siblings=[OLDER], latest_start=JUST_STARTED), Create(PIPELINE)),
}


@pytest.mark.parametrize(("facts", "expected"), CASES.values(), ids=CASES)
def test_the_next_decision(facts: Facts, expected: Action) -> None:
    assert carried_out(facts) == expected
