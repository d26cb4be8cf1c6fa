"""The colour of each state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kardinal.promotion.views.environments import NO_BUNDLE, EnvironmentState
from kardinal.promotion.views.states import STATES, SUPERSEDED, WITHOUT_STEP
from kardinal_controller.ui.model import StateMark, Tone

__all__ = ["TONES", "environment_mark", "health_mark", "mark", "recorded_mark"]

TONES: Final[Mapping[tuple[str, str], Tone]] = {
    ("Bundle", "Available"): "rest",
    ("Bundle", "WaitingForGraph"): "you",
    ("Bundle", "Promoting"): "move",
    ("Bundle", "Verified"): "ok",
    ("Bundle", "Failed"): "bad",
    ("Bundle", "Superseded"): "rest",
    ("Bundle", "SkipDenied"): "bad",
    ("PromotionStep", "Pending"): "rest",
    ("PromotionStep", "Promoting"): "move",
    ("PromotionStep", "WaitingForMerge"): "you",
    ("PromotionStep", "HealthChecking"): "move",
    ("PromotionStep", "Verified"): "ok",
    ("PromotionStep", "Failed"): "bad",
    ("Environment", "Waiting"): "rest",
    ("Environment", "Blocked"): "held",
    ("Environment", "Skipped"): "rest",
    ("Environment", "Superseded"): "rest",
    ("Environment", "NotTargeted"): "rest",
    ("Environment", "NotReached"): "rest",
    ("Health", "Degraded"): "warn",
    ("Health", "CannotBeSeen"): "warn",
    ("Gate", "PENDING"): "rest",
    ("Gate", "PASS"): "ok",
    ("Gate", "FAIL"): "held",
}
"""The tone of each state of `docs/states.md`, by kind and name."""


def mark(kind: str, name: str) -> StateMark:
    """Return a state with its tone and its sentence.

    A state that this version does not know, because another version wrote it, has no sentence and the tone `rest`.
    """
    known = STATES.get((kind, name))
    return StateMark(
        kind=kind, name=name, tone=TONES.get((kind, name), "rest"), meaning=known.sentence if known else ""
    )


def environment_mark(state: EnvironmentState) -> StateMark:
    """Return the state of an environment.

    Waiting has the tone `held` while a closed gate is the cause, and `rest` while it waits for an environment.
    """
    if state.health:
        return mark("Health", state.health)
    found = recorded_mark(state.state)
    return found.model_copy(update={"tone": "held"}) if state.held_by else found


def health_mark(state: EnvironmentState | None) -> StateMark | None:
    """Return the state of a Verified environment that is no longer healthy; else None."""
    return mark("Health", state.health) if state is not None and state.health else None


def recorded_mark(name: str) -> StateMark:
    """Return a state of an environment by its name alone."""
    without_step = name in (*WITHOUT_STEP, SUPERSEDED, NO_BUNDLE)
    return mark("Environment" if without_step else "PromotionStep", name)
