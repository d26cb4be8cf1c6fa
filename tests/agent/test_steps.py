"""Every step that can be declared in a sequence can be executed."""

from __future__ import annotations

import pytest

from kardinal.promotion.steps.builtin import BUILTIN_STEPS
from kardinal.promotion.steps.declaration import StepDeclaration
from kardinal_agent.errors import ConfigurationError
from kardinal_agent.steps import effects


def test_every_declared_step_has_an_effect() -> None:
    assert set(effects(BUILTIN_STEPS)) == set(BUILTIN_STEPS)


def test_a_step_of_another_package_without_an_effect_keeps_the_agent_from_starting() -> None:
    with pytest.raises(ConfigurationError, match="step notify neither edits files nor declares an effect"):
        effects({"notify": StepDeclaration(name="notify")})
