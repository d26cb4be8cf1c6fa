"""The table of states: complete, current on its page, and with commands that exist."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click
import pytest

from hack.docs.states import reference
from kardinal.cli.main import main
from kardinal.promotion.api.bundle import BundlePhase
from kardinal.promotion.api.names import WAITING_FOR_GRAPH
from kardinal.promotion.api.promotion_step import PromotionState
from kardinal.promotion.views.states import STATES, SUPERSEDED, UNHEALTHY, WITHOUT_STEP, Answer, State, command_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("Bundle", (*get_args(BundlePhase), WAITING_FOR_GRAPH)),
        ("PromotionStep", get_args(PromotionState)),
        ("Environment", (*WITHOUT_STEP, SUPERSEDED)),
        ("Health", UNHEALTHY),
        ("Gate", get_args(Answer)),
    ],
)
def test_every_state_has_a_sentence(kind: str, names: tuple[str, ...]) -> None:
    assert {name for of, name in STATES if of == kind} == set(names)
    assert all(STATES[kind, name].sentence.endswith(".") for name in names)


@pytest.mark.parametrize("state", [state for state in STATES.values() if state.command], ids=str)
def test_every_command_exists(state: State) -> None:
    values = {"pipeline": "my-app", "bundle": "my-app-1", "environment": "prod", "number": "1"}
    words = command_of(state.kind, state.name, **values).split()
    assert words[0] == "kardinal"
    context = click.Context(main, info_name="kardinal")
    _, command, rest = main.resolve_command(context, words[1:])
    assert command is not None
    while isinstance(command, click.Group):
        _, command, rest = command.resolve_command(context, rest)
        assert command is not None
    # Parsing alone: an option that the command does not have is an error.
    command.make_context("kardinal", rest, resilient_parsing=False)


def test_the_page_of_states_is_current() -> None:
    assert (ROOT / "docs" / "states.md").read_text() == reference(), "run: make docs"
