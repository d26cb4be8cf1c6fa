"""The reference of the steps is made from their declarations."""

from __future__ import annotations

from pathlib import Path

from hack.docs.steps import reference

ROOT = Path(__file__).parents[2]


def test_the_reference_of_the_steps_is_current() -> None:
    assert (ROOT / "docs" / "steps.md").read_text() == reference(), "run: make docs"
