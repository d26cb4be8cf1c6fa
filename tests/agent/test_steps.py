"""Every step that can be declared in a sequence can be executed."""

from __future__ import annotations

from kardinal.steps.builtin import BUILTIN_STEPS
from kardinal_agent.steps import STEPS


def test_every_declared_step_has_an_effect_and_no_other_name_has() -> None:
    assert set(STEPS) == set(BUILTIN_STEPS)
