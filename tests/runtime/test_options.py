"""An option is declared in one place: as a field of the class that a program is composed from."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import click
import pytest
from click.testing import CliRunner

from kardinal.runtime.options import options_of, seconds, setting, settings_of
from kardinal_agent.options import AgentOptions
from kardinal_controller.options import ControllerOptions


@dataclass(frozen=True)
class Part:
    within: float = setting("--within", default="1h", read=seconds)
    hosts: tuple[str, ...] = setting("--host", multiple=True)
    shard: str | None = setting("--shard", required=True, unset=lambda: None, alone=True)


@dataclass(frozen=True)
class Program:
    part: Part = settings_of(Part)
    quiet: bool = setting("--quiet", is_flag=True)


def run(kind: type[Any], *arguments: str) -> Any:
    found = []

    @click.command()
    @options_of(kind)
    def main(*, options: Any) -> None:
        found.append(options)

    result = CliRunner().invoke(main, arguments)
    return found[0] if found else result.output


def test_defaults_of_the_class_are_those_of_the_command_line() -> None:
    assert run(Program) == Program() == Program(part=Part(within=3600.0, hosts=(), shard=None), quiet=False)


def test_options_of_a_part_are_options_of_the_program() -> None:
    program = run(Program, "--within", "5m", "--host", "a", "--host", "b", "--quiet")
    assert program == Program(part=Part(within=300.0, hosts=("a", "b")), quiet=True)


def test_an_option_that_stands_alone_is_left_out_of_a_part() -> None:
    refused = run(Program, "--shard", "east")
    assert "No such option" in refused
    assert "--shard" in refused
    assert run(Part, "--shard", "east") == Part(shard="east")


@pytest.mark.parametrize("value", ["0s", "soon"])
def test_a_wrong_value_names_its_option(value: str) -> None:
    assert "Invalid value for '--within'" in run(Program, "--within", value)


def test_controller_and_agent_share_the_declarations_of_the_agent() -> None:
    both = {each.name for each in fields(AgentOptions)} & {each.name for each in fields(ControllerOptions)}
    # Each program has addresses of its own, and an agent is told the namespaces of policies.
    assert both == {"metrics_address", "metrics_auth", "policy_namespaces", "probe_address"}
